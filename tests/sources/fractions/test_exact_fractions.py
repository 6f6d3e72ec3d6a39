"""Exact fractions of high degree: which formulas are found and in which form, and which data have none."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import registry
from symformer_jax.sources.fractions import exact_fractions

NAMES = ("x", "y", "z", "w", "v", "u")
SUN = ("57.29577951308232*arcsin(sin(x*pi/180)*sin(y*pi/180) + cos(x*pi/180)*cos(y*pi/180)*cos(z*pi/180))")
# Formula, box, and the most nodes that its best form may have.
LAWS = (
  # of columns alone
  ("(x**2*y + 3*z*w)/(x*w + 0.04*v + 2*z)", ((1, 4),) * 5, 26),
  ("x*y**2/(v**2 + (w + x*z)**2)", ((1, 3),) * 5, 26),
  ("x**4*y**3/((1 - x*y)**2*(x + 2)**3)", ((2, 4), (1, 3)), 26),
  ("(x - y)*(x + 2*y)*(z - 3)**2*x", ((1, 4),) * 3, 24),
  # functions of y
  ("sqrt(x**2*(1 - z)**2 + 2*x*y*z*(1 - z)*w + y**2*z**2)", ((1, 3), (1, 3), (0.1, 0.9), (-0.9, 0.9)), 36),
  ("exp((x - y)**2*z/(x*w**2))", ((1, 2), (1, 3), (0.5, 2), (1, 2)), 22),
  ("log((x*y + z**2)/(w*z**3 + y**3*x + 1))", ((1, 3),) * 4, 26),
  ("(x - y)/sqrt(z**2*w + v**2*x)", ((1, 5), (2, 4), (1, 3), (1, 3), (1, 3)), 26),
  ("(y - x)*(x*y - 2)/sqrt(x**2 + y**4)", ((-2, 2), (-2, 2)), 24),
  # functions of columns
  ("(1 - y**2)/(1 + y**2 - 2*y*cos(x))**1.5", ((0.1, 3), (0.1, 0.8)), 24),
  ("(2*x - 3*sin(x) + x**2*cos(x))/x**3", ((0.5, 6),), 26),
  ("y*x/(x + sqrt(1 - y) + 2)", ((0.2, 3), (0.1, 0.9)), 18),
  ("z/(exp(x/y) - 1) + z", ((0.5, 3), (1, 4), (1, 3)), 18),
  ("exp(-(x - y)**2/(4*x*z))/sqrt(x*z**3)", ((1, 3), (1, 3), (1, 3)), 45),
  ("(x - y)/(log(x) - log(y))", ((1, 3), (4, 8)), 17),
  ("(y - 2.5)/(arctan(x)*(5*y + 4.8))", ((-4, 4), (-4, 4)), 16),
  ("15*arctan(1/x)**2*y**2 - 7.8*arctan(1/x)*y**2 + y**2 + x", ((-4, 4), (-4, 4)), 30),
  ("15.75 - 17.8*x**(-1/3) - 0.711*y**2*x**(-4/3) - 23.7*(x - 2*y)**2/x**2", ((20, 250), (10, 100)), 45),
  ("1/(0.00113 + 0.000234*log(x) + 8.77e-08*log(x)**3)", ((500, 50000),), 20),
  ("arccos(sin(x)*sin(y) + cos(x)*cos(y)*cos(z))", ((-1, 1.1), (-0.4, 0.4), (-2.5, 2.5)), 22),
  # angles in degrees: the sun's height by latitude, declination and hour angle, and where a star rises
  (SUN, ((-60, 60), (-23, 23), (-120, 120)), 36),
  ("57.29577951308232*arccos(sin(y*pi/180)/cos(x*pi/180))", ((-50, 50), (-23, 23)), 18),
  ("18.7*x*(exp(-y) - exp(-x))/(x - y)", ((0.1, 50), (0.01, 9)), 24),
  # a constant above the line, and so high a degree that one above would not help
  ("-3.7/(x*(x - 3)*(x**2 + 2)*(x**3 + 0.7*x + 1))", ((-4, 4),), 30),
  # an entropy of mixing
  ("x/y*log(x) + (1 - x)*log(1 - x) + z*x*(1 - x)", ((0.02, 0.98), (10, 100), (0, 1.5)), 41),
)


class AnyRule:
  def __call__(self, node):
    return True

  def allows_operator(self, token):
    return True


def table(text, box, *, noise=0.0, num_rows=None, seed=0):
  rng = np.random.default_rng(seed)
  num_rows = num_rows or 100 * len(box)
  x = np.column_stack([rng.uniform(*side, num_rows) for side in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return Rows(x, y + noise * np.std(y) * rng.standard_normal(num_rows), np.ones(num_rows))


# Without fractions that only come near.
EXACT = dataclasses.replace(DEFAULT, exact_fractions=dataclasses.replace(DEFAULT.exact_fractions, near_leap=0.0))


def find(rows, **changes):
  changes.setdefault("config", EXACT)
  return exact_fractions.fractions_of(
    rows, changes.pop("columns", range(rows.x.shape[1])), rule=changes.pop("rule", AnyRule()), **changes)


@pytest.mark.parametrize(("text", "box", "most"), LAWS)
def test_a_law_is_found_in_few_nodes_and_is_the_same_elsewhere(text, box, most):
  nodes = find(table(text, box))
  other = table(text, box, seed=1)
  for node in nodes:
    np.testing.assert_allclose(expression.evaluate(node, other.x), other.y, rtol=1e-7, atol=1e-9 * np.std(other.y))
  assert min(map(expression.complexity, nodes)) <= most


@pytest.mark.parametrize(("text", "at"), [
  ("x/(x**2 + 6*x + 9) - x + y", -2.999), ("x**5/(4285.086*x**5 + 1)", -0.1875), ("1/(x - y)", None)])
def test_rows_beside_a_pole_are_not_all_that_counts(text, at):
  """One of them is a million times the others."""
  rng = np.random.default_rng(0)
  x = rng.uniform(-5, 5, (200, 2))
  x[0] = (at, 1) if at else (1, 1 - 1e-7)
  y = expression.evaluate(parser.parse(text, NAMES[:2]), x)
  nodes = find(Rows(x, y, np.ones(200)))
  errors = [np.abs(expression.evaluate(node, x) - y) / (np.median(np.abs(y)) + np.abs(y)) for node in nodes]
  assert nodes and min(map(np.max, errors)) < 1e-6 and min(map(expression.complexity, nodes)) <= 32


def test_rows_count_less_the_farther_out_they_are():
  config = DEFAULT.exact_fractions
  z = np.array([1.0, -2, 3, -1, 2])
  assert exact_fractions._root_of_weights(z, config) is None
  for nothing in (np.zeros(5), np.r_[np.zeros(3), 1, -2]):  # of most rows: there is no size to compare with
    assert exact_fractions._root_of_weights(nothing, config) is None
  z[1] = -2.1 * config.far
  np.testing.assert_allclose(exact_fractions._root_of_weights(z, config), 1 / np.sqrt(1 + (z / 2) ** 2))


def test_coefficients_of_least_errors_of_the_fraction_itself():
  """Beside a pole P - z*Q is small for many poles near to it; P/Q is not."""
  rng = np.random.default_rng(0)
  x = np.append(rng.uniform(-1, 1, 99), 0.5 + 1e-5)
  z = 1 / (x - 0.5) * (1 + 1e-9 * rng.normal(size=100))
  below = np.column_stack([np.ones(100), x])
  columns = np.column_stack([np.ones(100), -z[:, None] * below])
  root = 1 / np.hypot(1, z)
  first = np.linalg.svd(root[:, None] * columns)[2][-1] * np.array([1, 1, 1 + 1e-7])
  again = exact_fractions._reweighted(first, columns, below, root, 3)
  errors = [np.sum((root * (each[0] / (below @ each[1:]) - z)) ** 2) for each in (first, again)]
  assert errors[1] < 1e-3 * errors[0]
  np.testing.assert_array_equal(exact_fractions._reweighted(np.array([1.0, 0, 0]), columns, below, None, 3), [1, 0, 0])


@pytest.mark.parametrize("text", [
  "x**2.3 + y**0.7", "exp(-1.3*x) + y", "sin(2.2*x + 0.7*y)", "sqrt(x + 0.3*sqrt(y + 1))",
  "cos(1.7*x)/(1 + exp(-2.1*y))"])
@pytest.mark.parametrize("side", [(0.9, 1.0), (0.5, 4.0)])
def test_what_only_comes_near_is_not_offered(text, side):
  assert find(table(text, (side, side))) == []


def test_a_fraction_too_long_to_be_fitted_does_not_end_the_look():
  """Multiplied out the square has some hundred tokens; its root is asked next."""
  rows = table("(1 + (0.48 + 1.574*y - 0.176*y**2)*(1 - sqrt(x)))**2", ((0.5, 1.5), (0.1, 0.6)))
  found = exact_fractions.fractions_of(rows, range(2), rule=AnyRule(), config=DEFAULT)
  assert found and all(programs.size(node) <= programs.MAX_TOKENS for node in found)


@pytest.mark.parametrize("text", [
  pytest.param("exp(1.3*x)*y + z", marks=pytest.mark.slow), "sin(2*x + y)*z",
  pytest.param("log(x + 2)*sqrt(y + z)", marks=pytest.mark.slow)])
def test_what_comes_near_does_not_look_exact(text):
  rows = table(text, ((0.5, 2),) * 3)
  for node in exact_fractions.fractions_of(rows, range(3), rule=AnyRule(), config=DEFAULT):
    assert np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) > 1e-22 * np.var(rows.y)


@pytest.mark.parametrize(("text", "box"), [
  ("x*y*z/((z - 0.6*x)*(y + 1.7))", ((1, 2), (1, 3), (2, 4))),
  ("sqrt(x**2*y + 3*z**3*x + 0.7)", ((1, 3),) * 3),
  pytest.param(  # another fraction of columns
    "(x*z + y*w*(1 - v))/(x + y)", ((1, 4), (1, 4), (1, 4), (1, 4), (0.1, 0.9)), marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [pytest.param(1e-6, marks=pytest.mark.slow), 1e-4])
def test_small_errors_leave_the_law_among_what_is_offered(text, box, noise):
  clean = table(text, box)
  found = find(table(text, box, noise=noise), config=DEFAULT)
  errors = [np.mean((expression.evaluate(node, clean.x) - clean.y) ** 2) for node in found]
  assert min(errors) < (0.3 * noise) ** 2 * np.var(clean.y)
  assert expression.complexity(found[int(np.argmin(errors))]) < 45


def test_pure_noise_is_no_fraction():
  rng = np.random.default_rng(3)
  assert find(Rows(rng.normal(size=(200, 2)), rng.normal(size=200), np.ones(200))) == []


def test_rounded_values_are_asked_of_the_columns_alone(monkeypatch):
  asked = []
  own = exact_fractions.views.views
  monkeypatch.setattr(exact_fractions.views, "views", lambda *args: asked.append(args) or own(*args))
  rows = table("exp(x)*y + 1", ((0, 2), (1, 2)))
  find(Rows(rows.x, np.array([float(f"{value:.8g}") for value in rows.y]), rows.weights))
  assert not asked
  assert find(rows)
  assert asked
  # Whole numbers are rounded and exact.
  x = np.random.default_rng(0).integers(1, 9, (90, 3)).astype(float)
  y = x[:, 0] * x[:, 1] ** 3 - 7 * x[:, 2] ** 2 * x[:, 0]
  [node, *_] = find(Rows(x, y, np.ones(90)))
  np.testing.assert_allclose(expression.evaluate(node, x), y)


@pytest.mark.parametrize("y", [np.full(60, 2.0), np.full(60, np.inf), np.zeros(60)])
def test_degenerate_targets(y):
  x = np.random.default_rng(0).uniform(1, 2, (60, 2))
  assert find(Rows(x, y, np.ones(60))) == []


@pytest.mark.parametrize("num_rows", [2, 3, 5, 8])
def test_few_rows_are_met_by_anything_and_tell_nothing(num_rows):
  rng = np.random.default_rng(1)
  assert find(Rows(rng.uniform(1, 2, (num_rows, 2)), rng.uniform(1, 2, num_rows), np.ones(num_rows))) == []


def test_rows_without_weight_and_columns_that_do_not_vary_do_not_count():
  text, box, _ = LAWS[1]
  rows = table(text, box)
  y, weights = rows.y.copy(), rows.weights.copy()
  y[:5], weights[:5] = 1e3, 0.0
  wide = Rows(np.column_stack([np.full(len(y), 7.0), rows.x, np.arange(len(y))]), y, weights)
  [node, *_] = find(wide, columns=range(6))
  np.testing.assert_allclose(expression.evaluate(node, wide.x)[5:], y[5:], rtol=1e-9)


def test_the_rules_count():
  text, box, _ = LAWS[9]
  rows = table(text, box)
  data = (rows.x, rows.y)
  task = make_task(data, NAMES[:2], SearchOptions(restrictions=Restrictions(forbidden=("cos",))))
  assert find(rows, rule=task.rule) == []
  source = registry.SOURCES["exact_fractions"](None, SearchOptions())
  assert source == exact_fractions.ExactFractions(DEFAULT) and "exact_fractions" in registry.WITHOUT_MODEL
  assert source.supports(make_task(data, NAMES[:2], SearchOptions()))
  assert not source.supports(make_task(data, NAMES[:2], SearchOptions(restrictions=Restrictions(forbidden=("inv",)))))


def test_work_is_bounded():
  rng = np.random.default_rng(2)
  rows = Rows(rng.uniform(1, 2, (400, 9)), rng.uniform(1, 2, 400), np.ones(400))
  tables = []

  class Counted(exact_fractions._Table):
    def __init__(self, *args):
      super().__init__(*args)
      tables.append(self)

  own = exact_fractions._Table
  exact_fractions._Table = Counted
  try:
    assert find(rows) == []
  finally:
    exact_fractions._Table = own
  work = sum(table.work for table in tables[:-1])
  assert 0 < work <= DEFAULT.exact_fractions.max_work and len(tables) > 3
