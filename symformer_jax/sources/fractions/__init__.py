"""Fractions of polynomials, of columns and of functions of columns: linear in all coefficients once multiplied out."""
