"""Fits the constants of all candidates at once."""
