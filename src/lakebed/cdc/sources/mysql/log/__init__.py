"""The binary log: received, cut into events, decoded to rows."""
