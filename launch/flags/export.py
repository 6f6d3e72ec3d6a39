"""The flags of launch.export: light, so that --help waits for nothing."""

from absl import flags

FLAGS = flags.FlagValues()
WORKDIR = flags.DEFINE_string("workdir", None, "Work directory of launch.train.", flag_values=FLAGS)
NAME = flags.DEFINE_string("name", None, "Name of the model.", flag_values=FLAGS)
OUT = flags.DEFINE_string("out", None, "Folder to write card.json and weights.npz to.", flag_values=FLAGS)
WHICH = flags.DEFINE_enum(
  "which", "newest", ("newest", "best"), "The newest checkpoint, or that of the lowest validation loss.",
  flag_values=FLAGS)
SEEN = flags.DEFINE_list(
  "seen", None, "Folders of the equations trained on; by default those of the run's configuration, if they are there.",
  flag_values=FLAGS)
BY_NAME_ONLY = flags.DEFINE_bool(
  "by_name_only", False, "The card says that --model=auto leaves this model out: for one still in training.",
  flag_values=FLAGS)
BITS = flags.DEFINE_enum(
  "bits", "16", ("16", "8"), "Bits of a weight: bfloat16, or whole numbers with a scale for each column of a matrix.",
  flag_values=FLAGS)
