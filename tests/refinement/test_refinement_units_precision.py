"""In which precision formulas are evaluated on the host's behalf: double, whatever the process computes in."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language import parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import bounded, local as local_lib, named, refine as refine_lib, snapping, solve
from symformer_jax.refinement.named import NamedFormula

X, Y = np.linspace(1, 2, 7)[:, None], np.linspace(3, 5, 7)


@pytest.fixture
def seen(monkeypatch):
  """Types of numbers in each call of what is compiled, which comes out as zeros."""
  assert jnp.zeros(1).dtype == np.float32  # what the process computes in
  found = []

  def note(name, *arrays):
    found.append((name, *(jnp.asarray(array).dtype.name for array in arrays)))

  def run(program, constants, columns, **rest):
    note("run", 0.0, constants, columns)
    constants = np.asarray(constants)
    return jnp.zeros((1 + len(constants), np.shape(columns)[1]))

  for module in (named, snapping):
    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module, "_translate", lambda *given, **rest: note("translate", 0.0))
  monkeypatch.setattr(NamedFormula, "program", lambda self: note("program", 0.0))
  return SimpleNamespace(calls=found, note=note)


def test_a_formula_of_names_is_evaluated_in_double_precision(seen):
  formula = NamedFormula(parser.parse("a*x", ("x",), allow_symbols=True), ("a",))
  found = formula.evaluator(X)(np.ones(1))
  assert found.dtype == np.float64 and found.shape == (2, 7)
  assert seen.calls == [("program", "float64"), ("run", "float64", "float64", "float64")]


def test_starts_are_fitted_in_double_precision(seen, monkeypatch):
  def fit_starts(program, starts, x, y, weights, **options):
    seen.note("fit", starts, x, y, weights)
    num = starts.shape[:2]
    return solve.Fit(jnp.asarray(starts), *[jnp.zeros(num, int)] * 4)

  monkeypatch.setattr(solve, "fit_starts", fit_starts)
  monkeypatch.setattr(refine_lib, "_result", lambda formula, data, fit, has_sigma: fit.values.dtype.name)
  formula = NamedFormula(parser.parse("a*x", ("x",), allow_symbols=True), ("a",))
  found = refine_lib._fit_sets(formula, [(X, Y, np.ones(7), ())], np.ones((2, 1)), "lm", 9, has_sigma=False)
  assert found == ["float64"] and seen.calls == [("program", "float64"), ("fit", *["float64"] * 4)]


def test_descents_within_bounds_look_in_double_precision(seen, monkeypatch):
  class Enough(Exception):
    pass

  def descend(evaluate, *given, **named):
    assert evaluate(np.ones(1)).shape == (2, 7)  # values and one derivative, without those of padding
    raise Enough

  monkeypatch.setattr(bounded, "descend_from_all", descend)
  formula = NamedFormula(parser.parse("a*x", ("x",), allow_symbols=True), ("a",))
  with pytest.raises(Enough):
    refine_lib._fit_within(formula, (X, Y, np.ones(7), ()), np.ones((2, 1)), {"a": (0, 1)}, "lm", 9,
                           np.random.default_rng(0), has_sigma=False, has_start=False)
  assert seen.calls == [("program", "float64"), ("run", "float64", "float64", "float64")]


def test_snapping_looks_in_double_precision_at_the_constants_there_are(seen, monkeypatch):
  asked = []

  def snap(evaluate, values, y, weights, *, has_sigma, min_odds):
    asked.append((values.tolist(), y.dtype.name, weights.dtype.name, has_sigma, min_odds))
    evaluate(values)
    return snapping.Snapped(values + 1, (None,) * len(values), values, 0.0, 1.0)

  monkeypatch.setattr(snapping, "snap", snap)
  vocab = Vocabulary(1)
  constant = vocab.first_constant_id
  ids = np.array([vocab.ids["+"], constant, vocab.ids["*"], constant, constant, 0], np.int32)
  values = np.array([0, 1.5, 0, 2.5, 3.5, 0], np.float32)
  placed, _ = snapping.snap_program(
    ids, values, X.astype(np.float32), Y.astype(np.float32), np.ones(7, np.float32), vocab=vocab, max_constants=2)
  assert placed.tolist() == [0, 2.5, 0, 3.5, 3.5, 0] and placed.dtype == np.float64
  assert asked == [([1.5, 2.5], "float64", "float64", False, 10.0)]
  assert seen.calls == [("translate", "float64"), ("run", "float64", "float64", "float64")]
  snapping.snap_program(ids, values, X, Y, np.ones(7), vocab=vocab, has_sigma=True, min_odds=3.0)
  assert asked[1] == ([1.5, 2.5, 3.5], "float64", "float64", True, 3.0)


def test_a_local_model_computes_in_double_precision():
  local = local_lib.LocalModel(parser.parse("1.5*x + 2.5", ("x",)), X.astype(np.float32), Y, np.ones(7), floor=0.0)
  found = [local.predict(local.theta), local.predict_many(np.ones((9, 2))), *local._predict_with_jacobian(local.theta)]
  assert [array.shape for array in found] == [(7,), (9, 7), (7,), (7, 2)]
  assert {array.dtype for array in found} == {np.dtype(float)}


def test_finalists_are_fitted_in_double_precision_from_numbers_of_any(monkeypatch):
  asked = []

  def fit_candidates(ids, *arrays, vocab, max_steps, **options):
    asked.append(([array.dtype.name for array in arrays], jnp.zeros(1).dtype.name, max_steps, options))
    return jnp.asarray(arrays[0]), solve.Fit(*[jnp.zeros(2)] * 5)

  monkeypatch.setattr(solve, "fit_candidates", fit_candidates)
  values, fit = solve.polish(np.zeros((2, 3), np.int32), jnp.ones((2, 3)), X.astype(np.float32), Y, np.ones(7),
                             vocab=Vocabulary(1), method="gd")
  assert asked == [(["float64"] * 4, "float64", 100, {"method": "gd"})]
  assert isinstance(values, np.ndarray) and values.dtype == fit.loss.dtype == np.float64
  assert not jax.config.jax_enable_x64
