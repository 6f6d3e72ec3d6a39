"""One file per experiment, each with a get_config()."""
