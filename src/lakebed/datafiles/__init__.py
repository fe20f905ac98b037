"""The one way to touch a data file: reading with schema evolution, writing with statistics, for all table kinds."""
