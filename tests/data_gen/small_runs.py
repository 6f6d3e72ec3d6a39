"""Small data sets made in this process: what a pool of processes makes must be equal to them."""

from collections.abc import Iterator
import itertools
from pathlib import Path

from configs.data import univariate
from data_gen import config as config_lib, job as job_lib, workers

ROOT = Path(__file__).parents[2]
# The same job as the command's flags and as arguments.
FLAGS = [f"--config={ROOT}/configs/data/univariate.py", "--simplify=rules", "--equations=300", "--validation=60",
         "--seed=3", "--shard_equations=100"]


class InProcess:
  """What `workers.Pool` does, without its processes."""

  def __init__(self, generator, skip=None):
    self.generator, self.skip = generator, skip or {}

  def outcomes(self, start: int) -> Iterator[tuple[int, workers.Outcome]]:
    size = workers.CHUNK_CANDIDATES
    for begin in itertools.count(start - start % size, size):
      skipped = tuple(i for i in self.skip if begin <= i < begin + size)
      outcomes = workers.make_chunk(self.generator, workers._Task(begin, begin + size, skipped), [0, 0])
      for index, outcome in enumerate(outcomes, begin):
        if index >= start:
          yield index, self.skip.get(index) or outcome


def small_job(out: Path, *, seed: int = 3, num_train: int = 300, **settings) -> job_lib.Job:
  """The job of `FLAGS`."""
  changes = {"simplify": "rules", "shard_equations": 100}
  config = config_lib.from_dict({**univariate.get_config().to_dict(), **changes})
  return job_lib.Job(config, str(out), num_train, settings.pop("num_validation", 60), seed, **settings)


def make(job: job_lib.Job) -> Path:
  """Runs a job in this process; returns the folder of its shards."""
  writer, generator = job.prepare()
  job_lib.fill(writer, InProcess(generator, writer.lost))
  return job.folder


def contents(folder: Path) -> dict[str, bytes]:
  """All files below a folder, by name."""
  return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
