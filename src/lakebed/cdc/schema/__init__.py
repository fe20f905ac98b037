"""How a table of the lake follows the columns of its source."""
