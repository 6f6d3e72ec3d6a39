"""All short formulas, one after the other or many at once."""
