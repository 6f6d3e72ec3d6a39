"""The commands of launch: what their flags take, what they write and how they end, with what they call stood in for."""

import functools
import json
import logging
import pathlib
import runpy
import sys
import types

from absl import flags as absl_flags
from absl.testing import flagsaver
from launch_calls import call
from ml_collections import config_flags
import pytest

from launch import card, export, train, validate
from launch.flags import (
  card as card_flags,
  evaluate as evaluate_flags,
  export as export_flags,
  train as train_flags,
  validate as validate_flags,
)
from symformer_jax import compilation
from symformer_jax.commands import runner, startup
from symformer_jax.errors import InputError

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture
def benchmark(monkeypatch):
  """launch.benchmark with flags of its own: its names are those of other commands too."""
  values = absl_flags.FlagValues()
  monkeypatch.setattr(absl_flags, "FLAGS", values)
  for module, names in ((absl_flags, ("DEFINE_enum", "DEFINE_string", "DEFINE_integer")),
                        (config_flags, ("DEFINE_config_file",))):
    for name in names:
      monkeypatch.setattr(module, name, functools.partial(getattr(module, name), flag_values=values))
  names = ("launch.flags.benchmark", "launch.benchmark")
  for name in names:
    monkeypatch.delitem(sys.modules, name, raising=False)
  from launch import benchmark, flags
  from launch.flags import benchmark as own_flags
  assert own_flags.FLAGS is values
  yield benchmark
  for name in names:
    sys.modules.pop(name, None)
  for package, name in ((flags, "benchmark"), (sys.modules["launch"], "benchmark")):
    if hasattr(package, name):
      delattr(package, name)


# --- flags -------------------------------------------------------------------------------------------------------


def defaults(module):
  """What each flag of a module has where nothing is given, and the least and greatest that it takes."""
  found = {}
  for holder in (value for value in vars(module).values() if isinstance(value, absl_flags.FlagHolder)):
    flag = holder._flagvalues[holder.name]
    bounds = [getattr(flag.parser, name, None) for name in ("lower_bound", "upper_bound")]
    found[holder.name] = (flag.default, *(bounds if bounds != [None, None] else ()))
  return found


@pytest.mark.parametrize(("module", "expected"), [
  (card_flags, {"model": (None,), "results": (None,), "hardware": (None,), "weakness": (None,)}),
  (export_flags, {"workdir": (None,), "name": (None,), "out": (None,), "which": ("newest",), "seen": (None,),
                  "by_name_only": (False,), "bits": ("16",)}),
  (train_flags, {"config": (None,), "workdir": (None,), "max_minutes": (None,), "distributed": (False,),
                 "coordinator": (None,), "num_processes": (None, 1, None), "process_id": (None, 0, None)}),
  (validate_flags, {"model": (None,), "data": (None,), "num_equations": (512, 1, None)}),
  (evaluate_flags, {
    "suite": (None,), "problems": (None,), "list": (None,), "model": ("auto",), "out": (None,), "data": (None,),
    "variables": (1, 1, 2), "num_equations": (None, 1, None), "skip": (0, 0, None), "samples": (None, 1, None),
    "top_k": (None, 1, None), "refine": (None,), "recombine": (None,), "search_config": (None,),
    "seeds": (1, 1, None), "noise": (None, 0.0, None), "baseline": ([],), "baseline_python": (None,),
    "predictions": (None,), "seen": ([],), "sets": ("all",), "max_abs_value": (None, 0.0, None),
    "max_time": (None, 0.0, None)})])
def test_flags_have_defaults_and_bounds(module, expected):
  assert defaults(module) == expected


@pytest.mark.parametrize("module", [card_flags, export_flags, validate_flags])
def test_flags_of_small_commands_are_their_own(module):
  assert not {name for name in defaults(module) if name not in module.FLAGS}
  assert set(module.FLAGS) == set(defaults(module))


