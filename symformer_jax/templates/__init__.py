"""Formulas of a form that the user gives: its parameters and data for its unknown functions, and the answer."""
