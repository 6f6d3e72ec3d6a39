"""Benchmarks of the network, the interpreter and the fits: what is computed around what is measured, on stand-ins."""

import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from launch.benchmarks import candidates, chance, decode, interpret, memory, refine, snap
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import snapping
from symformer_jax.refinement.problem import Status

VOCAB = Vocabulary(1)
IS_CONSTANT = np.array(VOCAB.is_constant)


def of_texts(*texts, num_points=20):
  """Candidates of formulas written by hand, on points of 1 to 3."""
  ids, values = np.zeros((len(texts), 16), np.int32), np.zeros((len(texts), 16))
  for k, text in enumerate(texts):
    tokens, mantissas = expression.encode(parser.parse(text, ["x0"]), VOCAB)
    ids[k, :len(tokens)] = tokens
    values[k, :len(tokens)] = np.array(mantissas) * np.array(VOCAB.constant_scale)[tokens]
  x = np.tile(np.linspace(1, 3, num_points)[None, :, None], (len(texts), 1, 1))
  y = [refine.numpy_program(i, VOCAB)(v[IS_CONSTANT[i]], p) for i, v, p in zip(ids, values, x, strict=True)]
  return candidates.Candidates(ids, values, x, np.array(y))


def test_programs_of_numpy_are_the_formulas():
  given = of_texts("2.5*sin(x0) + 1.5", "x0**2 - 0.5", "pi*x0", "1.5")
  x = given.x[0][:, 0]
  for y, expected in zip(given.y, (2.5 * np.sin(x) + 1.5, x**2 - 0.5, np.pi * x, np.full(20, 1.5)), strict=True):
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert y.dtype == np.float64


# --- decoding ----------------------------------------------------------------------------------------------------


def test_points_of_decoding_are_padded(monkeypatch):
  asked = []

  def draw(num, **options):
    asked.append((num, options))
    x = np.arange(num * 100.0).reshape(num, 100, 1)
    return types.SimpleNamespace(x=x, y=-x[..., 0])
  monkeypatch.setattr(decode.candidates_lib, "draw", draw)
  points, is_valid = decode.draw_points()
  assert asked == [(64, {"num_points": 100, "seed": 7})]
  assert points.shape == (64, 128, 2) and points.dtype == np.float32
  assert is_valid.dtype == bool and is_valid[:, :100].all() and not is_valid[:, 100:].any()
  np.testing.assert_array_equal(points[:, :100, 1], -points[:, :100, 0])
  assert (points[:, 100:] == points[:, 99:100]).all()  # beyond the last, what can be computed with


def test_decoding_is_measured_by_strategy_and_lanes(monkeypatch, capsys):
  timed, decoded, encoded = [], [], []
  monkeypatch.setattr(decode.registry, "load_model", lambda name: name)
  monkeypatch.setattr(decode, "draw_points", lambda: (np.arange(64.0)[:, None], np.ones((64, 1), bool)))

  def encode(model, points, is_valid):
    encoded.append((model, points.shape, float(points[0, 0]), is_valid.shape))
    return jnp.asarray(points)

  def decode_candidates(model, latents, keys, rules, *, num_samples, strategy):
    decoded.append((model, latents.tolist(), len(keys), rules, num_samples, strategy))
    return [(np.array([[1, 2, 0], [1, 0, 0]]), None)] * len(latents)

  def time(call, num_items, repeats=5):
    timed.append((num_items, repeats))
    call(3)
    return {"seconds": 1.23456}
  for name, stand_in in (("encode", encode), ("decode_candidates", decode_candidates)):
    monkeypatch.setattr(decode.sampling, name, stand_in)
  monkeypatch.setattr(decode, "_time", time)
  monkeypatch.setattr(decode, "_bounds", lambda model, latents, mean_length: {"length": mean_length})
  found = decode.run()
  assert encoded[0] == ("univariate", (1, 1), 3.0, (1, 1)) and [first for _, _, first, _ in encoded[1:]] == list(
    range(64))
  assert {(points, valid) for _, points, _, valid in encoded} == {((1, 1), (1, 1))}
  assert timed == [(1, 5), *[(1024, 5)] * 5, (64 * 1024, 1)]
  assert [(num, samples) for _, _, num, _, samples, _ in decoded] == [(1, 1024)] * 5 + [(64, 1024), (8, 1024)]
  assert [latents for _, latents, *_ in decoded[:5]] == [[[3.0]]] * 5 and decoded[5][1] == [[float(i)] for i in range(
    64)] and decoded[6][1] == decoded[5][1][:8]
  assert [strategy for *_, strategy in decoded] == [*decode.STRATEGIES.values(), *[decode.TopK(20)] * 3]
  ruled = decoded[4][3][0]
  assert ruled != decoded[0][3][0] == decoded[5][3][63] and ruled == decode.Restrictions(
    max_depth=5, unnested=("sin", "exp")).for_columns(["x0"])
  assert found["num_points"] == 100 and found["num_samples"] == 1024 and found["work"] == {"length": 1.5}
  assert found.keys() >= {"encode 1", "decode 1, greedy", "decode 1, top_k under rules", "decode 64, top_k"}
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == "encode 1                     seconds 1.235" and lines[-1] == "length 1.5" and len(lines) == 8


