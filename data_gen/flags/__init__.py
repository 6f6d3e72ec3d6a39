"""The flags of each command of the generator, light: --help waits for no library."""