def test_the_flags_of_the_benchmark(benchmark):
  assert defaults(benchmark.asked) == {"what": (None,), "out": (None,), "trees": (1000, 1, None), "config": (None,),
                                       "devices": (None, 1, 4096)}
  folder = ROOT / "launch" / "benchmarks"
  assert {path.stem for path in folder.glob("*.py")} - {"__init__", "candidates"} == set(benchmark.asked.PARTS)


# --- benchmark ---------------------------------------------------------------------------------------------------


def test_a_benchmark_is_written_with_its_circumstances(benchmark, tmp_path, monkeypatch, capsys):
  updated = {}
  part = types.SimpleNamespace(run=lambda: {"seconds": 1.5})
  for name in ("refine", "train"):
    monkeypatch.setitem(sys.modules, f"launch.benchmarks.{name}", part)
  monkeypatch.setattr(benchmark.importlib.util, "find_spec", lambda name: None if name.endswith("snap") else name)
  monkeypatch.setattr(benchmark.jax, "config", types.SimpleNamespace(update=updated.__setitem__))
  monkeypatch.setattr(benchmark.os, "getloadavg", lambda: (1.25, 2.5, 5.0))
  with pytest.raises(InputError, match="--what is missing: expected one of generate, interpret, refine"):
    call(benchmark)
  with pytest.raises(InputError, match="there is no benchmark of 'snap' yet"):
    call(benchmark, what="snap")
  with pytest.raises(InputError, match="--out: expected a value, got nothing"):
    call(benchmark, what="refine", out="")
  assert call(benchmark, what="refine") == 0 and not updated
  for given, part in (({"devices": 3}, "train"), ({"config": "configs/tiny.py"}, "train"), ({"trees": 9}, "generate")):
    with pytest.raises(InputError, match=f"--{next(iter(given))}: says nothing without --what={part}"):
      call(benchmark, what="refine", **given)
  assert call(benchmark, what="train", out=tmp_path / "f.json", devices=3) == 0
  assert updated == {"jax_platforms": "cpu", "jax_num_cpu_devices": 3}
  text = (tmp_path / "f.json").read_text()
  found = json.loads(text)
  assert text.startswith('{\n  "what": "train",\n') and found["results"] == {"seconds": 1.5}
  assert found["python"] == ".".join(map(str, sys.version_info[:3])) and found["num_cores"] >= 1
  assert found["load"] == 1.25 and found["device"] == "cpu"  # that of the last minute


def test_outside_a_checkout_a_benchmark_has_no_commit(benchmark, monkeypatch):
  asked = []

  def run(command, **options):
    asked.append((command, options))
    return types.SimpleNamespace(stdout="" if len(asked) > 1 else "abc123\n")
  monkeypatch.setattr(benchmark.subprocess, "run", run)
  call_flags = benchmark.asked.FLAGS
  call_flags(["benchmark", "--what=refine"])
  assert benchmark._circumstances()["commit"] == "abc123" and benchmark._circumstances()["commit"] is None
  assert asked[0] == (["git", "rev-parse", "--short", "HEAD"], {"capture_output": True, "text": True, "check": False})
  load = benchmark.os.getloadavg
  monkeypatch.setattr(benchmark.os, "getloadavg", lambda: (1.0, 2.0, 3.0))
  assert load and benchmark._circumstances()["load"] == 1.0


# --- validate ----------------------------------------------------------------------------------------------------


