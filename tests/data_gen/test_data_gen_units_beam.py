"""What the command for Beam plans, writes and reads, with files in place of Beam's."""

from collections import Counter
import functools
import io
import os
import pathlib
import runpy
import signal
import sys
import types

import numpy as np
import pytest

from configs.data import univariate
from data_gen.candidates import Equation


class Match:
  def __init__(self, pattern):
    folder, _, name = pattern.rpartition("/")
    self.metadata_list = [types.SimpleNamespace(path=str(path)) for path in sorted(pathlib.Path(folder).glob(name))]


class Files:
  """Of Beam's `FileSystems` what is used, on this machine."""

  join = staticmethod(lambda *parts: "/".join(parts))
  create = staticmethod(functools.partial(open, mode="wb"))
  open = staticmethod(lambda path: io.BytesIO(pathlib.Path(path).read_bytes()))
  exists = staticmethod(os.path.exists)
  mkdirs = staticmethod(os.makedirs)
  delete = staticmethod(lambda paths: [os.remove(path) for path in paths])
  match = staticmethod(lambda patterns: [Match(pattern) for pattern in patterns])

  @staticmethod
  def rename(old, new):
    for one, other in zip(old, new, strict=True):
      pathlib.Path(one).rename(other)


@pytest.fixture
def command(monkeypatch):
  modules = {"apache_beam": {"DoFn": object}, "apache_beam.io": {}, "apache_beam.options": {},
             "apache_beam.io.filesystems": {"FileSystems": Files},
             "apache_beam.options.pipeline_options": {"PipelineOptions": list}}
  for name, content in modules.items():
    module = types.ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)
  monkeypatch.delitem(sys.modules, "data_gen.beam", raising=False)
  from data_gen import beam
  yield beam
  sys.modules.pop("data_gen.beam", None)
  vars(sys.modules["data_gen"]).pop("beam", None)


EQUATION = Equation(b"\x01\x02", np.array([0.5, 0], np.float32).tobytes(), np.array([[0.0, 5.0]]), 2**63 + 1, 7)


def test_outcomes_come_back_from_json(command):
  again = command.decode(command.encode(EQUATION))
  assert again[:2] == EQUATION[:2] and again[3:] == EQUATION[3:] and (again.domain == EQUATION.domain).all()
  assert command.decode(command.encode("too_long")) == "too_long"


def writer(next_candidate, accepted, rejected, num_accepted):
  counts = Counter(accepted=accepted, too_long=rejected) if accepted + rejected else Counter()
  return types.SimpleNamespace(counts=counts, num_accepted=num_accepted, next_candidate=next_candidate)


def test_a_round_has_the_spans_that_should_suffice(command):
  span = command.SPAN_CANDIDATES
  assert span == 1024
  # Nothing is known: 45 of 100 are accepted; two of a hundred more are made than that.
  plan = command._plan_round(writer(0, 0, 0, 0), 10_000)
  assert plan == range(0, 23 * span, span)  # 22667 candidates
  # The run tells: a half; of 1000 missing 2040 are made.
  plan = command._plan_round(writer(3 * span + 5, 500, 500, 9_000), 10_000)
  assert plan.start == 3 * span and plan.step == span and len(plan) == 3
  assert command._plan_round(writer(0, 0, 700, 0), 10_000) == range(0, 23 * span, span)
  most = command._plan_round(writer(0, 0, 0, 0), 10**10)
  assert len(most) == 65536


def test_spans_are_read_in_order_from_any_candidate_on(command, tmp_path):
  for begin in (0, 1024):
    (tmp_path / f"{begin:015d}.json").write_text('["a", "b", "c"]')
  spans = command._Spans(str(tmp_path), range(0, 2048, 1024))
  assert list(spans.outcomes(1)) == [(1, "b"), (2, "c"), (1024, "a"), (1025, "b"), (1026, "c")]
  assert [pathlib.Path(path).name for path in command._list(str(tmp_path))] == [
    "000000000000000.json", "000000000001024.json"]


def test_a_span_is_written_whole_by_a_pool_of_one(command, tmp_path, monkeypatch):
  made = []

  class Pool:
    def __init__(self, generator, num_workers, *, skip):
      made.append((generator, num_workers, skip))

    def outcomes(self, start, stop):
      made.append((start, stop))
      return iter([(start, "a"), (start + 1, EQUATION)])

    def __exit__(self, *_):
      made.append("closed")
  monkeypatch.setattr(command, "Pool", Pool)
  make = command._MakeSpan("generator", {3: "died"}, str(tmp_path))
  make.teardown()  # of one that was never set up
  make.setup()
  assert list(make.process(2048)) == [2048]
  make.teardown()
  assert made == [("generator", 1, {3: "died"}), (2048, 3072), "closed"]
  assert [path.name for path in tmp_path.iterdir()] == ["000000000002048.json"]
  [(_, first), (_, second)] = command._Spans(str(tmp_path), range(2048, 3072, 1024)).outcomes(0)
  assert first == "a" and second.function == EQUATION.function


