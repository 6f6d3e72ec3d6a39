"""The flags of launch.card: light, so that --help waits for nothing."""

from absl import flags

FLAGS = flags.FlagValues()
MODEL = flags.DEFINE_string("model", None, "Folder of the model, or the name of a shipped one.", flag_values=FLAGS)
RESULTS = flags.DEFINE_string(
  "results", None, "Folder of the suites' folders, as launch/reproduce.sh leaves them.", flag_values=FLAGS)
HARDWARE = flags.DEFINE_string("hardware", None, "What it was trained on.", flag_values=FLAGS)
WEAKNESS = flags.DEFINE_multi_string(
  "weakness", None, "What it is known to be bad at; once for each.", flag_values=FLAGS)
