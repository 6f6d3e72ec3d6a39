"""Parts of changes that are tried one by one: rows count as their errors do in the user's y, and what slopes tell."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.sources.reductions import reduced_tables, tried_changes
from symformer_jax.sources.reductions.reduced_tables import Reduced
from symformer_jax.sources.reductions.tried_changes import _Known, _Step, _Told

CONFIG = DEFAULT.reductions.tried


def told(x, y, slopes, scale=None):
  return _Told(reduced_tables.whole(x, y), slopes, np.ones(len(y)) if scale is None else scale)


@pytest.fixture
def scale(rng):
  return rng.uniform(0.2, 3, 40)


def test_rows_count_as_their_errors_do(rng, scale):
  """Sizes and contradictions by the squares of what is scaled."""
  first, second = rng.normal(size=40), rng.normal(size=40)
  at = told(np.ones((40, 1)), first, np.ones((40, 1)), scale)
  one, other = first * scale, second * scale
  assert tried_changes._size(first, at) == pytest.approx(np.sqrt(np.sum(one**2)))
  expected = np.sqrt(np.sum((one - other) ** 2) / np.sum(one**2 + other**2))
  assert tried_changes._contradicted(first, second, at) == pytest.approx(expected)


def test_nothing_has_nothing_to_do_with_anything():
  at = told(np.ones((3, 1)), np.ones(3), np.ones((3, 1)))
  some, nothing = np.arange(3.0), np.zeros(3)
  assert tried_changes._contradicted(nothing, nothing, at) == np.inf
  assert tried_changes._contradicted(some, nothing, at) == tried_changes._contradicted(nothing, some, at) == 1
  assert tried_changes._contradicted(some, some, at) == 0


def of_one(x, y, slopes, scale, **changes):
  at = told(x[:, None], y, slopes[:, None], scale)
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
  """... and its slope, or that to one digit."""
  x, y = rng.uniform(1, 3, 40), rng.normal(size=40)
  counts = scale**2 / np.sum(scale**2)
  spread = np.sqrt(np.sum(counts * (y - np.sum(counts * y)) ** 2))
  slope = share * 0.2 * spread / np.std(x)
  slopes = rng.normal(size=40)
  slopes += slope - np.sum(counts * slopes)
  terms = [change for change in of_one(x, y, slopes, scale, least_term=0.2) if change.summand is not None]
  factors = [slope, float(np.format_float_positional(slope, precision=1, fractional=False))]
  assert len(terms) == 2 * is_term
  for change, factor in zip(terms, factors, strict=False):
    np.testing.assert_allclose(expression.evaluate(change.summand, x[:, None]), factor * x)
    assert not change.is_simple and change.error == pytest.approx(np.sqrt(
      np.sum(counts * (slopes - factor) ** 2) / np.sum(counts * (slopes**2 + factor**2))))


def test_a_slope_of_one_digit_is_one_term(scale):
  x = np.linspace(1, 3, 40)
  [term] = [change for change in of_one(x, 2 * x, np.full(40, 2.0), scale) if change.summand is not None]
  assert term.error < 1e-12


@pytest.mark.parametrize("true", [1.2, 0.74, -1.26, 5.0])
def test_powers_that_are_factors_are_contradicted_by_what_they_are_from_what_slopes_tell(true, scale):
  x = np.linspace(1, 3, 40)
  y = x**true
  divisors = (-1.5, -1.0, 0.5, 1.0)
  found = [change for change in of_one(x, y, true * y / x, scale, divisors=divisors) if change.divisor]
  assert [change.divisor for change in found] == [((0, p),) for p in divisors]
  for change in found:
    p = change.divisor[0][1]
    assert change.error == pytest.approx(abs(true - p) / np.hypot(true, p))


@pytest.mark.parametrize("power", [-2.0, 0.5, 1.0])
def test_a_product_of_powers_takes_the_place_of_two_columns(power, rng, scale):
  x = rng.uniform(1, 2, (40, 2))
  m = x[:, 0] ** power * x[:, 1]
  y, slope = np.sin(m), np.cos(m)
  slopes = np.column_stack([slope * power * m / x[:, 0], slope * m / x[:, 1]])
  found = sorted(tried_changes._products(told(x, y, slopes, scale), (0, 1), CONFIG), key=lambda change: change.error)
  assert found[0].error < 1e-12 and found[0].dropped == 0
  [(column, (node, derivative))] = found[0].replaced.items()
  np.testing.assert_allclose(expression.evaluate(node, x), m)
  np.testing.assert_allclose(derivative, m / x[:, 1])
  assert column == 1 and len(found) == len(CONFIG.factors) and found[1].error > 0.1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sum_takes_the_place_of_two_columns(sign, rng, scale):
  x = rng.uniform(1, 2, (40, 2))
  y = np.exp(0.5 * (x[:, 1] + sign * x[:, 0]))
  slopes = np.column_stack([0.5 * sign * y, 0.5 * y])
  found = list(tried_changes._sums(told(x, y, slopes, scale), (0, 1)))
  change, other = found[:: 1 if sign > 0 else -1]
  assert other.error == pytest.approx(np.sqrt(2))  # slopes of the opposite sign
  [(column, (node, derivative))] = change.replaced.items()
  np.testing.assert_allclose(expression.evaluate(node, x), x[:, 1] + sign * x[:, 0])
  assert change.error < 1e-12 and (change.dropped, column) == (0, 1) and np.all(derivative == 1)


def test_errors_of_columns_that_grow_together_count_as_those_of_y(rng, scale):
  """By the definition: the rest of Euler's equation in the sizes of its parts."""
  x = rng.uniform(1, 2, (40, 2))
  y = x[:, 0] * (1 + np.cos(x[:, 1] / x[:, 0]))
  first = 1 + np.cos(x[:, 1] / x[:, 0]) + x[:, 1] / x[:, 0] * np.sin(x[:, 1] / x[:, 0])
  slopes = np.column_stack([first, -np.sin(x[:, 1] / x[:, 0])]) + 0.01 * rng.normal(size=(40, 2))
  [change] = tried_changes._scalings(told(x, y, slopes, scale), (0, 1), CONFIG)
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
  assert list(tried_changes._scalings(told(x, y, slopes), (0, 1), CONFIG))
  x[3, column] = 0.0
  assert not list(tried_changes._scalings(told(x, y, slopes), (0, 1), CONFIG))


