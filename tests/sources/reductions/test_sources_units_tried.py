"""Parts of changes that are tried one by one: rows count as their errors do in the user's y, and what slopes tell."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.sources.reductions import reduced_tables, tried_changes
from symformer_jax.sources.reductions.reduced_tables import Change, Reduced
from symformer_jax.sources.reductions.tried_changes import _Known

CONFIG = DEFAULT.reductions.tried


def known(x, y, slopes, scale=None, error=1.0):
  return _Known(reduced_tables.whole(x, y), slopes, np.ones(len(y)) if scale is None else scale, error)


@pytest.fixture
def scale(rng):
  return rng.uniform(0.2, 3, 40)


def test_rows_count_as_their_errors_do(rng, scale):
  """Sizes, ratios and contradictions by least squares of what is scaled."""
  first, second = rng.normal(size=40), rng.normal(size=40)
  at = known(np.ones((40, 1)), first, np.ones((40, 1)), scale)
  one, other = first * scale, second * scale
  assert tried_changes._size(first, at) == pytest.approx(np.sqrt(np.sum(one**2)))
  [ratio] = np.linalg.lstsq(other[:, None], one, rcond=None)[0]
  [inverse] = np.linalg.lstsq(one[:, None], other, rcond=None)[0]
  assert tried_changes._ratio(first, second, at) == pytest.approx(ratio)
  assert tried_changes._symmetric_ratio(first, second, at) == pytest.approx(np.sign(ratio) * np.sqrt(ratio / inverse))
  expected = np.sqrt(np.sum((one - other) ** 2) / np.sum(one**2 + other**2))
  assert tried_changes._contradicted(first, second, at) == pytest.approx(expected)


def test_of_nothing_there_is_no_ratio():
  at = known(np.ones((3, 1)), np.ones(3), np.ones((3, 1)))
  some, nothing = np.arange(3.0), np.zeros(3)
  assert np.isnan(tried_changes._ratio(some, nothing, at)) and tried_changes._ratio(nothing, some, at) == 0
  assert np.isnan(tried_changes._symmetric_ratio(some, nothing, at))
  assert np.isnan(tried_changes._symmetric_ratio(nothing, some, at))
  assert tried_changes._contradicted(nothing, nothing, at) == np.inf
  assert tried_changes._contradicted(some, nothing, at) == 1


def of_one(x, y, slopes, scale, **changes):
  at = known(x[:, None], y, slopes[:, None], scale)
  return list(tried_changes._of_one(at, 0, dataclasses.replace(CONFIG, **changes)))


def test_a_column_is_left_out_by_what_it_does_in_the_spread_of_y(rng, scale):
  x, y, slopes = rng.uniform(1, 3, 40), rng.normal(size=40), 0.3 + 0.1 * rng.normal(size=40)
  plain = of_one(x, y, slopes, scale)[0]
  counts = scale**2 / np.sum(scale**2)
  variance = np.sum(counts * (y - np.sum(counts * y)) ** 2)
  assert plain.error == pytest.approx(np.std(x) * np.sqrt(np.sum(counts * slopes**2) / variance))
  assert not plain.replaced and not plain.divisor and plain.summand is None and plain.dropped == 0
  # Of a y that does not vary a column that does something is far from being left out.
  assert of_one(x, np.ones(40), slopes, scale)[0].error > 1e6


@pytest.mark.parametrize(("share", "is_term"), [(0.99, False), (1.01, True), (-1.01, True)])
def test_a_term_has_a_share_of_the_spread_of_y(share, is_term, rng, scale):
  x, y = rng.uniform(1, 3, 40), rng.normal(size=40)
  counts = scale**2 / np.sum(scale**2)
  spread = np.sqrt(np.sum(counts * (y - np.sum(counts * y)) ** 2))
  slope = share * 0.2 * spread / np.std(x)
  slopes = rng.normal(size=40)
  slopes += slope - np.sum(counts * slopes)
  terms = [change for change in of_one(x, y, slopes, scale, least_term=0.2) if change.summand is not None]
  assert len(terms) == is_term
  for change in terms:
    np.testing.assert_allclose(expression.evaluate(change.summand, x[:, None]), slope * x)
    assert not change.is_simple and change.error == pytest.approx(np.sqrt(
      np.sum(counts * (slopes - slope) ** 2) / np.sum(counts * (slopes**2 + slope**2))))


@pytest.mark.parametrize(("told", "divisors"), [(1.2, {1.0}), (0.74, {0.5, 1.0}), (-1.26, {-1.5, -1.0}), (5.0, set())])
def test_powers_that_are_factors_are_those_that_slopes_tell_of(told, divisors, scale):
  x = np.linspace(1, 3, 40)
  y = x**told
  found = [change for change in of_one(x, y, told * y / x, scale, reach=0.3, divisors=(-1.5, -1.0, 0.5, 1.0))
           if change.divisor]
  assert {change.divisor[0] for change in found} == {(0, p) for p in divisors}
  for change in found:
    p = change.divisor[0][1]
    assert change.error == pytest.approx(abs(told - p) / np.hypot(told, p))


@pytest.mark.parametrize("power", [-2.0, 0.5, 1.0])
def test_a_product_of_powers_takes_the_place_of_two_columns(power, rng, scale):
  x = rng.uniform(1, 2, (40, 2))
  m = x[:, 0] ** power * x[:, 1]
  y, slope = np.sin(m), np.cos(m)
  slopes = np.column_stack([slope * power * m / x[:, 0], slope * m / x[:, 1]])
  found = sorted(tried_changes._products(known(x, y, slopes, scale), (0, 1), CONFIG), key=lambda change: change.error)
  assert found[0].error < 1e-12 and found[0].dropped == 0
  [(column, (node, derivative))] = found[0].replaced.items()
  np.testing.assert_allclose(expression.evaluate(node, x), m)
  np.testing.assert_allclose(derivative, m / x[:, 1])
  assert column == 1 and len(found) == sum(abs(p - power) <= CONFIG.reach * abs(p) for p in CONFIG.factors)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sum_takes_the_place_of_two_columns(sign, rng, scale):
  x = rng.uniform(1, 2, (40, 2))
  y = np.exp(0.5 * (x[:, 1] + sign * x[:, 0]))
  slopes = np.column_stack([0.5 * sign * y, 0.5 * y])
  [change] = tried_changes._sums(known(x, y, slopes, scale), (0, 1), CONFIG)
  [(column, (node, derivative))] = change.replaced.items()
  np.testing.assert_allclose(expression.evaluate(node, x), x[:, 1] + sign * x[:, 0])
  assert change.error < 1e-12 and (change.dropped, column) == (0, 1) and np.all(derivative == 1)


def test_errors_of_columns_that_grow_together_count_as_those_of_y(rng, scale):
  """By the definition: the rest of Euler's equation in the sizes of its parts."""
  x = rng.uniform(1, 2, (40, 2))
  y = x[:, 0] * (1 + np.cos(x[:, 1] / x[:, 0]))
  first = 1 + np.cos(x[:, 1] / x[:, 0]) + x[:, 1] / x[:, 0] * np.sin(x[:, 1] / x[:, 0])
  slopes = np.column_stack([first, -np.sin(x[:, 1] / x[:, 0])]) + 0.01 * rng.normal(size=(40, 2))
  [change] = tried_changes._scalings(known(x, y, slopes, scale), (0, 1), CONFIG)
  parts = np.column_stack([x * slopes, -y]) * scale[:, None]
  [(over, power)] = change.divisor
  simple = np.array([1.0, 1.0, power])
  expected = np.linalg.norm(parts @ simple) / np.linalg.norm(parts * simple)
  assert change.error == pytest.approx(expected) and power == 1 and change.dropped == over
  [(column, (node, derivative))] = change.replaced.items()
  np.testing.assert_allclose(expression.evaluate(node, x), x[:, column] / x[:, over])
  np.testing.assert_allclose(derivative, 1 / x[:, over])


