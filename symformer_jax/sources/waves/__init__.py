"""Waves: of any argument, and fractions of them."""
