"""Sums of columns of a library: which columns there are, and which of them a target is the sum of."""
