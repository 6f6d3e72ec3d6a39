"""The flags of data_gen.generate: light, so that --help waits for nothing."""

import os

from absl import flags

from data_gen import defaults

FLAGS = flags.FlagValues()
CONFIG = flags.DEFINE_string(
  "config", None, "Python file with get_config(), such as configs/data/univariate.py.", flag_values=FLAGS)
OUT = flags.DEFINE_string(
  "out", None, "Folder to write to; shards lie below it in symformer_equations/NAME/1.0.0.", flag_values=FLAGS)
EQUATIONS = flags.DEFINE_integer("equations", None, "Training equations to generate.", flag_values=FLAGS)
VALIDATION = flags.DEFINE_integer(
  "validation", 0, "Validation equations, none of which computes what a training equation does.", flag_values=FLAGS)
WORKERS = flags.DEFINE_integer(
  "workers", os.cpu_count(), "Processes. The output does not depend on it.", flag_values=FLAGS)
SEED = flags.DEFINE_integer("seed", 0, "Every seed gives another stream of equations.", flag_values=FLAGS)
SIMPLIFY = flags.DEFINE_enum(
  "simplify", None, defaults.SIMPLIFIERS, "Overrides the config's setting.", flag_values=FLAGS)
SHARD = flags.DEFINE_integer(
  "shard_equations", None, "Equations per shard; overrides the config's.", flag_values=FLAGS)
EXCLUDE = flags.DEFINE_string(
  "exclude", str(defaults.EXCLUDED_PROBLEMS),
  "CSV of problems (family,name,n_vars,expression) to keep out, or several with commas between, `fresh` among them for "
  "the equations of the paper's generator that ship as a list; empty for none.",
  flag_values=FLAGS)
AGAINST = flags.DEFINE_list(
  "against", [], "Folders of other runs, whose functions are kept out of this one.", flag_values=FLAGS)
LOST = flags.DEFINE_string(
  "lost", None, "manifest.json of another run of the same config and seed: what it lost to time or memory limits "
  "is dropped here too, so that the bytes are the same.", flag_values=FLAGS)
QUIET = flags.DEFINE_bool("quiet", False, "Print errors only.", flag_values=FLAGS)
