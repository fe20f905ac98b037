"""The LSM tree of one bucket: sorted runs, sections of overlapping keys, and their streaming merge."""