def test_losses_by_number_of_variables_are_a_table(monkeypatch, capsys):
  asked = []
  monkeypatch.setattr(validate.compilation, "use_cache", lambda: None)
  monkeypatch.setattr(validate.registry, "load_model", lambda name: f"model {name}")
  figures = {"equations": 7, "cross_entropy": 1.23456, "token_accuracy": 0.5, "constant_mse": 0.0019}

  def measure(model, data, *, num_equations):
    asked.append((model, data, num_equations))
    return {1: figures, 2: figures}
  monkeypatch.setattr(validate.evaluation, "measure_by_variables", measure)
  assert call(validate, model="m", data="a,b", num_equations=9) == runner.DONE
  assert asked == [("model m", ["a", "b"], 9)]
  for given, said in (({"data": "a,"}, "--data: expected a value between two commas"), ({"data": ""}, "--data: exp"),
                      ({"model": ""}, "--model: expected a value")):  # nothing would be this folder
    with pytest.raises(InputError, match=said):
      call(validate, **{"model": "m", "data": "a"} | given)
  assert capsys.readouterr().out.splitlines() == [
    "| variables | equations | cross entropy | token accuracy | squared error of mantissas |",
    "|---|---|---|---|---|", "| 1 | 7 | 1.235 | 0.500 | 0.002 |", "| 2 | 7 | 1.235 | 0.500 | 0.002 |"]


# --- train -------------------------------------------------------------------------------------------------------


@pytest.fixture
def training(monkeypatch, tmp_path):
  """launch.train with a loop that does nothing; what it was asked."""
  asked = {}
  monkeypatch.setattr(train.compilation, "use_cache", lambda: None)
  monkeypatch.setattr(train.configuration, "build", lambda kind, values: types.SimpleNamespace(init_from="", seed=3))
  monkeypatch.setattr(train.config_flag, "read", lambda flag: {})
  monkeypatch.setattr(train.configuration, "to_dict", lambda config: {"seed": config.seed})

  class Stop:
    is_asked = False

    def is_set(self):
      return Stop.is_asked
  monkeypatch.setattr(train.runner, "StopRequest", Stop)
  monkeypatch.setattr(train.loop, "set_up", lambda config, workdir, params: asked.update(
    workdir=workdir, params=params) or types.SimpleNamespace(state=types.SimpleNamespace(step=7)))

  def run(run, *, should_stop):
    asked.update(should_stop=should_stop, is_late=should_stop())
    return asked.get("is_complete", True)
  monkeypatch.setattr(train.loop, "train", run)
  monkeypatch.setattr(train.loop, "close", lambda run: asked.update(closed=True))

  def main(**flags):
    with flagsaver.flagsaver():
      values = train.asked.FLAGS
      if not values.is_parsed():
        values(["train"])
      for name, value in {"config": "c", "workdir": str(tmp_path / "w"), **flags}.items():
        values[name].value = value
      return train.main([])
  return main, asked, Stop, tmp_path / "w"


def test_training_writes_its_config_and_ends_as_it_was_asked(training, monkeypatch):
  main, asked, stop, workdir = training
  now = [100.0]
  monkeypatch.setattr(train.time, "monotonic", lambda: now[0])
  assert main() == runner.DONE and asked["closed"] and asked["params"] is None and not asked["is_late"]
  assert (workdir / "config.json").read_text() == '{\n "seed": 3\n}'
  now[0] = 1e300
  assert not asked["should_stop"]()  # there is no limit
  now[0] = 100.0
  assert main(max_minutes=2.0) == runner.DONE and not asked["is_late"]
  now[0] = 220.0
  assert not asked["should_stop"]()
  now[0] = 220.1
  assert asked["should_stop"]()
  now[0], asked["is_complete"] = 100.0, False
  assert main() == runner.DONE  # its time was over
  stop.is_asked = True
  assert main() == runner.STOPPED and asked["is_late"]
  asked["is_complete"] = True
  assert main() == runner.DONE


@pytest.mark.parametrize("minutes", [-1.0, 0.0, -float("inf")])
def test_a_training_of_no_time_is_refused_and_makes_no_folder(training, minutes):
  main, asked, _, workdir = training
  with pytest.raises(InputError, match=f"^--max_minutes: expected a positive number, got {minutes:g}$"):
    main(max_minutes=minutes)
  assert not asked and not workdir.exists()


def test_a_training_that_is_refused_leaves_no_folder(training, monkeypatch):
  main, _, _, workdir = training

  def refuse(*_):
    raise InputError("no training data")
  monkeypatch.setattr(train.loop, "set_up", refuse)
  with pytest.raises(InputError, match="no training data"):
    main()
  assert not workdir.exists()
  workdir.mkdir()
  with pytest.raises(InputError, match="no training data"):
    main()
  assert workdir.exists()  # it was there


