"""What a table looks like: its files over the keys that they hold, its snapshots over time.

Each picture is a record of plain facts that draws itself as SVG, so that a notebook, a page of `lakebed ui` and whoever
wants the numbers alone have one and the same source.
"""
