"""A row's way out: which files hold it, which pieces they are read in, and the rows themselves."""