def test_rounds_make_the_spans_that_are_missing_until_all_is_written(command, tmp_path, monkeypatch):
  folder, made, filled = str(tmp_path / "spans"), [], []

  class Writer:
    lost, is_done = {}, False

  class Pipeline:
    def __init__(self, *, options):
      made.append([options])

    def __enter__(self):
      return self

    def __exit__(self, *_):
      for start in made[-1][1]:
        pathlib.Path(command._span_path(folder, start)).write_text("[]")

    def __or__(self, step):
      made[-1] = [*made[-1], step]
      return self
  monkeypatch.setattr(command.beam, "Pipeline", Pipeline, raising=False)
  for name, step in (("Create", list), ("Reshuffle", tuple), ("ParDo", lambda make: make)):
    monkeypatch.setattr(command.beam, name, step, raising=False)
  plans = iter([range(0, 2048, 1024), range(1024, 4096, 1024)])
  asked = []
  monkeypatch.setattr(command, "_plan_round", lambda writer, total: asked.append(total) or next(plans))
  writer_ = Writer()

  def fill(writer, spans):
    filled.append(spans._starts)
    writer.is_done = len(filled) == 2
  monkeypatch.setattr(command.job_lib, "fill", fill)
  job = types.SimpleNamespace(num_train=7, num_validation=3, prepare=lambda: (writer_, "generator"))
  command.generate(job, folder, ["--runner=x"])
  assert asked == [10, 10] and filled == [range(0, 2048, 1024), range(1024, 4096, 1024)]
  assert made[0][0] == ["--runner=x"] and [run[1] for run in made] == [[0, 1024],
    [2048, 3072]] and not pathlib.Path(folder).exists()
  command.generate(job, folder, [])  # of what is done nothing is made
  assert len(made) == 2


@pytest.fixture
def as_program(command, monkeypatch):
  """Runs the file as a program, without its rounds: `(exit code, (job, folder, options) of each call)`."""
  handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
  given = []
  monkeypatch.setattr(command, "generate", lambda *arguments: given.append(arguments))

  def run(*argv):
    monkeypatch.setattr(sys, "argv", ["beam", *argv])
    try:
      with pytest.raises(SystemExit) as ended:
        runpy.run_path(command.__file__, run_name="__main__")
    finally:
      for number, handler in handlers.items():
        signal.signal(number, handler)
      command.asked.FLAGS.unparse_flags()
      for name in command.asked.FLAGS:
        command.asked.FLAGS[name].unparse()
    return ended.value.code, given
  return run


def test_what_follows_the_flags_goes_to_beam_and_its_runner(as_program, tmp_path):
  needed = [f"--config={univariate.__file__}", f"--out={tmp_path}", "--equations=7"]
  code, [(job, folder, options)] = as_program(*needed, "--", "--streaming", "--region=x")
  assert code == 0 and options == ["--runner=DirectRunner", "--streaming", "--region=x", "--allow_unsafe_triggers"]
  assert (job.num_train, job.num_validation, job.seed) == (7, 0, 0) and job.excluded.endswith("excluded.csv")
  assert folder == str(job.folder / "spans") and job.folder.is_relative_to(tmp_path)
  assert job.config.simplify == univariate.get_config().simplify
  code, [_, (job, folder, options)] = as_program(
    *needed, "--runner=SparkRunner", "--spans=/other", "--validation=2", "--seed=3", "--exclude=", "--simplify=rules",
    "--shard_equations=5")
  assert code == 0 and options == ["--runner=SparkRunner"] and folder == "/other" and job.excluded is None
  assert (job.num_validation, job.seed, job.config.simplify, job.config.shard_equations) == (2, 3, "rules", 5)


def test_a_place_that_cannot_be_written_is_one_line(command, as_program, monkeypatch, tmp_path, capsys):
  def fail(*_):
    raise OSError(28, "No space left on device")
  monkeypatch.setattr(command, "generate", fail)
  code, _ = as_program(f"--config={univariate.__file__}", f"--out={tmp_path}", "--equations=7")
  err = capsys.readouterr().err
  assert code == 1 and err.startswith(f"error: cannot write to {tmp_path}") and "No space left" in err
  assert as_program("--equations=7")[0] == 2 and "--config is required" in capsys.readouterr().err
