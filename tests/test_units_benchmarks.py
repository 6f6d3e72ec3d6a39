"""Parts of the benchmarks: what is drawn, timed, counted and asked, on stand-ins for what they measure."""

import hashlib
import sys
import types

import jax.numpy as jnp
import numpy as np
import pytest

from configs.data import univariate
from data_gen import config as generator_config
from launch.benchmarks import candidates, chance, decode, generate, infer, interpret, memory, named, refine, snap, train
from symformer_jax.engine.clock import PARTS
from symformer_jax.language import parser
from symformer_jax.language.vocabulary import Vocabulary

VOCAB = Vocabulary(1)


class Clock:
  """Wall-clock seconds that double at each look, CPU seconds that triple."""

  def __init__(self):
    self.wall, self.cpu = 1, 1

  def perf_counter(self):
    self.wall *= 2
    return self.wall

  def process_time(self):
    self.cpu *= 3
    return self.cpu


@pytest.fixture(scope="module")
def drawn():
  return candidates.draw(6, num_points=50, max_tokens=16, seed=3)


# --- formulas ----------------------------------------------------------------------------------------------------


def test_formulas_are_drawn_with_their_values(drawn):
  assert drawn.ids.shape == drawn.values.shape == (6, 16) and drawn.ids.dtype == np.int32
  assert drawn.x.shape == (6, 50, 1) and drawn.y.shape == (6, 50)
  is_constant = np.array(VOCAB.is_constant)
  for ids, values, x, y in zip(*drawn, strict=True):
    assert is_constant[ids].any() and (values[~is_constant[ids]] == 0).all() and np.ptp(y) > 0
    with np.errstate(all="ignore"):
      np.testing.assert_allclose(refine.numpy_program(ids, VOCAB)(values[is_constant[ids]], x), y, rtol=1e-6)
  again = candidates.draw.__wrapped__(6, num_points=50, max_tokens=16, seed=3)
  assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
  short = candidates.draw.__wrapped__(12, num_points=20, max_tokens=6, seed=3, needs_constants=False)
  assert (short.ids != 0).sum(axis=1).max() == 6 and not is_constant[short.ids].any(axis=1).all()
  plain = candidates.draw.__wrapped__(2)
  assert plain.ids.shape == (2, 32) and plain.x.shape == (2, 100, 1)
  assert all(np.array_equal(a, b) for a, b in zip(plain, candidates.draw.__wrapped__(2, seed=0, setting="rules"),
    strict=True))


def test_formulas_that_the_generator_drops_are_none(monkeypatch):
  config = generator_config.from_dict(univariate.get_config().to_dict())

  def draw(text, x, y=None):
    tree, x = parser.parse(text, ["x0"]), np.asarray(x, float)[None]
    with np.errstate(all="ignore"):
      values = candidates.trees.evaluate(tree, x) if y is None else y
    monkeypatch.setattr(candidates.domains, "find_box", lambda *_: (None, x, values))
    return candidates._draw_one(None, types.SimpleNamespace(sample=lambda rng: tree), config, VOCAB, "rules")
  x = np.linspace(-2, 2, 20)
  ids, mantissas, points, y = draw("2.5*sin(x0)", x)
  assert points.shape == (20, 1) and len(ids) == len(mantissas)
  np.testing.assert_allclose(y, 2.5 * np.sin(x))
  assert draw("3*x0 + 1", x) is None and draw("2.5 + 0*sin(x0)", x) is None
  assert draw("2.5*sin(x0)", x, 1e9 * np.sin(x)) is None and draw("log(x0)", x, np.sin(x)) is None
  monkeypatch.setattr(candidates.domains, "find_box", lambda *_: None)
  assert candidates._draw_one(None, types.SimpleNamespace(sample=lambda rng: None), config, VOCAB, "rules") is None


# --- times -------------------------------------------------------------------------------------------------------


