"""Tables without a primary key: which of their files are worth rewriting."""
