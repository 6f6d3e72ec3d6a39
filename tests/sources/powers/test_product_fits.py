"""Product units from many starts: the projected fit beside SciPy's, signs, weights, padding, what is fixed."""

import jax
from jax import export
import numpy as np
import pytest
from scipy import optimize

from symformer_jax.sources.powers import product_fits
from symformer_jax.sources.powers.product_fits import Layout, Starts, Table

SUMS, FUNCTION, INSIDE = Layout((0, 0)), Layout((0, 1)), Layout((2,))


def table_of(x, y, weights=None):
  weights = np.ones(len(y)) if weights is None else weights
  logs = np.log(np.abs(x))
  logs = (logs - logs.mean(axis=0)) / logs.std(axis=0)
  root = np.sqrt(weights / weights.sum())
  return Table(logs, (x < 0).astype(float), (root * y)[None], root[None])


def starts_of(layout, num_columns, num=16, seed=0, **changes):
  rng = np.random.default_rng(seed)
  size = layout.num_parameters(num_columns)
  units = len(layout.num_inner)
  return Starts(
    0.8 * rng.normal(size=(num, size)), np.ones((num, size), bool), np.zeros(num, int), np.zeros(num, int),
    np.ones((num, units)), np.ones((num, layout.num_products)), np.zeros((num, layout.num_products, num_columns)),
  )._replace(**changes)


def points(num_rows=200, num_columns=3, low=0.5, high=3.0, seed=1):
  return np.random.default_rng(seed).uniform(low, high, (num_rows, num_columns))


def columns_of(table, layout, parameters, function=np.exp):
  """The linear columns of a fit, by the definition."""
  found = []
  for outer, inner in layout.places(table.logs.shape[1]):
    product = np.exp(table.logs @ parameters[outer])
    if not inner:
      found.append(product)
      continue
    n = sum(np.exp(table.logs @ parameters[each][:-1] + parameters[each][-1]) for each in inner)
    found += [product * function(n), product]
  return np.column_stack([*found, np.ones(len(table.logs))])


def left_of(table, layout, parameters, function=np.exp):
  """What least squares leaves of the goal, by NumPy, as a share of its variance."""
  root, goal = table.roots[0], table.goals[0]
  design = root[:, None] * columns_of(table, layout, parameters, function)
  rest = goal - design @ np.linalg.lstsq(design, goal, rcond=None)[0]
  return rest @ rest / np.sum((goal - root * (root @ goal)) ** 2)


@pytest.mark.parametrize("layout", [SUMS, pytest.param(FUNCTION, marks=pytest.mark.slow), INSIDE])
def test_what_is_left_is_that_of_least_squares(layout):
  x = points()
  table = table_of(x, x[:, 0] ** 2 / x[:, 1] + np.sin(3 * x[:, 2]))
  starts = starts_of(layout, 3, function=np.full(16, list(product_fits.FUNCTIONS).index("ln")))
  fits = product_fits.fit(table, starts, layout, num_steps=0)
  expected = [left_of(table, layout, each, np.log1p) for each in starts.parameters]
  np.testing.assert_allclose(fits.left, expected, rtol=2e-3)
  np.testing.assert_allclose(fits.parameters, starts.parameters, rtol=1e-6)


def test_it_ends_where_scipy_does():
  x = points()
  table = table_of(x, 2 * x[:, 0] ** 1.5 / x[:, 1] + np.sin(3 * x[:, 2]))  # none of its sums
  starts = starts_of(SUMS, 3)
  fits = product_fits.fit(table, starts, SUMS, num_steps=200)

  def rest(parameters):
    root, goal = table.roots[0], table.goals[0]
    design = root[:, None] * columns_of(table, SUMS, parameters)
    return goal - design @ np.linalg.lstsq(design, goal, rcond=None)[0]

  best = fits.parameters[np.argmin(fits.left)]
  expected = optimize.least_squares(rest, best.astype(float), xtol=1e-12, ftol=1e-12)
  whole = np.sum((table.goals[0] - table.roots[0] * (table.roots[0] @ table.goals[0])) ** 2)
  assert 2 * expected.cost / whole == pytest.approx(fits.left.min(), rel=1e-2)


def test_most_starts_end_at_the_truth():
  x = points()
  table = table_of(x, 2 * x[:, 0] ** 1.5 / x[:, 1] - 0.4 * x[:, 2] ** 3 + 7)
  fits = product_fits.fit(table, starts_of(SUMS, 3, num=64), SUMS, num_steps=40)
  assert np.mean(fits.left < 1e-11) > 0.5