def test_the_work_of_a_token(monkeypatch):
  timed = []

  def time(call, num_items, repeats):
    timed.append((call, num_items, repeats))
    return {"per_cpu_second": float(len(timed))}
  monkeypatch.setattr(decode, "_time", time)
  # width 5, 2 heads of 3, 7 in the feed-forward layers, 11 layers, 13 tokens, 17 latents, 19 words
  decoder = types.SimpleNamespace(width=5, num_heads=2, head_dim=3, ff_dim=7, num_layers=11, max_length=13)
  model = types.SimpleNamespace(config=types.SimpleNamespace(decoder=decoder), vocab=types.SimpleNamespace(size=19))
  found = decode._bounds(model, jnp.zeros((2, 17, 5)), 6.5)
  weights = 11 * (4 * 5 * 6 + 2 * 5 * 6 + 2 * 5 * 7) + 5 * 19  # self-attention, queries and outputs across, ff, words
  attended = 11 * 2 * 6 * (12 + 17)
  assert found == {
    "tokens_per_sample": 6.5, "flops_per_token": 2 * (weights + attended),
    "cache_bytes_per_token": 11 * 2 * 6 * 12 * 4,  # keys and values of the tokens before, float32
    "product_flops_per_cpu_second": 1.0, "read_bytes_per_cpu_second": 2.0}
  (product, flops, repeats), (read, num_bytes, again) = timed
  assert repeats == again == 3 and num_bytes == 4 * 2**24 and read(0) == 2**24
  text = str(jax.make_jaxpr(product)(0))
  assert flops == 2 * 2000 * 64 * 512**2 and "length=2000" in text and "f32[64,512]" in text and "0.03999" in text


# --- the interpreter ---------------------------------------------------------------------------------------------


class Program(NamedTuple):
  """In place of what the interpreter runs."""

  slots: np.ndarray
  numbers: np.ndarray
  length: np.ndarray


def test_the_sum_keeps_every_derivative(monkeypatch):
  """Of each formula and point the value and its derivatives, with a formula's constants in their slots."""
  asked = []

  def translate(ids, values, *, vocab, num_slots):
    asked.append((vocab.num_variables, num_slots))
    return Program(jnp.array([[0, -1, 1], [-1, -1, 0]]), values, jnp.array([3, 2]))

  def run(program, constants, points, num_tokens=10):
    return jnp.stack([points[0] * num_tokens * program.numbers[0], *(points[0] ** 2 * c for c in constants)])
  monkeypatch.setattr(interpret.interpreter, "translate", translate)
  monkeypatch.setattr(interpret.interpreter, "run", run)
  ids, values = np.zeros((2, 3), np.int32), np.array([[5, 6, 7], [8, 9, 10]], np.float32)
  x = np.array([[[1.0], [2.0]], [[3.0], [4.0]]], np.float32)
  points, constants = x[..., 0], np.array([[12.0], [10.0]])
  loop = interpret._make(VOCAB, "loop", 2)(ids, values, x)
  first = points * values[:, :1]
  np.testing.assert_allclose(loop, first * np.array([[3.0], [2.0]]) + points**2 * constants)
  np.testing.assert_allclose(interpret._make(VOCAB, "vmap", 2)(ids, values, x), first * 10 + points**2 * constants)
  assert asked == [(1, 2)] * 2


