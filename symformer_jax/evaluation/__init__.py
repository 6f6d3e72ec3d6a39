"""Metrics, problem lists, suites and reports."""
