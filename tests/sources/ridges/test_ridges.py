"""Ridges: the gains of a grid against least squares, the laws that are found, data that have none."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, SumSizes
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, printing
from symformer_jax.language.parser import parse
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.ridges import ridge_functions, ridge_gains, ridges
from symformer_jax.sources.ridges.ridge_functions import OUTER

# Small grids: few seconds less to compile and to search, and nothing else.
CONFIG = dataclasses.replace(
  DEFAULT.ridges, num_rows=96, max_amplitudes=8, num_seeds=1, max_beside=3,
  sums=(SumSizes(8, 8, 2), SumSizes(48, 10, 16), SumSizes(4, 4, 64)))
NUM_ROWS = CONFIG.num_rows


def _rows(f, box, *, num=NUM_ROWS, seed=0) -> Rows:
  rng = np.random.default_rng(seed)
  x = np.stack([rng.uniform(*sides, num) for sides in box], axis=1)
  return Rows(x, f(*x.T), rng.uniform(0.5, 2, num))


def _left(design: np.ndarray, rows: Rows) -> float:
  """Share of y's weighted variance that least squares leaves."""
  root = np.sqrt(rows.weights)
  found = np.linalg.lstsq(root[:, None] * design, root * rows.y, rcond=None)[0]
  mean = np.average(rows.y, weights=rows.weights)
  return np.sum(rows.weights * (design @ found - rows.y) ** 2) / np.sum(rows.weights * (rows.y - mean) ** 2)


def _values(name: str, factors: np.ndarray, offset: float, units: np.ndarray) -> list[np.ndarray]:
  """Columns of a function of a sum of arguments [k, N], in double precision; of a wave two."""
  t = factors @ units + offset
  if name == ridge_functions.WAVE:
    return [np.sin(t), np.cos(t)]
  return [np.asarray(OUTER[name].values(jnp.asarray(t)), np.float64)]


def _design(space: ridges._Space, ridge: ridges.Ridge, rows: Rows) -> np.ndarray:
  """A constant, the amplitude, all variables, and the ridge times the amplitude [N, C]."""
  def values(monomial):
    return np.prod([rows.x[:, d] ** e for d, e in monomial], axis=0) * np.ones(len(rows))
  arguments = [values(space.arguments[i]) for i in ridge.arguments]
  units = np.stack([(u - u.min()) / np.ptp(u) for u in arguments])
  amplitude = values(space._amplitudes[ridge.amplitude])
  columns = [amplitude * g for g in _values(ridge.name, ridge.factors, ridge.offset, units)]
  return np.stack([np.ones(len(rows)), amplitude, *rows.x.T, *columns], axis=1)


@pytest.fixture(scope="module")
def searched():
  """Rows, their space, and what its grid and its fits have found by name."""
  rows = _rows(lambda x, y: x * np.sin(2 * x - y) + 0.3 * y, [(0.5, 3), (1, 4)], num=90)
  space = ridges._Space(rows, (0, 1), (), CONFIG)
  found = space.found()
  return rows, space, found, dict(zip(OUTER, space.fitted(found), strict=True))


@pytest.mark.parametrize("name", OUTER)
def test_what_a_ridge_leaves_is_what_least_squares_leaves(searched, name):
  rows, space, found, fitted = searched
  for some in (found[name], fitted[name]):
    some = sorted(some, key=lambda ridge: ridge.left)
    for ridge in [*some[:3], some[-1]]:
      assert ridge.left == pytest.approx(_left(_design(space, ridge, rows), rows), rel=0.02, abs=1e-4)
  assert min(ridge.left for ridge in fitted[name]) < 0.99 * min(ridge.left for ridge in found[name])


