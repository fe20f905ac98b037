"""CSV, JSON and plain text: lines in and out."""
