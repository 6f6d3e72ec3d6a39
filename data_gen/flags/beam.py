"""The flags of data_gen.beam: light, so that --help waits for nothing."""

from absl import flags

from data_gen import defaults

FLAGS = flags.FlagValues()
RUNNER = flags.DEFINE_string(
  "runner", "DirectRunner", "DirectRunner, DataflowRunner, FlinkRunner, SparkRunner, ...", flag_values=FLAGS)
CONFIG = flags.DEFINE_string("config", None, "Python file with get_config().", flag_values=FLAGS)
OUT = flags.DEFINE_string("out", None, "Folder to write to, of this machine.", flag_values=FLAGS)
SPANS = flags.DEFINE_string(
  "spans", None, "Folder for what the workers make, which all of them can write: a path of a shared disk, gs://, "
  "s3://, hdfs://; default: spans beside the shards.", flag_values=FLAGS)
EQUATIONS = flags.DEFINE_integer("equations", None, "Training equations to generate.", 1, flag_values=FLAGS)
VALIDATION = flags.DEFINE_integer("validation", 0, "Validation equations.", 0, flag_values=FLAGS)
SEED = flags.DEFINE_integer("seed", 0, "Every seed gives another stream of equations.", 0, flag_values=FLAGS)
SIMPLIFY = flags.DEFINE_enum(
  "simplify", None, defaults.SIMPLIFIERS, "Overrides the config's setting.", flag_values=FLAGS)
SHARD = flags.DEFINE_integer("shard_equations", None, "Equations per shard.", 1, flag_values=FLAGS)
EXCLUDE = flags.DEFINE_string(
  "exclude", str(defaults.EXCLUDED_PROBLEMS),
  "CSV of problems to keep out, or several with commas between, `fresh` among them (see data_gen.generate); empty for "
  "none.", flag_values=FLAGS)
