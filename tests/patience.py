"""How long tests wait for what must happen. On a busy machine all takes ten times as long, and no test measures that:
the end of patience only finds what hangs. `timeout` in pyproject.toml is longer, so that a test can say what it missed.
"""

PATIENCE_S = 600.0
