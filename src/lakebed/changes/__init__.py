"""What makes one state of a table another one: changes between snapshots, and streams of them."""
