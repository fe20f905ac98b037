"""Benchmarks: each reports ratios against a peer measured in the same run, because machines are noisy."""