def test_the_interpreter_is_measured_by_plan_and_derivatives(monkeypatch, capsys):
  given, asked = of_texts("2.5*sin(x0) + 1.5", "x0"), []
  monkeypatch.setattr(interpret.candidates_lib, "draw", lambda num, *, num_points: asked.append((num, num_points)) or (
    given))
  called = []

  def make(vocab, plan, num_slots):
    asked.append((vocab.num_variables, plan, num_slots))
    compiled = types.SimpleNamespace(compile=lambda: lambda *args: called.append(args) or jnp.zeros(1))
    return types.SimpleNamespace(lower=lambda ids, values, x: asked.append((values.dtype, x.dtype)) or compiled)
  monkeypatch.setattr(interpret, "_make", make)
  times = iter(range(1, 9))
  monkeypatch.setattr(interpret, "_least_ms", lambda call: call() and None or float(next(times)))
  found = interpret.run()
  assert asked[0] == (1024, 112) and asked[1::2] == [(1, plan, n) for plan in ("loop", "vmap") for n in (0, 4, 16)]
  assert set(asked[2::2]) == {(np.dtype("float32"), np.dtype("float32"))} and len(called) == 6
  assert found == {"num_formulas": 1024, "num_points": 112, "mean_tokens": ((given.ids > 0).sum() / 2), "numpy_ms": 1.0,
                   "loop_0_ms": 2.0, "loop_4_ms": 3.0, "loop_16_ms": 4.0, "vmap_0_ms": 5.0, "vmap_4_ms": 6.0,
                   "vmap_16_ms": 7.0}
  assert capsys.readouterr().out.startswith("numpy 1.0 ms\nloop with 0 derivatives 2.0 ms\n")


def test_numpy_is_measured_on_every_formula(monkeypatch):
  computed = []
  monkeypatch.setattr(interpret, "numpy_program", lambda ids, vocab: lambda c, x: computed.append(
    (c.tolist(), len(x), np.log(-1.0))))
  monkeypatch.setattr(interpret, "_least_ms", lambda call: call() or 5.0)
  assert interpret._time_numpy(of_texts("2.5*sin(x0) + 1.5", "x0"), VOCAB) == 5.0
  assert [c for c, *_ in computed] == [[2.5, 1.5], []] and {n for _, n, _ in computed} == {20}


# --- fits --------------------------------------------------------------------------------------------------------


def test_memory_is_measured_of_many_candidates_on_many_rows(monkeypatch, capsys):
  asked, given = [], of_texts("2*x0", num_points=500)
  monkeypatch.setattr(memory.candidates_lib, "draw", lambda num, **options: asked.append((num, options)) or given)
  peaks = iter([10.0, 25.0])
  monkeypatch.setattr(memory, "peak_mib", lambda: next(peaks))
  monkeypatch.setattr(memory, "NUM_POINTS", 500)

  def fit(ids, values, x, y, weights, *, vocab):
    asked.append((values, x, y, weights, vocab.num_variables))
    return None, types.SimpleNamespace(loss=np.array([1.0, np.nan]), steps=np.array([2, 4]))
  monkeypatch.setattr(memory.solve, "fit_candidates", fit)
  found = memory.run()
  values, x, y, weights, num_variables = asked[2]
  assert asked[:2] == [(10_000, {}), (1, {"num_points": 500})] and {a.dtype for a in (values, x, y, weights)} == {
    np.dtype("float32")}
  assert x.shape == (500, 1) and weights.tolist() == [1] * 500 and num_variables == 1
  left = y - given.y[0]
  assert left.std() == pytest.approx(0.1 * given.y[0].std(), rel=0.1) and abs(left.mean()) < 0.02
  assert (found["peak_mib_before"], found["peak_mib"], found["finite"], found["mean_steps"]) == (10, 25, 0.5, 3)
  assert 0 <= found["seconds"] < 10 and 0 <= found["cpu_seconds"] < 10
  assert (found["num_candidates"], found["num_points"]) == (10_000, 500) and "finite 0.5" in capsys.readouterr().out


def test_errors_of_found_constants_are_those_of_float64():
  given = of_texts("2.5*x0", "1.5*log(x0)")
  values = given.values.copy()
  values[0][IS_CONSTANT[given.ids[0]]] = 3.5
  values[1][IS_CONSTANT[given.ids[1]]] = np.nan
  losses = refine._loss_in_float64(given, values, VOCAB)
  assert losses[0] == pytest.approx(np.mean(given.x[0] ** 2)) and losses[1] == np.inf
  below = given._replace(x=-given.x)
  assert refine._loss_in_float64(below, given.values, VOCAB)[1] == np.inf  # and nobody is warned


