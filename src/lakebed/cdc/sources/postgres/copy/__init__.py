"""The first copy of tables, and which streamed changes it holds already."""
