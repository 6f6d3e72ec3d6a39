"""One benchmark per file, each with `run() -> dict`; `launch.benchmark` picks them by name."""
