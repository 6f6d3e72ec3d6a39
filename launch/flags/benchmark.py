"""The flags of launch.benchmark: light, so that --help waits for nothing."""

from absl import flags
from ml_collections import config_flags

PARTS = ("generate", "interpret", "refine", "named", "memory", "snap", "decode", "train", "infer", "chance")

# Flags that some parts alone read.
PARTS_OF = {"trees": "generate", "config": "train", "devices": "train"}

FLAGS = flags.FLAGS
WHAT = flags.DEFINE_enum("what", None, PARTS, "The part to measure.")
OUT = flags.DEFINE_string("out", None, "JSON file of the figures; they are printed in any case.")
TREES = flags.DEFINE_integer("trees", 1000, "Fresh trees on which `generate` compares its settings.", 1)
CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file that `train` measures, with overrides as in launch.train; default: configs/small.py.")
DEVICES = flags.DEFINE_integer(
  "devices", None, "Compile the step of `train` for so many forced CPU devices, run nothing, report on it.", 1, 4096)