def test_decoding_is_timed_by_medians(monkeypatch):
  monkeypatch.setattr(decode, "time", Clock())
  called = []
  found = decode._time(lambda i: called.append(i) or jnp.zeros(1), 54, repeats=3)
  assert called == [0, 1, 2, 3]
  assert found == {"first_seconds": 2, "first_cpu_seconds": 6, "seconds": 32, "cpu_seconds": 486,
                   "per_cpu_second": 54 / 486}
  decode._time(lambda i: called.append(i), 1, repeats=1)
  assert called[4:] == [0, 0]
  decode._time(lambda i: called.append(i), 1)
  assert len(called[6:]) == 1 + decode.NUM_REPEATS


def test_refinement_is_timed_by_the_least(monkeypatch):
  monkeypatch.setattr(refine, "time", Clock())
  called = []
  result, found = refine._time(lambda: called.append(1) or jnp.full(1, len(called)))
  assert len(called) == 1 + refine.NUM_REPEATS and result == 10
  assert found == {"seconds": 8, "cpu_seconds": 54, "compile_seconds": 2 - 8, "compile_cpu_seconds": 6 - 54}


def test_a_part_of_a_step_is_timed_by_the_least(monkeypatch):
  monkeypatch.setattr(train, "time", Clock())
  called = []
  assert train._time(lambda a, b: called.append((a, b)), [(1, 2), (3, 4)]) == train._Seconds(2, 6)
  assert called == [(1, 2), (1, 2), (3, 4)]
  monkeypatch.setattr(train, "time", Clock())
  assert train._time_input(iter(range(100))) == (0.02, 0.06)


def test_the_least_of_several_times_counts(monkeypatch):
  monkeypatch.setattr(interpret, "time", Clock())
  called = []
  assert interpret._least_ms(lambda: called.append(1)) == 2000 and len(called) == 1 + interpret.NUM_REPEATS


def test_memory_is_what_the_device_counts_or_the_process(monkeypatch):
  stats = {"peak_bytes_in_use": 3 * 2**20}
  monkeypatch.setattr(train.jax, "local_devices", lambda: [types.SimpleNamespace(memory_stats=lambda: stats), None])
  assert train.peak_mib() == 3
  stats.clear()
  monkeypatch.setattr(train.resource, "getrusage", lambda who: types.SimpleNamespace(ru_maxrss=2048))
  assert train.peak_mib() == 2
  stats["bytes_limit"] = 1
  assert train.peak_mib() == 2


# --- settings ----------------------------------------------------------------------------------------------------


def test_settings_are_those_of_the_figures_in_the_documentation():
  """A changed one makes a new figure another question's: the pages in docs/results are to be measured anew."""
  settings = {
    chance: (chance.NUM_TABLES, chance.NUM_POINTS, chance.MEAN, chance.SPREAD, chance.RANGE),
    decode: (decode.NUM_POINTS, decode.NUM_SAMPLES, decode.NUM_DATASETS, decode.PADDED_POINTS, decode.NUM_REPEATS,
             decode.STRATEGIES),
    generate: (generate.NUM_CANDIDATES, generate.WORKERS, generate.SEED),
    infer: (infer.NUM_SAMPLES, infer.NUM_ALONE, infer.NUM_TOGETHER),
    interpret: (interpret.NUM_FORMULAS, interpret.NUM_POINTS, interpret.SLOT_COUNTS, interpret.NUM_REPEATS),
    memory: (memory.NUM_CANDIDATES, memory.NUM_POINTS, memory.NOISE),
    named: (named.FORMULAS, named.SIZES, named.NOISE),
    refine: (refine.NUM_CANDIDATES, refine.NUM_POINTS, refine.NUM_POLISHED, refine.DISTURBANCE, refine.TOLERANCE,
             refine.NUM_REPEATS),
    snap: (snap.NUM_FORMULAS, snap.NUM_POINTS, snap.NOISES, snap.SPREAD, snap.EXACT, snap.NO_ODDS,
           snap.NUM_FORMULAS_NO_ODDS),
    train: (train.NUM_STEPS, train.NUM_INPUT_BATCHES, train.MATRIX_SIZE)}
  found = {part.__name__.rpartition(".")[2]: hashlib.sha256(repr(of).encode()).hexdigest()[:12]
           for part, of in settings.items()}
  assert found == {
    "chance": "bb76d8f6fa05",
    "decode": "aabe50eb9859", "generate": "1b8cb367336e", "infer": "f658b3b2443b", "interpret": "454324c657df",
    "memory": "0c96a23fa1aa", "named": "7163c4e26029", "refine": "f6b7569eca90", "snap": "0b49e214daf1",
    "train": "f87a2a8a46df"}


