"""From the payload of a chunk to rows of the lake's table."""
