"""One micro-batch of changes: its chunks, the job that writes it, the commit of each table."""
