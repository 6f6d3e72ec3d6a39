"""The search: data sets, the pool of candidates, the one loop."""
