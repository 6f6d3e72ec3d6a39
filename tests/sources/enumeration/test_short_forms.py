"""Short formulas that come near: those of a bank with their two constants, and poles at their places, under noise."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, ShortFormsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.enumeration import short_forms
from symformer_jax.sources.registry import SOURCES

FREE = Restrictions().for_columns(["x", "y"])
OWN = DEFAULT.short_forms


def noisy(law, num_rows=200, noise=0.01, seed=0, low=-5, high=5, columns=2):
  rng = np.random.default_rng(seed)
  x = rng.uniform(low, high, (num_rows, columns))
  with np.errstate(all="ignore"):
    y = law(*x.T)
  y = y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=num_rows)
  return Rows(x, y, np.ones(num_rows))


def found(rows, rule=FREE, **changes):
  config = dataclasses.replace(DEFAULT, short_forms=dataclasses.replace(OWN, **changes))
  with np.errstate(all="ignore"):
    return short_forms.short_forms_of(rows, range(rows.x.shape[1]), rule, config)


def first(rows, **options):
  return found(rows, **options)[0]


def left(node, rows):
  """Share of the variance."""
  return np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) / rows.y.var()


@pytest.mark.parametrize(("law", "text", "columns"), [
  (lambda x, y: 2.4 * np.cos(y) / (x * y), "2.4*cos(y)/(x*y)", 2),
  (lambda x, y: 1 / np.tan(x) - 3, "1/tan(x) - 3", 2),
  (lambda x, y: np.tan(y) / (x - 2), "tan(y)/(x - 2)", 2),
  (lambda x, y: 1.7 * np.exp(-x / y) + 0.4, "1.7*exp(-x/y) + 0.4", 2),
  (lambda x: 2 * np.sin(x) / x - 0.3, "2*sin(x)/x - 0.3", 1),
  (lambda x, y: 3 * np.cos(x) + 0.7 * y / x, "3*cos(x) + 0.7*y/x", 2),
  (lambda x, y: np.sin(x) ** 2 * np.exp(-y) + 3, "sin(x)**2*exp(-y) + 3", 2),
])
def test_short_formulas_of_a_bank_under_noise(law, text, columns):
  rows = noisy(law, columns=columns, low=0.3)
  truth = parser.parse(text, ("x", "y"))
  skeletons = [programs.skeleton(node) for node in found(rows)[:3]]
  assert left(first(rows), rows) < 1.1 * left(truth, rows)
  assert any(expression.complexity(node) <= expression.complexity(truth) + 2 for node in found(rows)[:3]), skeletons


@pytest.mark.parametrize(("law", "place"), [
  (lambda x, y: 1 / (x + 3.5704), -3.5704), (lambda x, y: x - 1 / (x + 2.2879), -2.2879),
  (lambda x, y: y / (x - 1.3) + 2, 1.3), (lambda x, y: 6.7 - 0.99 / (x - 0.123) + 3 * y, 0.123),
  (lambda x, y: 1 / (x - 1.2345) ** 2, 1.2345),
])
@pytest.mark.parametrize("seed", [1, 3, 6])
def test_a_pole_is_found_at_its_place(law, place, seed):
  rows = noisy(law, seed=seed)
  node = first(rows)
  with np.errstate(all="ignore"):
    clean = Rows(rows.x, law(*rows.x.T), rows.weights)
  assert left(node, clean) < 3e-5
  beside = np.array([[place - 1e-3, 1.0], [place + 1e-3, 1.0]])
  assert np.all(np.abs(expression.evaluate(node, beside)) > 100)


def test_poles_are_looked_for_only_where_something_stands_out(monkeypatch):
  asked = []
  monkeypatch.setattr(short_forms, "_places", lambda column, tops, config: asked.append(column[0]) or np.array([9.0]))
  found(noisy(lambda x, y: np.sin(x) + y))
  assert not asked
  rows = noisy(lambda x, y: 1 / (x - 0.1))
  found(rows)
  assert asked == rows.x[np.argmax(np.abs(rows.y))].tolist()
  asked.clear()
  found(noisy(lambda x, y: 1 / (x - 0.1)), rule=Restrictions(forbidden=("/",)).for_columns(["x", "y"]))
  assert not asked


def test_of_many_rows_those_beside_the_pole_are_kept():
  rows = noisy(lambda x, y: 1 / (x + 3.5704), num_rows=20_000)
  node = first(rows)
  with np.errstate(all="ignore"):
    assert abs(1 / expression.evaluate(node, np.array([[-3.5704, 0.0]]))[0]) < 1e-3


def test_places_lie_between_the_neighbours_of_what_stands_out():
  x = np.linspace(0, 10, 101)
  config = ShortFormsConfig(num_tops=1, reach=2, num_places=5, decades=2.0, num_steps=3)
  np.testing.assert_allclose(short_forms._places(x, np.array([40]), config), [
    3.8, 3.9, 3.98, 3.998, 4.0, 4.002, 4.02, 4.1, 4.2])
  np.testing.assert_allclose(short_forms._places(x, np.array([0]), config), [  # at the end
    0, 0.002, 0.02, 0.05, 0.1, 0.15, 0.2], atol=1e-12)


@pytest.mark.parametrize("factor", [2.0, -2.0])
def test_of_some_places_the_pole_s_own_is_the_best_whatever_its_sign(factor):
  x = np.linspace(0, 3, 40)[:, None]
  rows = Rows(x, factor / (x[:, 0] - 1.3) + 0.4, np.ones(40))
  place = short_forms._best_place(short_forms.Pole(0, 1, None, (), True), rows, np.linspace(0.05, 2.95, 30), OWN)
  assert place == pytest.approx(1.3, abs=1e-3)


def test_what_is_left_is_that_of_least_squares(rng):
  values, y, weights = rng.normal(size=(7, 30)) + 0.5, rng.normal(size=30), rng.uniform(0.1, 3, 30)
  weights[:] /= weights.sum()
  sums, root = short_forms.Sums(values, values[:4], y, weights), np.sqrt(weights)

  def left(*columns):
    design = np.column_stack(columns) * root[:, None]
    return np.sum((y * root - design @ np.linalg.lstsq(design, y * root)[0]) ** 2)

  one = np.ones(30)
  np.testing.assert_allclose(sums.of_one(has_constant=False), [left(v) for v in values])
  np.testing.assert_allclose(sums.of_one(has_constant=True), [left(v, one) for v in values])
  for has_constant, beside in ((False, ()), (True, (one,))):
    np.testing.assert_allclose(
      sums.of_product(has_constant=has_constant), [[left(v * w, *beside) for w in values[:4]] for v in values])
  found = sums.of_two()
  assert np.isnan(found[np.arange(4), np.arange(4)]).all()  # one formula twice
  expected = [[np.nan if i == j else left(v, w, one) for j, w in enumerate(values[:4])] for i, v in enumerate(values)]
  np.testing.assert_allclose(found, expected)


def test_the_nearest_are_different():
  left = np.array([[3.0, 1.0], [np.nan, 1.0 + 1e-14], [2.0, 0.5]])
  config = ShortFormsConfig(num_near=3, num_looked_at=5)
  assert list(short_forms._nearest(left, config)) == [(2, 1), (0, 1), (2, 0)]
  assert list(short_forms._nearest(left[0], config)) == [(1,), (0,)]
  assert not list(short_forms._nearest(np.array([np.nan, np.inf]), config))


def test_what_leaves_much_is_no_noise():
  rows = noisy(lambda x, y: np.sin(3.3 * x * y) + np.cos(2.7 * y + 1.1 * x))
  assert not found(rows) and found(rows, most_left=1.0)


def test_rows_that_tell_are_the_farthest_from_the_median_and_some_others(rng):
  y = rng.normal(size=100)
  y[[7, 50]] = 90, -80
  places = short_forms._telling(short_forms._distances(y, np.ones(100)), 2, 10)
  assert list(places[:2]) == [7, 50] and len(set(places.tolist())) == len(places) == 12


def test_weights_count():
  rows = noisy(lambda x, y: np.where(x > 0, 3 * np.cos(x), 3 * y), noise=0)
  on = rows.x[:, 0] > 0
  node = first(dataclasses.replace(rows, weights=np.where(on, 1.0, 1e-12)))
  np.testing.assert_allclose(expression.evaluate(node, rows.x[on]), 3 * np.cos(rows.x[on, 0]), atol=1e-3)


def test_what_is_far_away_and_does_not_count_hides_no_pole():
  rows = noisy(lambda x, y: x - 1 / (x + 2.2879))
  y, weights = rows.y.copy(), rows.weights.copy()
  y[:3], weights[:3] = 1e4, 1e-9
  node = first(dataclasses.replace(rows, y=y, weights=weights))
  assert left(node, Rows(rows.x[3:], rows.y[3:], weights[3:])) < 3e-4


@pytest.mark.parametrize("offset", [1.0, 1e6, 1e8])
def test_what_is_left_does_not_depend_on_an_offset(offset, rng):
  values, weights = rng.normal(size=(3, 60)), np.ones(60)
  y = 2 * values[0] * values[1] + 0.01 * rng.normal(size=60)
  sums = [short_forms.Sums(values, values[:2], y + some, weights) for some in (0.0, offset)]
  for ask in (lambda s: s.of_one(has_constant=True), lambda s: s.of_product(has_constant=True), lambda s: s.of_two()):
    np.testing.assert_allclose(ask(sums[1]), ask(sums[0]), rtol=1e-4, atol=1e-5)


def test_a_pole_of_fewer_rows_than_are_looked_beside():
  assert found(noisy(lambda x, y: 1 / (x + 3.57), num_rows=25), num_tops=30)
  with pytest.raises(ValueError, match="num_rows"):
    ShortFormsConfig(num_rows=10)


def test_few_rows_many_columns_and_constants_are_left_alone(rng):
  for num_rows, num_columns, expected in (
    (OWN.min_rows, 2, True), (OWN.min_rows - 1, 2, False),
    (60, OWN.max_columns, True), (60, OWN.max_columns + 1, False),
  ):
    x = rng.normal(size=(num_rows, num_columns))
    task = make_task((np.repeat(x, 2, axis=0), np.repeat(x.sum(axis=1), 2)), None, SearchOptions())
    assert SOURCES["short_forms"](None, SearchOptions()).supports(task) is expected
  task = make_task((np.ones((60, 1)), rng.normal(size=60)), None, SearchOptions())
  assert not SOURCES["short_forms"](None, SearchOptions()).supports(task)


def test_in_noise_there_is_nothing():
  for seed in range(8):
    rng = np.random.default_rng(seed)
    for num_columns in (1, 2):
      x = rng.normal(size=(OWN.min_rows, num_columns))
      assert not found(Rows(x, rng.normal(size=len(x)), np.ones(len(x))))


def test_what_has_no_value_on_a_row_is_left_out():
  """Not one of the rows on which the bank is made."""
  rows = noisy(lambda x, y: np.log(np.abs(x)), num_rows=400)
  for node in found(rows):
    assert np.isfinite(expression.evaluate(node, rows.x)).all()


def test_the_shortest_descriptions_come_first():
  rows = noisy(lambda x, y: np.exp(-x) + y, low=0.3)
  nodes = found(rows)
  nats = [100 * np.log(left(node, rows) + 1e-12) + 2 * expression.complexity(node) for node in nodes]
  assert np.all(np.diff(nats) > -0.1) and len(set(nodes)) == len(nodes) > 20


def test_its_formulas_keep_the_rule_and_their_number(rng):
  x = rng.uniform(0.5, 4, (80, 2))
  y = 2 * np.cos(x[:, 0]) + 0.02 * rng.normal(size=80)
  options = SearchOptions(restrictions=Restrictions(forbidden=("cos",)))
  for some, has_cosines in ((SearchOptions(), True), (options, False)):
    task, source = make_task((x, y), ["x", "y"], some), SOURCES["short_forms"](None, some)
    question = Question(task, Pool(task.variance, 80), source.init(task, jax.random.key(0)))
    [proposal] = source.propose([question], turn=0, num=5, clock=Clock())
    assert len(proposal.nodes) == 5 and source.turns == OWN.turns and source.supports(task)
    assert ("cos" in str(proposal.nodes)) is has_cosines
