"""Functions of a sum of monomials."""
