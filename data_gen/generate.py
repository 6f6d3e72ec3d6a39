"""The command that generates a data set; the same command again continues an interrupted run.

python -m data_gen.generate --config=configs/data/univariate.py --out=DIR --equations=1000000 --workers=8 --seed=1
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "data_gen.flags.generate")

import math
import sys
import time

from data_gen import config as config_lib, job as job_lib, writer as writer_lib
from data_gen.candidates import EXCLUDED
from data_gen.flags import generate as asked
from data_gen.workers import Pool
from symformer_jax.commands import runner
from symformer_jax.errors import InputError

# A manifest lists every shard, finished or not; a worker is a process.
_MOST_EQUATIONS, _MOST_WORKERS = 10**10, 4096


def _read_job() -> job_lib.Job:
  path, out = runner.required(asked.CONFIG), runner.required(asked.OUT)
  num_equations = runner.required(asked.EQUATIONS)
  runner.refuse_empty(asked.CONFIG, asked.OUT, asked.LOST, *([asked.AGAINST] if asked.AGAINST.present else []))
  for flag, least, most in ((asked.EQUATIONS, 1, _MOST_EQUATIONS), (asked.VALIDATION, 0, _MOST_EQUATIONS),
                            (asked.WORKERS, 1, _MOST_WORKERS), (asked.SEED, 0, 2**63 - 1)):
    value = runner.required(flag)
    if value < least:
      raise InputError(f"--{flag.name} must be at least {least}, got {value}")
    if value > most:
      raise InputError(f"--{flag.name} must be at most {most}, got {value}")
  config = config_lib.load_config(
    path, {"simplify": asked.SIMPLIFY.value, "shard_equations": asked.SHARD.value})
  return job_lib.Job(config, out, num_equations, asked.VALIDATION.value, asked.SEED.value,
                     asked.EXCLUDE.value or None, tuple(asked.AGAINST.value), asked.LOST.value)


class _Progress:
  """A line on a terminal, one every minute elsewhere."""

  def __init__(self, writer: writer_lib.Writer, total: int):
    self._writer, self._total = writer, total
    self._start, self._start_count = time.monotonic(), writer.num_accepted
    self._last = -math.inf
    self._is_terminal = sys.stderr is not None and sys.stderr.isatty()

  def show(self, *, force: bool = False) -> None:
    now = time.monotonic()
    if asked.QUIET.value or sys.stderr is None or not force and now - self._last < (0.5 if self._is_terminal else 60):
      return
    self._last = now
    accepted = self._writer.num_accepted
    elapsed_s = now - self._start
    rate = (accepted - self._start_count) / elapsed_s if elapsed_s else 0.0
    left = f"{(self._total - accepted) / rate / 60:.1f} min left, " if rate else ""  # of none nothing can be told
    rejected = self._writer.counts.copy()
    rejected.pop("accepted", None)
    rules = ", ".join(f"{rule} {count}" for rule, count in rejected.most_common(3))
    text = (f"{accepted}/{self._total} equations, {rate:.1f}/s, {left}"
            f"{rejected.total()} rejected ({rules}, ...)")
    line = f"\r{text:<110}" if self._is_terminal else f"{text}\n"
    print(line, end="", file=sys.stderr, flush=True)


def _generate(job: job_lib.Job) -> None:
  writer, generator = job.prepare()
  if writer.is_done:
    _say(f"{job.folder} is complete: {writer.num_written} equations")
    return
  if writer.num_written:
    _say(f"continuing after {writer.num_written} equations")
  progress = _Progress(writer, job.num_train + job.num_validation)
  with Pool(generator, runner.required(asked.WORKERS), skip=writer.lost) as pool:
    job_lib.fill(writer, pool, progress.show)
  progress.show(force=True)
  met = {rule.removeprefix(EXCLUDED): count for rule, count in writer.counts.items() if rule.startswith(EXCLUDED)}
  _say(f"\nwrote {writer.num_written} equations to {job.folder}; of {len(set(generator.problems.names))} problems to "
       f"keep out {len(met)} were met, and dropped {sum(met.values())} times")


def _say(text: str) -> None:
  if not asked.QUIET.value:
    runner.say(text)


def main(argv: list[str]) -> int:
  """Exit codes: 0 done; 1 ended by a fault on the way, such as a full disk, 2 unusable arguments or folder (one line
  says why); 1 and 75, stopped, are resumable.
  """
  del argv
  job = _read_job()
  try:
    with job.claimed():
      _generate(job)
  except OSError as error:
    runner.say(runner.one_line(f"error: {job.describe_fault(error)}"))
    return runner.SOME_FAILED
  except KeyboardInterrupt:  # SIGTERM as well
    runner.say("stopped; the same command continues")
    return runner.STOPPED
  return runner.DONE


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS)
