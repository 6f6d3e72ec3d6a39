"""The flags of launch.train: light, so that --help waits for nothing."""

from absl import flags
from ml_collections import config_flags

FLAGS = flags.FLAGS
CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file with get_config(); override its values by --config.a.b=v.")
WORKDIR = flags.DEFINE_string("workdir", None, "Folder of checkpoints and curves; again = resume.")
MAX_MINUTES = flags.DEFINE_float("max_minutes", None, "Save and stop after so many minutes.")
DISTRIBUTED = flags.DEFINE_bool("distributed", False, "Join the hosts of the cluster job this command runs in.")
COORDINATOR = flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, where no cluster is detected.")
NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "Processes of the run, with --coordinator.", 1)
PROCESS_ID = flags.DEFINE_integer("process_id", None, "Number of this process, from 0, with --coordinator.", 0)
