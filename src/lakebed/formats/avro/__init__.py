"""Avro: Arrow in and out, block by block."""
