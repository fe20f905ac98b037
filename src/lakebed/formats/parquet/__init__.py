"""Parquet: Arrow in and out, with statistics and checksums."""