def test_curves_that_cannot_be_written_are_not_tried_again(training, monkeypatch):
  main, asked, _, _ = training
  run = types.SimpleNamespace(curves=types.SimpleNamespace(abandon=lambda: asked.update(abandoned=True)))
  monkeypatch.setattr(train.loop, "set_up", lambda *_: run)
  for name in ("close", "train"):
    asked.clear()

    def fail(*_, **__):
      raise OSError(28, "No space left on device")
    monkeypatch.setattr(train.loop, name, fail)
    with pytest.raises(OSError, match="No space left"):
      main()
    assert asked.pop("abandoned")


def test_only_the_first_process_writes_the_config(training, monkeypatch):
  main, _, _, workdir = training
  monkeypatch.setattr(train.processes, "is_first", lambda: False)
  assert main() == runner.DONE and not (workdir / "config.json").exists()
  with pytest.raises(InputError, match="--workdir: expected a value, got nothing"):
    main(workdir="")

  def fail(*_):
    raise PermissionError(13, "Permission denied", "f")
  monkeypatch.setattr(train.loop, "set_up", fail)
  with pytest.raises(InputError, match="cannot use f: Permission denied"):
    main()

  def fail_at_a_folder(*_):
    raise IsADirectoryError(21, "Is a directory", "metrics.jsonl")
  monkeypatch.setattr(train.loop, "set_up", fail_at_a_folder)
  with pytest.raises(InputError, match=r"cannot use metrics\.jsonl: Is a directory"):
    main()

  def fail_at_a_full_disk(*_):
    raise OSError(28, "No space left on device", "metrics.jsonl")
  monkeypatch.setattr(train.loop, "set_up", fail_at_a_full_disk)
  with pytest.raises(OSError, match="No space left on device"):  # no argument is wrong
    main()


def test_hosts_are_joined_by_hand_or_as_the_cluster_says(monkeypatch):
  started, levels = [], []
  monkeypatch.setattr(train.processes, "start", lambda **given: started.append(given))
  monkeypatch.setattr(train.processes, "is_first", lambda: len(started) != 2)
  monkeypatch.setattr(train.logging, "set_verbosity", levels.append)

  def join(**given):
    given = {"distributed": False, "coordinator": None, "num_processes": None, "process_id": None} | given
    monkeypatch.setattr(train, "asked", types.SimpleNamespace(**{
      name.upper(): types.SimpleNamespace(value=value) for name, value in given.items()}))
    train._join_hosts()
  join()
  assert started == []
  join(distributed=True)
  join(coordinator="h:1", num_processes=2, process_id=1)
  assert started == [{"coordinator": None, "num_processes": None, "process_id": None},
                     {"coordinator": "h:1", "num_processes": 2, "process_id": 1}]
  assert levels == [train.logging.WARNING]  # of the second, which is not the first host
  for given in ({"coordinator": "h:1"}, {"num_processes": 2, "process_id": 0}, {"coordinator": "h:1", "process_id": 0},
                {"process_id": 0, "distributed": True}):
    with pytest.raises(InputError, match="--coordinator, --num_processes and --process_id go together"):
      join(**given)


def test_training_starts_from_a_model_that_is_named(monkeypatch):
  monkeypatch.setattr(train.registry, "load_model", lambda name: types.SimpleNamespace(params="p", config="c"))
  monkeypatch.setattr(train.transfer, "grow", lambda params, before, after, *, seed: (params, before, after, seed))
  config = types.SimpleNamespace(init_from="m", model="larger", seed=5)
  assert train._initial_params(config) == ("p", "c", "larger", 5)
  assert train._initial_params(types.SimpleNamespace(init_from="")) is None

  def refuse(*_, **__):
    raise InputError("too wide")
  monkeypatch.setattr(train.transfer, "grow", refuse)
  with pytest.raises(InputError, match="config.init_from='m': too wide"):
    train._initial_params(config)


