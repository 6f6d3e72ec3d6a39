"""Tables of fewer columns, or of groups of them, which other sources search."""
