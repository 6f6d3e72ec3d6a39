"""Sums of products of powers with free exponents."""
