"""The flags of data_gen.inspect: light, so that --help waits for nothing."""

from absl import flags

FLAGS = flags.FlagValues()
SAMPLES = flags.DEFINE_integer("samples", 20, "Equations to print.", 0, flag_values=FLAGS)
SEEN = flags.DEFINE_string(
  "seen", None, "A formula of x, y, ...: tells how often its function and skeleton occur.", flag_values=FLAGS)
PLOT = flags.DEFINE_string(
  "plot", None, "PNG file for the distributions and a page of sample curves.", flag_values=FLAGS)
