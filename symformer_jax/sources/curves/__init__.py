"""Functions of one column with a constant or two inside."""
