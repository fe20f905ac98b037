"""What Spark's Python workers run before anything of ours. They have the directory on their path: little is in it."""
