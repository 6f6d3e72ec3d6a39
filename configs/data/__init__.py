"""Configurations of the data generator."""