def test_scipy_fits_the_same_formulas():
  given = of_texts("2.5*sin(x0) + 1.5", "log(2.5*x0)")
  starts = given.values * np.array([[1.1], [-1.0]])
  losses, is_finite, seconds = refine._run_scipy(given, starts, VOCAB)
  assert losses[0] < 1e-12 and is_finite.tolist() == [True, False] and 0 < seconds < 60
  grown = of_texts("exp(0.5*x0)")
  assert refine._run_scipy(grown, grown.values * 1.2, VOCAB)[0][0] < 1e-12  # no constant makes it fall below 0
  # Of a function that is not met: the mean squared error in variances of y.
  other = given._replace(y=given.y + np.tile([1.0, -1.0], 10))
  loss = refine._run_scipy(other, given.values, VOCAB)[0][0]
  a = np.stack([np.sin(given.x[0][:, 0]), np.ones(20)], axis=1)
  best = np.linalg.lstsq(a, other.y[0], rcond=None)[1][0] / 20 / other.y[0].var()
  assert loss == pytest.approx(best, rel=1e-6)


def test_scipy_is_asked_for_the_last_digits_from_where_it_is_finite(monkeypatch):
  asked = []

  def least_squares(residual, start, **options):
    asked.append((residual(start), options))
    return types.SimpleNamespace(cost=10.0)
  monkeypatch.setattr(refine.optimize, "least_squares", least_squares)
  given = of_texts("log(2.5*x0)", "2.5*x0")
  losses, is_finite, _ = refine._run_scipy(given, given.values * np.array([[-1.0], [2.0]]), VOCAB)
  assert losses.tolist() == [1.0, 1.0] and is_finite.tolist() == [False, True]
  assert (asked[0][0] == 1e6).all()  # what SciPy goes on from
  np.testing.assert_allclose(asked[1][0], given.y[1] / given.y[1].std())
  assert asked[0][1] == {"x_scale": "jac", "ftol": 1e-12, "xtol": 1e-12, "gtol": 1e-12, "max_nfev": 200}


def test_a_method_is_scored_against_scipy(monkeypatch):
  given, asked = of_texts("2.5*x0", "1.5*x0", "0.5*x0", "3*x0"), []
  spread = given.y.var(axis=1)
  status = np.array([0, 0, int(Status.UNDEFINED), 0])

  def fit(ids, values, x, y, weights, **options):
    asked.append((values, x, y, weights, options))
    return values, types.SimpleNamespace(steps=np.array([1, 2, 3, 6]), status=status)
  monkeypatch.setattr(refine.solve, "fit_candidates", fit)
  monkeypatch.setattr(refine, "_time", lambda call: (call(), {"seconds": 2.0}))
  monkeypatch.setattr(refine, "_loss_in_float64", lambda drawn, values, vocab: np.array([0, 2e-6, 0.5, 3e-6]) * spread)
  found = refine._run_method({"method": "gd"}, given, given.values, VOCAB, np.array([0, 0, 0.5, 2.5e-6]),
    np.array([True, True, False, False]), spread)
  assert found == {"seconds": 2.0, "reached_of_finite": 0.5, "reached": 0.75, "solved": 0.25, "mean_steps": 3.0,
                   "undefined": 0.25}
  values, x, y, weights, options = asked[0]
  assert options.pop("dataset").tolist() == [0, 1, 2, 3] and options.pop("vocab").num_variables == 1
  assert options == {"method": "gd"} and {a.dtype for a in (values, x, y, weights)} == {np.dtype("float32")}
  assert weights.shape == y.shape == (4, 20) and (weights == 1).all() and asked[0][4] is not None


def test_the_last_fit_is_scored_in_variances(monkeypatch):
  given, asked = of_texts("2.5*x0", "1.5*x0", "x0"), []

  def polish(ids, values, x, y, weights, **options):
    asked.append((len(ids), len(values), values.dtype, options["dataset"].dtype))
    return None, types.SimpleNamespace(loss=np.array([1.9e-6, 2e-6, 1.0])[:len(ids)])
  monkeypatch.setattr(refine.solve, "polish", polish)
  monkeypatch.setattr(refine, "_time", lambda call: (call(), {"seconds": 2.0}))
  monkeypatch.setattr(refine, "NUM_POLISHED", 2)
  variance = given.y.var(axis=1)
  assert 1.9e-6 / variance[0] <= 1e-6 < 2e-6 / variance[1]
  assert refine._run_polish(given, given.values, VOCAB) == {"seconds": 2.0, "solved": 0.5}
  assert asked == [(2, 2, np.float64, np.int32)]


