"""The conversation of `lakebed sql`: a line that is typed, and what the tab key proposes."""
