"""The log of a PostgreSQL: received, cut into messages, decoded to rows."""
