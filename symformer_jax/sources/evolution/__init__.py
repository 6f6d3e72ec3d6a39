"""Evolution: formulas bred from those that were found."""