def test_refinement_is_measured_by_method(monkeypatch, capsys):
  given, asked = of_texts("2.5*x0", "1.5*x0"), []
  monkeypatch.setattr(
    refine.candidates_lib, "draw", lambda num, *, num_points: asked.append((num, num_points)) or given)
  monkeypatch.setattr(refine, "_run_scipy", lambda drawn, starts, vocab: asked.append(starts) or (
    np.array([1e-6, 2e-6]), np.array([True, True]), 6.0))
  monkeypatch.setattr(refine, "_run_method", lambda options, drawn, starts, vocab, oracle, is_finite, spread: (
    asked.append((options, spread)) or {"seconds": 2.0, "cpu_seconds": 0.5}))
  monkeypatch.setattr(refine, "_run_polish", lambda *_: {"seconds": 1.0})
  cpu = iter([10.0, 13.0])
  monkeypatch.setattr(refine, "time", types.SimpleNamespace(process_time=lambda: next(cpu)))
  found = refine.run()
  assert asked[0] == (1024, 100) and found["num_finite_starts"] == 2
  kept = given.values != 0
  assert set(np.round(asked[1][kept] / given.values[kept], 9)) <= {1.1, 0.9}
  assert [options for options, _ in asked[2:]] == [
    *({"method": method} for method in refine.solve.METHODS), {"method": "lm", "is_persistent": True}]
  np.testing.assert_allclose(asked[2][1], given.y.var(axis=1))
  assert found["scipy"] == {"seconds": 6.0, "cpu_seconds": 3.0, "solved": 0.5}
  assert found["lm, several attempts"] == {"seconds": 2.0, "cpu_seconds": 0.5, "times_faster_than_scipy": 3.0,
                                           "times_less_cpu_than_scipy": 6.0}
  assert (found["polish"], found["num_candidates"], found["num_points"]) == ({"seconds": 1.0}, 1024, 100)
  assert capsys.readouterr().out.startswith("scipy                seconds 6")


# --- snapping ----------------------------------------------------------------------------------------------------


def exact(value):
  return types.SimpleNamespace(value=value)


def test_constants_are_snapped_under_noise(monkeypatch):
  given, asked = of_texts("2.5*x0 + 1.5", "0*x0 + 2", "1.5*log(x0)", num_points=100), []
  given = given._replace(x=given.x * np.array([1, 1, -1])[:, None, None])

  def snap_program(ids, values, x, y, weights, *, vocab, min_odds):
    asked.append((values, x, y, weights, min_odds))
    return None, types.SimpleNamespace(exact=[exact(v) for v in values[IS_CONSTANT[ids]]])
  monkeypatch.setattr(snap.snapping, "snap_program", snap_program)
  truths, found = snap._snap_all(given, VOCAB, 0.1, lambda rng, values: values * 2, 7.0)
  assert truths == [5.0, 3.0] and [e.value for e in found] == [5.0, 3.0]  # what is flat or undefined is left out
  [(_, x, y, weights, min_odds)] = asked
  clean = 5 * x[:, 0] + 3
  assert np.std(y - clean) == pytest.approx(0.1 * clean.std(), rel=0.25) and (weights == 1).all() and min_odds == 7


def test_formulas_that_hardly_vary_are_left_out(monkeypatch):
  given = of_texts("2.5*x0", num_points=100)
  monkeypatch.setattr(snap.snapping, "snap_program", lambda *_, **__: (None, types.SimpleNamespace(exact=[exact(2.5)])))
  for size, num in ((1.5e-6, 1), (0.9e-6, 0)):
    y = 1 + size * np.tile([1.0, -1.0], 50)
    monkeypatch.setattr(snap, "numpy_program", lambda ids, vocab, y=y: lambda constants, x: y)
    assert len(snap._snap_all(given, VOCAB, 0.0, lambda rng, values: values, 1.0)[0]) == num


