"""The flags of launch.validate: light, so that --help waits for nothing."""

from absl import flags

FLAGS = flags.FlagValues()
MODEL = flags.DEFINE_string(
  "model", None, "Name of a shipped model, or a folder of launch.export.", flag_values=FLAGS)
DATA = flags.DEFINE_list(
  "data", None, "Folders of data_gen.generate; their validation splits are read.", flag_values=FLAGS)
NUM_EQUATIONS = flags.DEFINE_integer(
  "num_equations", 512, "Equations of each number of variables.", 1, flag_values=FLAGS)