def test_curvature_is_that_of_what_is_left():
  """Half the second derivative of what is left, where the goal is met."""
  x = points()
  table = table_of(x, 2 * x[:, 0] ** 1.5 / x[:, 1] - 0.4 * x[:, 2] ** 3 + 7)
  starts = starts_of(SUMS, 3, num=64)
  fits = product_fits.fit(table, starts, SUMS, num_steps=60)
  best = int(np.argmin(fits.left))
  move = 1e-3 * np.random.default_rng(2).normal(size=fits.parameters.shape[1])
  after = left_of(table, SUMS, fits.parameters[best].astype(float) + move)
  assert after == pytest.approx(move @ fits.curvature[best] @ move, rel=0.02)


def test_curvature_of_functions_of_sums_is_that_of_what_is_left():
  x = points()
  starts = starts_of(INSIDE, 3, function=np.full(16, list(product_fits.FUNCTIONS).index("ln")))
  truth = starts.parameters[0]
  y = columns_of(table_of(x, np.ones(len(x))), INSIDE, truth, np.log1p) @ [2.0, -0.7, 0.4]
  table = table_of(x, y)
  fits = product_fits.fit(table, starts, INSIDE, num_steps=0)
  assert fits.left[0] < 1e-10
  for move in 1e-3 * np.random.default_rng(2).normal(size=(4, len(truth))):
    after = left_of(table, INSIDE, truth + move, np.log1p)
    assert after == pytest.approx(move @ fits.curvature[0] @ move, rel=0.03)


def test_no_step_does_harm():
  x = points()
  table = table_of(x, 2 * x[:, 0] ** 1.5 / x[:, 1] + np.sin(3 * x[:, 2]))
  left = [product_fits.fit(table, starts_of(SUMS, 3, num=64), SUMS, num_steps=num).left for num in range(6)]
  assert np.all(np.diff(left, axis=0) <= 0) and np.mean(left[-1] < left[0]) > 0.9


@pytest.mark.parametrize(("name", "function"), [
  ("exp", np.exp), ("inv", lambda n: 1 / (1 + n)), ("sqrt", lambda n: np.sqrt(1 + n)), ("ln", np.log1p),
  ("inv_sqrt", lambda n: 1 / np.sqrt(1 + n)), ("pure_ln", np.log), ("tanh", np.tanh), ("atan", np.arctan),
  ("bose", lambda n: 1 / np.expm1(n)), ("cos", np.cos)])
def test_functions(name, function):
  n = np.linspace(0.1, 3, 50)
  np.testing.assert_allclose(product_fits.FUNCTIONS[name](n, 0.0), function(n), rtol=1e-5)


@pytest.mark.parametrize("name", list(product_fits.FUNCTIONS))
def test_functions_are_finite_wherever_they_are_asked(name):
  at = np.array([-1e13, -30.0, -1.0, -0.5, 0.0, 1e-13, 0.5, 30.0, 1e13], np.float32)
  for exponent in (-30.0, -0.7, 0.0, 1.3, 30.0):
    values, slopes = jax.vmap(jax.value_and_grad(product_fits.FUNCTIONS[name], argnums=(0, 1)))(
      at, np.full_like(at, exponent))
    assert np.isfinite(values).all() and np.isfinite(slopes).all()


def test_what_is_not_free_stays():
  x = points()
  table = table_of(x, x[:, 0] ** 2 + x[:, 1])
  starts = starts_of(FUNCTION, 3)
  starts.is_free[:, ::2] = False
  fits = product_fits.fit(table, starts, FUNCTION, num_steps=20)
  np.testing.assert_allclose(fits.parameters[:, ::2], starts.parameters[:, ::2], rtol=1e-6)
  assert np.abs(fits.parameters[:, 1::2] - starts.parameters[:, 1::2]).max() > 0.1
  assert not fits.curvature[:, ::2].any()


def test_units_that_are_not_used_are_nothing():
  x = points()
  table = table_of(x, x[:, 0] ** 2 / x[:, 1])
  starts = starts_of(SUMS, 3, is_used=np.tile([1.0, 0.0], (16, 1)))
  other = starts._replace(parameters=np.concatenate([starts.parameters[:, :3], 9 * starts.parameters[:, 3:]], axis=1))
  fits = [product_fits.fit(table, some, SUMS, num_steps=10).left for some in (starts, other)]
  np.testing.assert_allclose(*fits, rtol=1e-4)


