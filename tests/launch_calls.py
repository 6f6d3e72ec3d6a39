"""Commands of launch called in this process."""


def call(command, **given):
  """The command with these flags and no others."""
  values = command.asked.FLAGS
  values.unparse_flags()
  for name in values:
    values[name].unparse()
  values(["command", *(f"--{name}={value}" for name, value in given.items())])
  return command.main([])