def test_the_best_of_a_grid_is_reported():
  rows = _rows(lambda x, y: np.exp(-0.8 * x - 0.3 * y), [(0, 3), (0, 4)])
  units = np.stack([(u - u.min()) / np.ptp(u) for u in rows.x.T])
  settings = ridges._Space(rows, (0, 1), (), CONFIG)._settings
  grid = {"num_phases": 4, "num_directions": 8}
  gains, places = ridge_gains.best_of_all(units[None].astype(np.float32), settings, **grid)
  every = []
  for place in range(len(OUTER["exp"].affine(CONFIG.grids)) * 8):
    values = _values("exp", *ridge_gains.grid("exp", place, units, **grid), units)
    every.append(1 - _left(np.stack([np.ones(len(rows)), *rows.x.T, *values], axis=1), rows))
  assert int(places["exp"][0, 0, 0, 0]) == np.argmax(every)
  rows_of_grid = np.max(np.reshape(every, (-1, 8)), axis=1)
  second = int(places["exp"][0, 0, 0, 1])
  assert second // 8 == np.argsort(rows_of_grid)[-2] and every[second] == np.sort(rows_of_grid)[-2]
  explained = 1 - np.sum(settings[0].residuals[0] ** 2)
  assert explained + float(gains["exp"][0, 0, 0, 0]) == pytest.approx(max(every), abs=1e-4)


