"""Indexes of data files: for a column of a file, which values it holds, so that readers can leave the file out.

An index only ever excludes: one that is missing, damaged beyond its own kind, or of an unknown kind, costs time.
"""
