"""The command that generates a data set with Apache Beam (extra [beam]): the bytes are those of data_gen.generate.

python -m data_gen.beam --runner=DirectRunner --config=configs/data/univariate.py --out=DIR --equations=N --seed=1
    [--spans=gs://BUCKET/spans] [-- flags of Beam and its runner]

Workers make candidates, which is nearly all of the work, and put the outcomes of every span of them into a file; this
process then gives them to the writer in order, as data_gen.generate does. It goes in rounds, since nobody knows how
many candidates it takes. The same command again uses the spans that are there.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "data_gen.flags.beam")

from collections.abc import Iterator
import json
import math
import os
from typing import Any
import uuid

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
import numpy as np

from data_gen import config as config_lib, job as job_lib, writer as writer_lib
from data_gen.candidates import Equation, Generator
from data_gen.flags import beam as asked
from data_gen.workers import CHUNK_CANDIDATES, Outcome, Pool
from symformer_jax import installation
from symformer_jax.commands import runner

# Some five seconds of a core in the setting `fast`: far more than Beam spends on an element.
SPAN_CANDIDATES = 16 * CHUNK_CANDIDATES
# Share of candidates that are accepted, until the run itself tells.
EXPECTED_ACCEPTED = 0.45
# A round is cut off here, so that this process begins to write.
MAX_SPANS = 1 << 16


class _MakeSpan(beam.DoFn):
  """Makes the candidates of a span in a protected process of its own, and writes their outcomes to a file."""

  def __init__(self, generator: Generator, lost: dict[int, str], folder: str):
    self._generator, self._lost, self._folder = generator, lost, folder
    self._pool: Pool | None = None

  def __reduce__(self) -> tuple[Any, ...]:
    """As workers read it, whose installed package has the programs in a folder of its own."""
    return installation.dump("data_gen.beam", "_MakeSpan", self._generator, self._lost, self._folder)

  def setup(self) -> None:
    self._pool = Pool(self._generator, 1, skip=self._lost)

  def process(self, start: int) -> Iterator[int]:
    assert self._pool is not None, "Beam calls setup first"
    outcomes = [encode(outcome) for _, outcome in self._pool.outcomes(start, start + SPAN_CANDIDATES)]
    temporary = f"{_span_path(self._folder, start)}.{uuid.uuid4().hex}.tmp"
    with FileSystems.create(temporary) as file:
      file.write(json.dumps(outcomes).encode())
    FileSystems.rename([temporary], [_span_path(self._folder, start)])
    yield start

  def teardown(self) -> None:
    if self._pool:
      self._pool.__exit__()


def encode(outcome: Outcome) -> str | list:
  """An outcome as JSON knows it."""
  if isinstance(outcome, str):
    return outcome
  return [outcome.ids.hex(), outcome.constants.hex(), outcome.domain.tolist(), outcome.function, outcome.skeleton]


def decode(value: str | list) -> Outcome:
  """The inverse of `encode`."""
  if isinstance(value, str):
    return value
  ids, constants, domain, function, skeleton = value
  return Equation(bytes.fromhex(ids), bytes.fromhex(constants), np.array(domain), function, skeleton)


def _span_path(folder: str, start: int) -> str:
  return FileSystems.join(folder, f"{start:015d}.json")


class _Spans:
  """Finished spans as a pool of outcomes."""

  def __init__(self, folder: str, starts: range):
    self._folder, self._starts = folder, starts

  def outcomes(self, start: int) -> Iterator[tuple[int, Outcome]]:
    """`(index, outcome)` from candidate `start` to the last of the spans."""
    for begin in self._starts:
      with FileSystems.open(_span_path(self._folder, begin)) as file:
        values = json.loads(file.read())
      for index, value in enumerate(values, begin):
        if index >= start:
          yield index, decode(value)


def generate(job: job_lib.Job, folder: str, options: list[str]) -> None:
  """Runs a job in rounds until all its shards are written, then removes the spans.

  Args:
    folder: of the spans.
    options: arguments for Beam.
  """
  writer, generator = job.prepare()
  if writer.is_done:
    return
  if not FileSystems.exists(folder):
    FileSystems.mkdirs(folder)
  while not writer.is_done:
    starts = _plan_round(writer, job.num_train + job.num_validation)
    there = set(_list(folder))
    missing = [start for start in starts if _span_path(folder, start) not in there]
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
      make = _MakeSpan(generator, writer.lost, folder)
      _ = pipeline | beam.Create(missing) | beam.Reshuffle() | beam.ParDo(make)
    job_lib.fill(writer, _Spans(folder, starts))
  FileSystems.delete(_list(folder))
  if os.path.isdir(folder):  # object stores have no folders
    os.rmdir(folder)


def _list(folder: str) -> list[str]:
  """Paths of all files in a folder."""
  return [file.path for file in FileSystems.match([FileSystems.join(folder, "*")])[0].metadata_list]


def _plan_round(writer: writer_lib.Writer, total: int) -> range:
  """First candidates of the spans that should suffice for what is missing."""
  tried = writer.counts.total()
  share = writer.counts["accepted"] / tried if tried and writer.counts["accepted"] else EXPECTED_ACCEPTED
  num_spans = min(math.ceil(1.02 * (total - writer.num_accepted) / share / SPAN_CANDIDATES), MAX_SPANS)
  first = writer.next_candidate - writer.next_candidate % SPAN_CANDIDATES
  return range(first, writer.next_candidate + num_spans * SPAN_CANDIDATES, SPAN_CANDIDATES)


def main(argv: list[str]) -> int:
  path, out = runner.required(asked.CONFIG), runner.required(asked.OUT)
  num_equations = runner.required(asked.EQUATIONS)
  config = config_lib.load_config(
    path, {"simplify": asked.SIMPLIFY.value, "shard_equations": asked.SHARD.value})
  job = job_lib.Job(config, out, num_equations, asked.VALIDATION.value, asked.SEED.value, asked.EXCLUDE.value or None)
  options = [f"--runner={asked.RUNNER.value}", *argv[1:]]
  if asked.RUNNER.value == "DirectRunner":
    # No trigger is used here; without this Beam fetches a runner written in Go from the network first.
    options.append("--allow_unsafe_triggers")
  try:
    with job.claimed():
      generate(job, asked.SPANS.value or str(job.folder / "spans"), options)
  except OSError as error:
    runner.say(runner.one_line(f"error: {job.describe_fault(error)}"))
    return runner.SOME_FAILED
  return runner.DONE


if __name__ == "__main__":
  # By its importable name: Beam sends _MakeSpan to its workers, which have no module of the name __main__.
  from data_gen import beam as command

  runner.run(command.main, flag_values=asked.FLAGS, takes_arguments=True)
