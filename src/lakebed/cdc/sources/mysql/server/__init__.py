"""What is asked of a server: its state, its catalogue, whether it can be followed."""
