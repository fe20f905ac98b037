"""Old rows of given keys, for compactions that tell what changed: local copies of data files, quick to search."""
