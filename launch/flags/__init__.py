"""The flags of each command, light: --help and what a flag refuses wait for no library."""
