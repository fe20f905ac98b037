"""A table as its user meets it: scanning, reading, writing, time travel. Where the LSM and the committer meet."""