@pytest.mark.parametrize("num_arguments, num", [(1, 2), (2, 24), (3, 96)])
def test_directions_are_unit_vectors_and_the_first_half_has_no_opposites(num_arguments, num):
  found = ridge_functions.directions(num_arguments, num)
  np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-12)
  half = found[: len(found) // 2]
  assert np.min(np.linalg.norm(half[:, None] + half[None], axis=-1)) > 0.05
  np.testing.assert_allclose(np.sort(found, axis=0), np.sort(-found, axis=0), atol=1e-12)


@pytest.mark.parametrize("name", [name for name, outer in OUTER.items() if not outer.is_one_sided])
def test_functions_of_two_sides_are_their_own_mirror_images(name):
  w = np.linspace(0, 1, 50)
  outer = OUTER[name]
  columns, mirrored = (
    [np.asarray(outer.values(jnp.asarray(p * u + q))) for p, q in outer.affine(CONFIG.grids)] for u in (w, 1 - w))
  for column in mirrored:
    left = [np.linalg.lstsq(np.stack([np.ones(50), other], 1), column, rcond=None)[1] for other in columns]
    assert min(float(each[0]) for each in left) < 1e-8


LAWS = {
  "wave of a product and a variable": (
    lambda x, y, z: x * np.sin(y * z - 0.7 * x), [(0.5, 3)] * 3, "sin", {((0, 1.0),), ((1, 1.0), (2, 1.0))}),
  "root of a difference beside a term": (
    lambda x, y, z: z + 3 * y * np.sqrt(12 - x**2 - y), [(0.2, 2.8)] * 3, "sqrt", {((0, 2.0),), ((1, 1.0),)}),
  "logistic of three": (
    lambda x, y, z: 1 / (1 + np.exp(0.9 * x - 1.2 * y + 0.5 * z)), [(-2, 2)] * 3, "inv",
    {((0, 1.0),), ((1, 1.0),), ((2, 1.0),)}),
  "logarithm of a sum": (
    lambda x, y: x * np.log(1.4 * x + 0.6 * y), [(0.3, 5)] * 2, "ln", {((0, 1.0),), ((1, 1.0),)}),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_sum_of_a_law_is_among_the_first(law):
  f, box, token, arguments = LAWS[law]
  rows = _rows(f, box)
  first = itertools.islice(ridges.ridge_sums(rows, range(len(box)), config=CONFIG), 48)
  assert any(token in {part.token for part in expression.walk(node)} and _error(node, rows) < 0.03 for node in first)
  space = ridges._Space(rows, range(len(box)), (), CONFIG)
  name = {"sin": "wave", "inv": "logistic"}.get(token, token)
  fitted = dict(zip(OUTER, space.fitted(space.found()), strict=True))[name]
  best = min(fitted, key=lambda ridge: ridge.left)
  assert {space.arguments[i] for i in best.arguments} == arguments and best.left < 1e-4


def test_a_wave_is_found_beside_what_the_pool_has():
  rows = _rows(lambda x, y, z: np.sin(2 * x - y * z) + 2 * z**3 / x, [(0.8, 3), (0.6, 2), (2, 5)])
  product = parse("z**3/x")
  without, beside = (
    min(_error(node, rows) for node in itertools.islice(ridges.ridge_sums(rows, range(3), seeds, config=CONFIG), 48))
    for seeds in ((), ([product],)))
  assert beside < 0.2 * without


def _error(node, rows: Rows) -> float:
  return np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) / np.var(rows.y)


def test_formulas_are_written_as_their_columns_were_counted():
  """With the factors of least squares a formula leaves what its fit says: rows, units and offsets are right."""
  rows = _rows(lambda x, y: x / (3 + np.cos(x + 2000 * y)), [(40, 90), (1e-3, 3e-3)])
  space = ridges._Space(rows, (0, 1), (), CONFIG)
  root = rows.weights / rows.weights.sum()
  variance = np.sum(root * (rows.y - np.sum(root * rows.y)) ** 2)
  for fitted in space.fitted(space.found()):
    ridge = min(fitted, key=lambda ridge: ridge.left)
    longest = list(space.written(ridge))[-1]
    left = np.sum(root * (expression.evaluate(longest, rows.x) - rows.y) ** 2)
    assert left / variance == pytest.approx(ridge.left, rel=0.03, abs=1e-3), ridge.name


@pytest.mark.parametrize("x", [np.zeros((9, 2)), np.stack([np.arange(9.0), np.ones(9)], 1),
                               np.stack([np.arange(-4.0, 5), 1e30 * np.arange(9.0)], 1)])
def test_columns_that_say_nothing_or_run_over_any_size(x):
  rows = Rows(x, np.arange(9.0) ** 2, np.ones(9))
  for node in itertools.islice(ridges.ridge_sums(rows, (0, 1), config=CONFIG), 20):
    assert printing.to_text(node, ("u", "v"))
    assert np.isfinite(expression.evaluate(node, x)).all()


@pytest.mark.parametrize("scale, offset", [(1.0, 1e9), (1e150, 0.0), (1e-150, 0.0)])
def test_targets_of_any_size_and_offset_are_searched(scale, offset):
  rows = _rows(lambda x, y: scale * np.sin(2 * x - y) + offset, [(0.5, 3), (1, 4)])
  fitted = ridges._Space(rows, (0, 1), (), CONFIG)
  assert fitted.can_gain
  assert min(ridge.left for ridge in dict(zip(OUTER, fitted.fitted(fitted.found()), strict=True))["wave"]) < 1e-3


def test_no_formula_is_written_twice():
  rows = _rows(lambda x, y: np.sqrt(1 + x + 2 * y), [(0.5, 3), (1, 4)], num=300)  # more than are looked at
  found = list(itertools.islice(ridges.ridge_sums(rows, (0, 1), config=CONFIG), 60))
  assert len(set(found)) == len(found)


@pytest.mark.parametrize("sums", [(SumSizes(8, 8, 2),) * 4, (SumSizes(8, 1, 2),), (SumSizes(8, 8, 3),)])
def test_sizes_that_cannot_be_are_refused(sums):
  with pytest.raises(ValueError, match="sums: expected at most three sizes"):
    dataclasses.replace(CONFIG, sums=sums)


@pytest.mark.parametrize("num, options, is_asked", [
  (8, {}, False), (40, {}, True), (40, {"operators": ("+", "*", "neg")}, False)])
def test_few_points_and_strict_rules_are_not_asked(num, options, is_asked):
  rng = np.random.default_rng(0)
  x = rng.uniform(1, 3, (num, 2))
  task = make_task((x, x[:, 0] + rng.normal(size=num)), None, SearchOptions(restrictions=Restrictions(**options)))
  assert ridges.Ridges().supports(task) == is_asked