def test_signs_of_columns_count_where_that_is_said():
  x = points(low=-2.0, high=2.5, num_rows=200)
  table = table_of(x, x[:, 0] ** 3 * x[:, 1] ** 2 * x[:, 2])
  starts = starts_of(Layout((0,)), 3, num=32)
  fits = product_fits.fit(table, starts, Layout((0,)), num_steps=60)
  assert fits.left.min() > 0.1
  starts.parity[:] = [1, 0, 1]
  fits = product_fits.fit(table, starts, Layout((0,)), num_steps=60)
  assert fits.left.min() < 1e-11


def test_rows_without_weight_and_shapes_do_not_count():
  x = points(num_rows=60)
  y = x[:, 0] ** 2 / x[:, 1] + np.sin(3 * x[:, 2])
  weights = np.where(np.arange(60) < 50, 1.0, 0.0)
  spoiled = np.where(weights > 0, y, 1e3)
  tables = [table_of(x, some, weights) for some in (y, spoiled)]
  starts = starts_of(SUMS, 3)
  found = [product_fits.fit(table, starts, SUMS, num_steps=8).left for table in tables]
  np.testing.assert_array_equal(*found)
  # A fourth column without exponents: of more columns than are compiled for otherwise.
  wide = tables[0]._replace(logs=np.pad(tables[0].logs, ((0, 0), (0, 1))), negative=np.zeros((60, 4)))
  kept = np.array([0, 1, 2, 4, 5, 6])
  parameters, is_free = np.zeros((16, 8)), np.zeros((16, 8), bool)
  parameters[:, kept], is_free[:, kept] = starts.parameters, True
  more = starts._replace(parameters=parameters, is_free=is_free, parity=np.zeros((16, 2, 4)))
  fits = product_fits.fit(wide, more, SUMS, num_steps=8)
  np.testing.assert_allclose(fits.left, found[0], rtol=2e-3)


def test_starts_that_are_undefined_are_left_where_they_are():
  x = points()
  starts = starts_of(FUNCTION, 3)
  starts.parameters[3] = np.nan
  fits = product_fits.fit(table_of(x, x[:, 0]), starts, FUNCTION, num_steps=5)
  assert fits.left[3] == np.inf and np.isfinite(np.delete(fits.left, 3)).all()
  assert not fits.curvature[3].any() and np.delete(fits.curvature, 3, axis=0).any(axis=(1, 2)).all()


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_fits_lower_for_accelerators(platform):
  x = points(num_rows=64)
  table = table_of(x, x[:, 0])
  lowered = export.export(product_fits._fit, platforms=[platform])(
    table, starts_of(FUNCTION, 3)._replace(function=np.int32(2)), FUNCTION, 3)
  assert lowered.platforms == (platform,)


def test_powers_of_sums_of_two_products():
  """Values, and slopes by all parameters, the exponent among them, beside the definition and its differences."""
  x = points()
  table = table_of(x, (0.7 * x[:, 0] + x[:, 1] * x[:, 2]) ** 1.3)
  power = list(product_fits.FUNCTIONS).index(product_fits.POWER)
  starts = starts_of(INSIDE, 3, function=np.full(16, power))
  [(outer, (first, second))] = INSIDE.places(3)

  def left(parameters):
    n = sum(np.exp(table.logs @ parameters[each][:-1] + factor)
            for each, factor in ((first, 0.0), (second, parameters[second][-1])))
    product, root, goal = np.exp(table.logs @ parameters[outer]), table.roots[0], table.goals[0]
    design = root[:, None] * np.column_stack([product * n ** parameters[first][-1], product, np.ones(len(n))])
    rest = goal - design @ np.linalg.lstsq(design, goal, rcond=None)[0]
    return rest @ rest / np.sum((goal - root * (root @ goal)) ** 2)

  begun = product_fits.fit(table, starts, INSIDE, num_steps=0)
  np.testing.assert_allclose(begun.left, list(map(left, starts.parameters)), rtol=5e-3)
  ended = product_fits.fit(table, starts, INSIDE, num_steps=60)
  best = int(np.argmin(ended.left))
  assert ended.left[best] < 1e-9
  assert left(ended.parameters[best]) < 1e-9
  exponents = ended.parameters[ended.left < 1e-10][:, first.stop - 1]
  assert np.any(np.abs(exponents - 1.3) < 0.02)
