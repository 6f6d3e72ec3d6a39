"""Flags of every command that reads tables: light, so that --help waits for nothing."""

from absl import flags


def define(flag_values: flags.FlagValues) -> tuple[flags.FlagHolder, flags.FlagHolder, flags.FlagHolder]:
  """The decimal mark, what stands between columns, the sheet of a workbook."""
  decimal = flags.DEFINE_string(
    "decimal", None, "The decimal mark of text, . or , : by default what the numbers of the file show.",
    flag_values=flag_values)
  separator = flags.DEFINE_string(
    "separator", None, "What stands between columns of text: tab, space, or one of , ; | . By default what the lines "
    "show.", flag_values=flag_values)
  sheet = flags.DEFINE_string(
    "sheet", None, "Sheet of an .xlsx workbook; by default the first.", flag_values=flag_values)
  return decimal, separator, sheet
