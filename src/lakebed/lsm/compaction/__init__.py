"""Compaction of one bucket: pickers choose files and say why, a task rewrites them; committing is up to the table."""