def test_bytes_of_types_and_exchanges_between_devices():
  kinds = {"s": "int", "u": "uint", "f": "float"}
  assert train.BYTES["pred"] == 1 and jnp.dtype("bfloat16").itemsize == train.BYTES["bf16"]
  for name, size in train.BYTES.items():
    if name not in ("bf16", "pred"):
      assert np.dtype(f"{kinds[name[0]]}{name[1:]}").itemsize == size == int(name[1:]) // 8
  text = "%a = (pred[1048576], s4[9], u8[]) all-to-all(%x)\n%b = f64[2,65536]{0} all-to-all(%y)\n%c = s8[] add(%z)"
  assert train.find_exchanges(text) == {"all-to-all": {"count": 2, "mib": 1 + 1 + 1 / 2**20}}


# --- runs on stand-ins -------------------------------------------------------------------------------------------


def test_generation_asks_for_each_setting_and_number_of_workers(monkeypatch, capsys):
  asked = []
  monkeypatch.setattr(generate, "flags", types.SimpleNamespace(FLAGS=types.SimpleNamespace(trees=7)))
  monkeypatch.setattr(generate.benchmark, "measure_agreement", lambda config, num, *, seed: asked.append(
    (config.name, num, seed)) or {"fast": {"agreement": 0.123456}})
  monkeypatch.setattr(generate.benchmark, "measure_scaling", lambda config, workers, num, *, seed: {
    "asked": (config.simplify, workers, num, seed), "rate": 2.0})
  found = generate.run()
  names = [part.get_config().name for part in (generate.univariate, generate.bivariate)]
  assert asked == [(name, 7, 999) for name in names] and (found["trees"], found["seed"]) == (7, 999)
  for name in names:
    assert found[name]["settings"] == {"fast": {"agreement": 0.123456}}
    assert [(row["simplify"], *row["asked"]) for row in found[name]["scaling"]] == [
      (simplify, simplify, workers, 7 * multiple, 999)
      for simplify, multiple in (("simplify", 1), ("fast", 4), ("rules", 16)) for workers in (1, 2)]
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == f"{names[0]} fast agreement 0.1235" and len(lines) == 14 and lines[1].endswith("rate 2")


def result(sampled, seconds, *turns, compiled=0.0):
  return types.SimpleNamespace(
    counts=types.SimpleNamespace(sampled=sampled),
    rounds=[types.SimpleNamespace(source=source, seconds=turn_s) for source, turn_s in turns],
    seconds=types.SimpleNamespace(**dict.fromkeys(PARTS, seconds), compile=compiled))


def test_times_of_inference_are_means_over_data_sets(monkeypatch):
  found = [result(10, 2.0, ("a", 1.0), ("b", 3.0), ("a", 4.0), compiled=1.0), result(20, 4.0, ("a", 2.0))]
  assert infer._by_source(found) == {"turns of a": 2.0, "turns of b": 1.0}
  monkeypatch.setattr(infer, "time", Clock())
  row = infer._time_parts(lambda: found)
  assert {part: row.pop(part) for part in PARTS} == dict.fromkeys(PARTS, 3.0)
  assert row == {"seconds": 1, "cpu_seconds": 3, "turns of a": 2.0, "turns of b": 1.0, "compile": 0.5,
                 "datasets_per_cpu_second": 2 / 6, "candidates_per_cpu_second": 30 / 6}


