"""Formulas with unknown functions of one column in them, found as values first and as formulas then."""
