"""What steers the search: each file a get_config() of `SearchConfig`; FILE:NAME chooses a variant of it."""
