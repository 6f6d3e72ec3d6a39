"""The commands: absl mains without logic."""