def test_inference_is_asked_alone_and_together(monkeypatch, capsys):
  asked = []
  monkeypatch.setattr(infer, "time", Clock())
  monkeypatch.setattr(infer, "_cold_starts", lambda: {"cold": {"seconds": 1.23456}})
  monkeypatch.setattr(infer.registry, "load_model", lambda name: name)
  monkeypatch.setattr(infer.inference, "warmup", lambda model: 2.0)
  points = np.arange(64 * 3 * 2, dtype=np.float32).reshape(64, 3, 2)
  monkeypatch.setattr(infer.decode_lib, "draw_points", lambda: (points, np.tile([True, True, False], (64, 1))))
  monkeypatch.setattr(infer.inference, "search", lambda model, data, *, n_samples: asked.append(
    (model, len(data), data[0].shape, data[0].dtype, n_samples)) or [result(1, 1.0) for _ in data])
  found = infer.run()
  assert [(num, samples) for _, num, _, _, samples in asked] == [(2, 1024), *[(1, 1024)] * 8, (64, 1024)]
  assert {(model, shape, kind) for model, _, shape, kind, _ in asked} == {("univariate", (2, 2), np.dtype("float64"))}
  assert found["num_points"] == 100 and found["num_samples"] == 1024 and found["warmup"] == {"seconds": 2.0}
  assert {"cold", "alone", "64 together"} <= found.keys()
  assert capsys.readouterr().out.startswith("cold           seconds 1.235\n")


def test_a_cold_start_is_a_process_with_an_empty_cache(monkeypatch):
  asked = []

  def run(command, **options):
    asked.append((command, options))
    return types.SimpleNamespace(stdout='banner\n{"seconds": 2.5}\n')
  monkeypatch.setattr(infer.subprocess, "run", run)
  assert infer._cold_starts() == {"cold": {"seconds": 2.5}, "cold, cached": {"seconds": 2.5}}
  first, second = (options.pop("env")["JAX_COMPILATION_CACHE_DIR"] for _, options in asked)
  assert first == second and asked[0] == ([sys.executable, "-c", infer._FIRST_CALL], {
    "capture_output": True, "text": True, "check": True})
  compile(infer._FIRST_CALL, "first call", "exec")


def test_formulas_of_people_are_fitted_as_near_as_the_truth(monkeypatch, capsys):
  asked, factor = [], [1.009]

  def fit(formula, x, y, *, seed):
    asked.append((formula, x[0], y[0], seed))
    values = 3 * np.exp(-0.7 * x[0][:, 0]) if formula == "b1*exp(-b2*x0)" else 1.5 * x[0][:, 0]**0.5 * np.exp(
      -0.8 * x[0][:, 1]) - 2
    return [types.SimpleNamespace(rss=factor[0] * np.sum((y[0] - values) ** 2), noise=(y[0] - values, values))]
  monkeypatch.setattr(named, "refine", fit)
  monkeypatch.setattr(named, "time", Clock())
  solved, seconds = named._fit("decay", 4000, 1)
  assert solved and seconds == 6
  [(formula, x, y, seed)] = asked
  assert x.shape == (4000, 1) and seed == 1 and 0 <= x.min() < 0.01 < 5.99 < x.max() <= 6
  clean = 3 * np.exp(-0.7 * x[:, 0])
  assert np.std(y - clean) == pytest.approx(0.01 * clean.std(), rel=0.05)
  factor[0] = 1.011
  assert not named._fit("two columns", 100, 0)[0] and asked[1][1].shape == (100, 2)
  assert not np.array_equal(asked[1][2][:5], asked[0][2][:5])
  monkeypatch.setattr(named, "_fit", lambda name, num_rows, seed: (seed == 0, seed + 1.0))
  found = named.run()
  assert len(found) == len(named.FORMULAS) + 3
  assert found["wave, 200000 rows"] == {"solved": 0.5, "cpu_s": [1.0, 2.0]}
  assert capsys.readouterr().out.startswith("decay, 4096 rows: solved 0.50, CPU s 1.0, 2.0\n")
