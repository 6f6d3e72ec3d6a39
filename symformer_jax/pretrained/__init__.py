"""Shipped models and their registry."""
