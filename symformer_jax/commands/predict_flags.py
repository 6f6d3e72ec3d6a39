"""The flags of symformer_jax.predict: light, so that --help waits for nothing."""

from absl import flags

from symformer_jax.commands import table_flags

FLAGS = flags.FlagValues()
SELECT = flags.DEFINE_string(
  "select", None, "Which line of the front to take: recommended; accurate, the one of least error; simple, the "
  "shortest that looks as good in a plot; or its number in the list. By default that which the fit took: the "
  "recommended one, unless --select or model_selection named another.", flag_values=FLAGS)
FILE = flags.DEFINE_string(
  "file", None, "Of the results of a batch (.jsonl), the data file whose formula is taken, by its path or name.",
  flag_values=FLAGS)
TARGET = flags.DEFINE_string(
  "target", None, "Column of the new table that holds measured values, with which predictions are compared; by default "
  "the target of the fit, where the file of formulas names it and the table has it. Of a batch with several targets "
  "also which formula is taken.", flag_values=FLAGS)
NAME = flags.DEFINE_string("name", "predicted", "Name of the column of predictions.", flag_values=FLAGS)
OUT = flags.DEFINE_string(
  "out", None, "Where to write the table: FILE.csv; by default standard output.", flag_values=FLAGS)
OVERWRITE = flags.DEFINE_bool("overwrite", False, "Replace the file of --out when it exists.", flag_values=FLAGS)
DECIMAL, SEPARATOR, SHEET = table_flags.define(FLAGS)
QUIET = flags.DEFINE_bool("quiet", False, "Print nothing but the table and errors.", flag_values=FLAGS)