@pytest.mark.parametrize(("level", "path", "is_kept"), [
  (logging.INFO, "/a/symformer_jax/training/loop.py", True), (logging.INFO, "/a/launch/train.py", True),
  (logging.INFO, "/a/orbax/save.py", False), (logging.WARNING, "/a/orbax/save.py", True),
  (logging.WARNING - 1, "/a/orbax/save.py", False)])
def test_lines_of_libraries_are_kept_where_they_warn(level, path, is_kept):
  assert train._is_ours(logging.LogRecord("n", level, path, 1, "m", (), None)) == is_kept


@pytest.mark.parametrize(("path", "is_kept"), [("/a/orbax/future.py", False), ("/a/grain/reader.py", True)])
def test_errors_of_threads_that_save_are_raised_and_not_logged(path, is_kept):
  error = OSError("disk full")
  record = logging.LogRecord("n", logging.ERROR, path, 1, "m", (), (OSError, error, None))
  assert train._is_ours(record) == is_kept


# --- as programs -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # a program is run beside its import
@pytest.mark.parametrize(("name", "extra", "given"), [
  ("benchmark", None, {"argv"}), ("card", None, {"flag_values"}), ("evaluate", "plot", set()),
  ("export", "train", {"flag_values"}), ("train", "train", {"argv"}), ("validate", "train", {"flag_values"})])
def test_a_command_is_prepared_before_its_imports_and_run_after_them(benchmark, monkeypatch, name, extra, given):
  called = []
  monkeypatch.setattr(startup, "prepare", lambda doc, module, **more: called.append(("prepare", doc, module, more)))
  monkeypatch.setattr(runner, "run", lambda main, **more: called.append(("run", main, more)))
  for mark in ("mark_flag_as_required", "mark_flags_as_required"):  # whose messages are absl's own
    monkeypatch.setattr(absl_flags, mark, lambda *given, **more: called.append(("required", *given)))
  for change in ("use_absl_handler", "set_verbosity"):
    monkeypatch.setattr(train.logging, change, lambda *level, change=change: called.append((change, *level)))
  filters = logging.getLogger("absl").filters
  monkeypatch.setattr(logging.getLogger("absl"), "filters", list(filters))
  monkeypatch.setattr(logging.getLogger("jax"), "level", 0)
  monkeypatch.setattr(logging.getLogger("asyncio"), "level", 0)
  runpy.run_module(f"launch.{name}", run_name="imported")
  assert called == []
  found = runpy.run_module(f"launch.{name}", run_name="__main__")
  assert not any(kind == "required" for kind, *_ in called)
  assert called[0] == ("prepare", found["__doc__"], f"launch.flags.{name}", {"extra": extra} if extra else {})
  kind, main, more = called[-1]
  assert kind == "run" and main is found["main"] and set(more) == given
  assert more.get("flag_values") in (None, found["asked"].FLAGS)
  if name == "train":
    assert ("use_absl_handler",) in called and ("set_verbosity", train.logging.INFO) in called
    assert found["_is_ours"] in logging.getLogger("absl").filters and logging.getLogger("jax").level == logging.WARNING
    assert logging.getLogger("asyncio").level == logging.CRITICAL


@pytest.mark.parametrize(("command", "given", "missing"), [
  (card, {}, "model"), (export, {"name": "a", "out": "o"}, "workdir"), (export, {"workdir": "w", "out": "o"}, "name"),
  (export, {"workdir": "w", "name": "a"}, "out"), (train, {"workdir": "w"}, "config"),
  (train, {"config": "configs/tiny.py"}, "workdir"), (validate, {"data": "d"}, "model"),
  (validate, {"model": "m"}, "data")])
def test_a_flag_that_must_be_given_is_asked_for(monkeypatch, command, given, missing):
  monkeypatch.setattr(compilation, "use_cache", lambda: None)
  with pytest.raises(InputError, match=f"^--{missing} is required$"):
    call(command, **given)
