"""Streaming INSERTs: the changes of a query's result, sent to a table that has a meaning of its own."""
