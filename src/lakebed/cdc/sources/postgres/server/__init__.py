"""What is asked of a server: its catalogue, its slot, whether it can be followed."""