def test_shares_of_constants_that_are_snapped(monkeypatch):
  given, drawn = of_texts("2.5*x0 + 1.5"), []

  def snap_all(of, vocab, noise, draw, min_odds):
    drawn.append((draw(np.random.default_rng(0), np.tile([0.0, 2.0, -3.0], 400)), noise, min_odds))
    return [1.0, 2.0, 3.0, 4.0, 5.0], [exact(1.0), exact(2.0 * (1 + 1.5e-12)), None, exact(4.0 * (1 + 0.9e-12)), None]
  monkeypatch.setattr(snap, "_snap_all", snap_all)
  assert snap._random(given, VOCAB, 0.5, 9.0) == 0.6
  assert snap._exact(given, VOCAB, 0.5) == {"num_exact": 5, "exact_found": 0.4, "exact_mistaken": 0.2}
  (random, noise, min_odds), (chosen, again, usual) = drawn
  assert (noise, again, min_odds, usual) == (0.5, 0.5, 9.0, snapping.MIN_ODDS)
  factors = np.log(random[1::3] / 2)
  assert factors.std() == pytest.approx(0.1, rel=0.2) and (random[::3] == 0).all() and (random[2::3] < 0).all()
  assert (chosen[::3] == 0).all() and set(chosen[1::3]) == set(snap.EXACT) == set(-chosen[2::3])


def test_snapping_is_measured_at_every_noise(monkeypatch, capsys):
  given, asked = of_texts(*["2.5*x0"] * 30), []
  monkeypatch.setattr(snap.candidates_lib, "draw", lambda num, *, num_points: asked.append((num, num_points)) or given)
  monkeypatch.setattr(snap, "_random", lambda drawn, vocab, noise, min_odds: asked.append(
    (len(drawn.ids), noise, min_odds)) or 0.25)
  monkeypatch.setattr(snap, "_exact", lambda drawn, vocab, noise: {"exact_found": 1.0})
  seconds = iter(np.arange(10.0) * 0.32)
  monkeypatch.setattr(snap, "time", types.SimpleNamespace(process_time=lambda: next(seconds)))
  found = snap.run()
  assert asked == [(128, 100), *(ask for noise in snap.NOISES for ask in (
    (30, noise, snapping.MIN_ODDS), (24, noise, snap.NO_ODDS)))]
  assert found["noise 0.01"] == {"random_snapped": 0.25, "cpu_ms_per_formula": pytest.approx(2.5), "exact_found": 1.0,
                                 "random_snapped_by_f_test_alone": 0.25}
  assert (found["num_formulas"], found["num_points"], len(found)) == (128, 100, 7)
  assert capsys.readouterr().out.startswith("noise 0      random_snapped 0.25  ")


# --- chance ------------------------------------------------------------------------------------------------------


def test_what_is_no_constant_is_counted_by_size(monkeypatch, capsys):
  asked = []

  def search(model, datasets):
    asked.append((model, datasets))
    found = {1: types.SimpleNamespace(complexity=3), 2: None}.get(len(asked) % 4, types.SimpleNamespace(complexity=1))
    return [types.SimpleNamespace(best=found)]
  monkeypatch.setattr(chance, "NUM_TABLES", 8)
  monkeypatch.setattr(chance, "NUM_POINTS", (6, 40))
  monkeypatch.setattr(chance.inference, "resolve_model", lambda name, *, num_variables: (name, num_variables))
  monkeypatch.setattr(chance.inference, "search", search)
  found = chance.run()
  assert [len(datasets[0][1]) for _, datasets in asked] == [6] * 8 + [40] * 8
  assert {model for model, _ in asked} == {("auto", 1)} and all(len(datasets) == 1 for _, datasets in asked)
  assert found["num_tables"] == 8
  assert found["6 points"]["not_a_constant"] == 0.25 == found["40 points"]["not_a_constant"]
  low, high = stats.binomtest(2, 8).proportion_ci(method="wilson")
  assert (found["6 points"]["low"], found["6 points"]["high"]) == pytest.approx((low, high))
  assert capsys.readouterr().out.startswith("6 points     not_a_constant 0.25")


def test_tables_of_noise_differ_and_are_the_same_again():
  x, y = chance.draw(3, 5000)
  assert x.shape == (5000, 1) and y.shape == (5000,) and x.min() >= 0 and x.max() <= 10
  assert stats.kstest(y, "norm", (10, 1)).pvalue > 0.01 and abs(stats.spearmanr(x[:, 0], y)[0]) < 0.05
  np.testing.assert_array_equal(chance.draw(3, 5000)[1], y)
  assert not np.allclose(chance.draw(4, 5000)[1], y) and not np.allclose(chance.draw(3, 5001)[1][:5000], y)