def test_changes_are_of_one_column_of_two_and_of_as_many_as_may_grow_together(monkeypatch):
  at = told(np.ones((5, 4)), np.ones(5), np.ones((5, 4)))
  for name in ("_of_one", "_products", "_sums", "_scalings"):
    monkeypatch.setattr(tried_changes, name, lambda told, chosen, *config, name=name: iter([(name, chosen)]))
  found = list(tried_changes._changes(at, dataclasses.replace(CONFIG, max_scaled=3)))
  pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
  assert found[:4] == [("_of_one", i) for i in range(4)]
  assert found[4:16] == [(name, pair) for pair in pairs for name in ("_products", "_sums")]
  assert found[16:] == [("_scalings", each) for each in [*pairs, (0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]]


# --- the way to smaller tables ---------------------------------------------------------------------------------------


class Smooth:
  """As likely as it says, with such an error in every row."""

  bend = 0.0

  def __init__(self, nats, error=0.1):
    self._nats, self._error = nats, error

  def nats(self):
    return self._nats

  def errors(self):
    return np.full(30, self._error)


def table_of(num_columns):
  x = np.random.default_rng(0).uniform(1, 2, (30, 3))
  return reduced_tables.whole(x[:, :num_columns], x[:, 0])


@pytest.mark.parametrize(("first", "tries", "expected"), [
  (10.0, [[(10.0, 0)], [(10.0, 0)]], 1), (10.0, [[(9.9, 0)]], None),  # no less likely
  (10.0, [[(12.9, 1)]], None), (10.0, [[(13.0, 1)]], 2),  # a node costs three nats
  (10.0, [[(30.0, 5), (20.0, 1), (19.0, 0)], []], 2),  # the likeliest, less its price
  (10.0, [[(20.0, 0)], [(19.9, 0)]], 2), (10.0, [[(16.0, 2)], [(15.9, 0)]], 2),  # compared with what the last one was
  (10.0, [[]], None)])
def test_changes_follow_one_another_as_long_as_y_is_likelier_by_more_than_their_nodes_cost(
    first, tries, expected, monkeypatch):
  found = iter(tries)

  def likely(way, known):
    table = table_of(len(known.table.columns) - 1)
    return [(_Step(table, complexity, (0,)), _Known(table, np.ones(30), Smooth(nats), nats))
            for nats, complexity in next(found, [])]

  monkeypatch.setattr(tried_changes._Way, "begin", lambda way: _Known(table_of(3), np.ones(30), Smooth(first), first))
  monkeypatch.setattr(tried_changes._Way, "likely", likely)
  x = table_of(3).x
  found_tables = tried_changes.find_smaller(x, x[:, 0], dataclasses.replace(CONFIG, nats_per_node=3.0))
  assert [len(table.columns) for table in found_tables] == ([] if expected is None else [expected])
  for table in found_tables:
    assert table.error == pytest.approx(0.1 / np.std(x[:, 0]))


def test_of_tables_that_are_as_likely_the_one_of_less_price_stands(monkeypatch):
  tables = [table_of(1)._replace(columns=(expression.variable(i),)) for i in range(3)]
  monkeypatch.setattr(tried_changes._Way, "begin", lambda way: _Known(table_of(2), np.ones(30), Smooth(0.0), 0.0))
  monkeypatch.setattr(tried_changes._Way, "likely", lambda way, known: [
    (_Step(table, complexity, (0,)), _Known(table, np.ones(30), Smooth(nats), nats))
    for table, complexity, nats in zip(tables, (4, 2, 3), (6.0, 6.0, 6.4), strict=True)])
  x = table_of(2).x
  [found] = tried_changes.find_smaller(x, x[:, 0], dataclasses.replace(CONFIG, nats_per_node=0.5))
  assert found.columns == tables[1].columns


@pytest.mark.parametrize(("error", "is_known"), [(0.499, True), (0.501, False), (np.nan, False)])
def test_of_what_is_known_too_little_there_is_no_smaller_table(error, is_known, monkeypatch):
  y, asked = np.resize([1.0, -1.0], 30), []
  smooth = Smooth(0.0, np.sqrt(error))
  monkeypatch.setattr(tried_changes._Way, "begin", lambda way: _Known(table_of(2), np.ones(30), smooth, 0.0))
  monkeypatch.setattr(tried_changes._Way, "likely", lambda way, known: asked.append(known) or [])
  assert tried_changes.find_smaller(table_of(2).x, y, dataclasses.replace(CONFIG, most_left=0.5)) == []
  assert bool(asked) is is_known


def test_errors_are_mean_squares_in_the_user_s_unit_or_infinite():
  table = table_of(2)
  assert _Known(table, np.ones(30), Smooth(0.0, 0.3)).error() == pytest.approx(0.09)
  assert _Known(table, np.ones(30), Smooth(0.0, np.nan)).error() == np.inf


class Weighed:
  """As `Likely`: as likely by rows as their table's first value, and by as much more by every step as its last."""

  asked: list

  def __init__(self, x, y, scale, config, *, bend=0.0, parameters=None):
    self.x, self.y, self.scale, self.bend, self.parameters, self.climb = x, y, scale, bend, parameters, 0.0
    self.config = config
    self.asked.append(self)

  def climbed(self, num_steps):
    self.climb = self.x[-1, 0] * num_steps
    return self

  def slopes(self):
    return np.ones_like(self.x)

  def nats(self):
    return float(self.x[0, 0]) + self.climb


@pytest.fixture
def weighed(monkeypatch):
  """What is asked of a way, whose steps lead to tables whose column has these first and last values."""
  def run(values, **changes):
    x = np.random.default_rng(0).uniform(1, 2, (11, 2))
    monkeypatch.setattr(Weighed, "asked", [], raising=False)
    monkeypatch.setattr(tried_changes, "Likely", Weighed)
    steps = []
    for first, last in values:
      column = np.linspace(0, 1, 11)
      column[[0, -1]] = first, last
      table = Reduced(column[:, None], x[:, 0], (expression.variable(0),))
      steps.append(_Step(Fixed(table), 0, (0,)))
    monkeypatch.setattr(tried_changes, "_steps", lambda told, config: iter(steps))
    way = tried_changes._Way(x, x[:, 0], dataclasses.replace(CONFIG, **changes))
    smooth = Weighed(x, x[:, 0], np.ones(11), None, parameters=np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    Weighed.asked.clear()
    return way.likely(_Known(reduced_tables.whole(x, x[:, 0]), np.ones(11), smooth)), Weighed.asked, steps
  return run


class Fixed:
  """A table whose rows are those that it has."""

  def __init__(self, table):
    self._table, self.is_usable, self.columns = table, table.is_usable, table.columns

  def of(self, x, y):
    return self._table.x[: len(y)], y, np.ones(len(y))


def test_by_half_of_the_rows_the_likeliest_are_those_that_ascend(weighed):
  found, asked, steps = weighed([(3, 0.1), (5, 0.2), (4, 0.3), (9, np.nan)], num_tried=2, num_steps=7)
  assert [len(each.y) for each in asked] == [5, 5, 5, 11, 11]  # what has no value in a row is no table
  assert [step for step, _ in found] == [steps[1], steps[2]]
  assert [known.nats for _, known in found] == pytest.approx([5 + 7 * 0.2, 4 + 7 * 0.3])
  assert all(each.config is CONFIG.surrogate for each in asked)


def test_of_what_is_as_likely_the_first_is_tried(weighed):
  found, _, steps = weighed([(3, 0.1), (3, 0.2), (3, 0.3)], num_tried=2)
  assert [step for step, _ in found] == steps[:2]


def test_a_table_begins_as_smooth_as_the_one_before_and_a_new_column_as_the_shorter_of_two(monkeypatch, rng):
  """Lengths of columns, and what follows them."""
  monkeypatch.setattr(Weighed, "asked", [], raising=False)
  monkeypatch.setattr(tried_changes, "Likely", Weighed)
  x = rng.uniform(1, 2, (12, 3))
  way = tried_changes._Way(x, x[:, 0], CONFIG)
  way._bend = 0.25
  smooth = Weighed(x, x[:, 0], None, None, parameters=np.array([0.5, 2.0, 1.0, 7.0, 8.0, 9.0]))
  known = _Known(reduced_tables.whole(x, x[:, 0]), np.ones(12), smooth)
  smaller = Reduced(x[:, 1:], x[:, 0], (expression.variable(1), expression.variable(2)), (expression.variable(2),))
  for step, expected in ((_Step(smaller, 0, (0,)), [2.0, 1.0]), (_Step(smaller, 0, (0,), (1,)), [0.5, 1.0]),
                         (_Step(smaller, 0, (1,), (0, 2)), [0.5, 1.0]), (_Step(smaller, 0, (0, 1)), [1.0])):
    after = way._after(known, step)
    assert after.smooth.parameters.tolist() == [*expected, 7.0, 8.0, 9.0] and after.smooth.bend == 0.25
    np.testing.assert_allclose(after.smooth.y, x[:, 0] / x[:, 2])
    np.testing.assert_allclose(after.scale, x[:, 2])
    np.testing.assert_allclose(after.smooth.scale, x[:, 2])
    assert len(way._after(known, step, 5).smooth.x) == 5
  assert smooth.parameters[:3].tolist() == [0.5, 2.0, 1.0]


def test_the_first_table_says_whether_y_or_its_logarithm_is_smooth(monkeypatch, rng):
  x, asked = rng.uniform(1, 2, (12, 2)), []
  smooth = Smooth(5.0)
  smooth.bend = 0.75
  monkeypatch.setattr(tried_changes.gaussian_process, "likeliest", lambda x, y, config, bend: (
    asked.append((config, bend)) or smooth))
  way = tried_changes._Way(x, x[:, 0], dataclasses.replace(CONFIG, bend=4.0))
  first = way.begin()
  assert asked == [(CONFIG.surrogate, 4.0)] and first.nats == 5.0 and way._bend == 0.75
  assert np.all(first.scale == 1) and first.table.columns == (expression.variable(0), expression.variable(1))