@pytest.mark.parametrize("column", [0, 1])
def test_columns_that_are_not_above_0_do_not_grow_together(column, rng):
  x = rng.uniform(1, 2, (40, 2))
  y = x[:, 0] * np.exp(-x[:, 1] / x[:, 0])
  slopes = np.column_stack([y / x[:, 0] + y * x[:, 1] / x[:, 0] ** 2, -y / x[:, 0]])
  assert list(tried_changes._scalings(known(x, y, slopes), (0, 1), CONFIG))
  x[3, column] = 0.0
  assert not list(tried_changes._scalings(known(x, y, slopes), (0, 1), CONFIG))


def test_changes_are_of_one_column_of_two_and_of_as_many_as_may_grow_together(monkeypatch):
  at = known(np.ones((5, 4)), np.ones(5), np.ones((5, 4)))
  for name in ("_of_one", "_products", "_sums", "_scalings"):
    monkeypatch.setattr(tried_changes, name, lambda known, chosen, config, name=name: iter([(name, chosen)]))
  found = list(tried_changes._changes(at, dataclasses.replace(CONFIG, max_scaled=3)))
  pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
  assert found[:4] == [("_of_one", i) for i in range(4)]
  assert found[4:16] == [(name, pair) for pair in pairs for name in ("_products", "_sums")]
  assert found[16:] == [("_scalings", each) for each in [*pairs, (0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]]


@pytest.mark.parametrize(("errors", "expected"), [
  ([1.0, 0.9, 0.5], 0.5), ([1.0, 1.04, 9.0], 1.04), ([1.0, 1.06, 0.1], None), ([0.51, 0.1, 0.1], None),
  ([0.49, 0.4, 0.42], 0.42), ([np.inf, 0.1, 0.1], None)])
def test_changes_follow_one_another_as_long_as_little_is_lost(errors, expected, monkeypatch, rng):
  """Errors of tables of three, two and one columns, in units of the first two thirds of which nothing is known."""
  x = rng.uniform(1, 2, (30, 3))
  y = rng.normal(size=30)
  unit = np.var(y) * (1.0 if errors[0] in (0.51, 0.49) else 0.4)
  monkeypatch.setattr(tried_changes, "_known", lambda table, x, y, config: _Known(
    table, None, None, unit * errors[3 - len(table.columns)]))

  def likely(at, config):
    table = at.table
    return [(Change(0.1, 0, {}), Reduced(table.x[:, 1:], table.y, table.columns[1:]))]

  monkeypatch.setattr(tried_changes, "_likely", likely)
  found = tried_changes.find_smaller(x, y, dataclasses.replace(CONFIG, num_rows=30))
  assert len(found) == (expected is not None)
  if found:
    assert found[0].error == pytest.approx(np.sqrt(unit * expected / np.var(y)))
    assert len(found[0].columns) == 3 - errors.index(expected)


def test_a_table_is_known_by_its_errors_in_the_user_s_unit(monkeypatch, rng):
  x, y, asked = rng.uniform(1, 2, (30, 2)), rng.normal(size=30), []
  table = reduced_tables.whole(x, y)._replace(y=y / x[:, 0], steps=(expression.variable(0),))

  class Fitted:
    errors, slopes = np.arange(30.0), np.ones((30, 2))

  def fit(x, y, scale, config):
    asked.append((y, scale, config))
    return Fitted

  monkeypatch.setattr(tried_changes.gaussian_process, "fit_divided", fit)
  found = tried_changes._known(table, x, y, CONFIG)
  [(target, scale, config)] = asked
  np.testing.assert_allclose(target, y / x[:, 0])
  np.testing.assert_allclose(scale, x[:, 0])
  assert config == CONFIG.surrogate and found.error == pytest.approx(np.mean((np.arange(30) * x[:, 0]) ** 2))
  Fitted.errors = np.full(30, np.nan)
  assert tried_changes._known(table, x, y, CONFIG).error == np.inf
