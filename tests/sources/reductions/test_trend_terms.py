"""Terms beside a smooth function of the other columns: which are found, against generalized least squares."""

import dataclasses

import numpy as np
import pytest
from scipy import linalg

from symformer_jax.engine import gaussian_process
from symformer_jax.engine.config import DEFAULT, TrendConfig
from symformer_jax.engine.gaussian_process import Others
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.reductions import reduced_tables, smaller_tables, trend_terms
from symformer_jax.sources.reductions.trend_terms import find_terms

CONFIG, SURROGATE = DEFAULT.reductions.trend, DEFAULT.reductions.surrogate
NAMES = ("x", "y", "z", "w", "v", "u")


def table_of(text, box, *, num_rows=200, noise=0.0):
  rng = np.random.default_rng(7)
  x = np.column_stack([rng.uniform(low, high, num_rows) for low, high in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return x, y + noise * np.std(y) * rng.normal(size=num_rows)


def terms_of(text, box, config=CONFIG, **given):
  found = find_terms(*table_of(text, box, **given), SURROGATE, config)
  return {change.dropped: change for change in found}


def shown(change):
  return printing.to_text(change.summand, NAMES)


@pytest.mark.parametrize(("text", "box", "column", "term"), [
  ("x*sin(y) + 3*z*w", ((1, 3), (0, 3), (1, 4), (2, 5)), 3, "3*z*w"),
  ("exp(-x/y) + 0.5*z**2*w*x - 0.2*y**1.5", ((1, 3), (0.5, 3), (1, 4), (2, 5)), 2, "0.5*z**2*x*w"),
  ("cos(x*y) - z", ((0, 2), (0, 2), (-3, 3)), 2, "-z"),
  ("x/(y + z) + 2*w*v**2/u", ((1, 5), (1, 2), (0.5, 3), (1, 3), (1, 4), (1, 2)), 4, "2*v**2*w/u"),
])
def test_a_term_of_simple_factor_is_found(text, box, column, term):
  change = terms_of(text, box)[column]
  x = table_of(text, box)[0]
  expected = expression.evaluate(parser.parse(term, NAMES[: len(box)]), x)
  np.testing.assert_allclose(expression.evaluate(change.summand, x), expected, rtol=1e-12)
  assert change.is_simple and change.replaced == {} and change.error <= CONFIG.most_left


def test_another_factor_is_known_to_some_digits():
  change = terms_of("x*sin(y) + 0.73912*z*w", ((1, 3), (0, 3), (1, 4), (2, 5)))[3]
  x, _ = table_of("x", ((1, 3), (0, 3), (1, 4), (2, 5)))
  factor = expression.evaluate(change.summand, x) / (x[:, 2] * x[:, 3])
  assert not change.is_simple and factor == pytest.approx(0.73912, rel=1e-3)


def test_a_column_that_is_in_no_term_alone_stays():
  assert 0 not in terms_of("x*sin(y*x) + z*w", ((1, 3), (0, 3), (1, 4), (2, 5)))
  assert terms_of("sin(x*y*z) + x", ((0, 2), (0, 2), (0, 2))) == {}


def test_under_noise_the_term_is_the_same():
  change = terms_of("x*sin(y) + 3*z*w", ((1, 3), (0, 3), (1, 4), (2, 5)), noise=0.01)[3]
  assert {int(node.value) for node in expression.walk(change.summand) if node.token == "variable"} == {2, 3}


def test_two_columns_have_none_and_where_the_function_is_unknown_neither(monkeypatch):
  assert terms_of("sin(x) + y", ((0, 3), (1, 2))) == {}
  assert 1 in terms_of("sin(x) + y", ((0, 3), (1, 2)), dataclasses.replace(CONFIG, least_columns=2))
  monkeypatch.setattr(Others, "factor", lambda self, column, constant: None)
  assert terms_of("cos(x*y) - z", ((0, 2), (0, 2), (-3, 3))) == {}


def test_the_table_without_the_term_is_one_of_the_other_columns():
  x, y = table_of("x**z*y + 3*y*w**2 + 2*v", ((1, 3), (1, 3), (1, 2), (1, 4), (2, 5)), num_rows=224)
  first = smaller_tables.find_reductions(x, y, DEFAULT.reductions)[0]
  assert len(first.columns) == 1
  steps = {printing.to_text(step.node, NAMES) for step in first.steps if hasattr(step, "node")}
  assert any("w**2" in step for step in steps)


BOX = ((1, 3), (0.2, 1), (1, 3), (2, 4), (1, 5))


def test_terms_of_any_factor_are_taken_away_after_all_else():
  x, y = table_of("sin(x*y)*z**x + 0.73912*w*v", BOX, num_rows=224)
  *before, last = smaller_tables.find_reductions(x, y, DEFAULT.reductions)
  assert any("0.739" in printing.to_text(step.node, NAMES) for step in last.steps if hasattr(step, "node"))
  assert not any(hasattr(step, "node") for table in before for step in table.steps) and len(last.columns) == 3


def test_then_changes_of_any_numbers_are_followed(monkeypatch):
  asked = []
  x, y = table_of("sin(x*y)*z**x + 0.73912*w*v", BOX, num_rows=60)

  def go_on(self, only_simple, *, has_any_terms=False):
    asked.append((only_simple, has_any_terms))
    return has_any_terms

  monkeypatch.setattr(smaller_tables._Way, "go_on", go_on)
  monkeypatch.setattr(smaller_tables._Way, "has_terms", True)
  monkeypatch.setattr(smaller_tables._Way, "is_blurred", False)
  monkeypatch.setattr(smaller_tables._Way, "follow_neighbours", lambda self: False)
  assert smaller_tables.find_reductions(x, y, DEFAULT.reductions)
  assert asked == [(True, False), (False, False), (False, True)]


def way_of(monkeypatch, terms):
  """A blurred way, and how often it has looked for terms."""
  x, y = table_of("sin(x*y)*z + w*v", BOX, num_rows=60)
  asked = []
  monkeypatch.setattr(trend_terms, "find_terms", lambda *given: asked.append(given[0].shape[1]) or list(terms))
  way = smaller_tables._Way(x, y, DEFAULT.reductions)
  monkeypatch.setattr(smaller_tables._Way, "is_blurred", True)
  monkeypatch.setattr(smaller_tables._Way, "_is_known", True)
  return way, asked


def change_of(error, *, is_simple=True, column=4):
  term = expression.Node("*", (expression.variable(3), expression.variable(column)))
  return reduced_tables.Change(error, column, {}, is_simple=is_simple, summand=term)


def test_a_table_is_looked_at_once_and_the_surest_term_of_a_simple_factor_comes_first(monkeypatch):
  odd, sure, other = change_of(0.1, is_simple=False), change_of(0.5), change_of(0.7, column=2)
  way, asked = way_of(monkeypatch, [odd, other, sure])
  assert way._without_term(set(), only_simple=True)[1] == [sure]
  assert way._without_term({sure.key}, only_simple=True)[1] == [other]
  smaller, found = way._without_term(set(), only_simple=False)
  assert found == [odd] and len(smaller.columns) == 4 and asked == [5] and way.has_terms
  way.table = way.table._replace(x=way.table.x[:, :4])
  assert way._without_term({odd.key, sure.key, other.key}, only_simple=False) == (way.table, []) and asked == [5, 4]


def test_where_slopes_are_sharp_or_no_term_is_there_none_is_looked_for(monkeypatch):
  way, asked = way_of(monkeypatch, [])
  assert not way.has_terms and asked == [5]
  monkeypatch.setattr(smaller_tables._Way, "is_blurred", False)
  assert not way.has_terms


def test_a_term_comes_before_what_slopes_tell(monkeypatch):
  term = change_of(0.5)
  way, _ = way_of(monkeypatch, [term])
  tried = []
  monkeypatch.setattr(way, "_stands", lambda smaller, is_inexact: tried.append(len(smaller.columns)) or False)
  monkeypatch.setattr(smaller_tables.invariances, "find_changes", lambda *given: [])
  assert not way.go_on(True) and tried == [4]
  monkeypatch.setattr(smaller_tables._Way, "is_blurred", False)
  assert not way.go_on(True) and tried == [4]


# --- the definition --------------------------------------------------------------------------------------------------


@pytest.fixture
def others(rng):
  x = np.column_stack([rng.uniform(1, 2, 60), rng.uniform(0, 3, 60), 10 ** rng.uniform(0, 1, 60)])
  y = np.sin(x[:, 1]) + x[:, 0] * np.log(x[:, 2]) + 0.05 * rng.normal(size=60)
  return x, y, Others(x, y, SURROGATE)


def test_covariances_are_those_of_a_function_of_the_other_columns(others):
  x, y, made = others
  lengths, [signal], slope, noise = made._kernel.split(made._parameters)
  shown_columns = np.column_stack([x[:, :2], np.log(x[:, 2])])
  z = ((shown_columns - shown_columns.mean(axis=0)) / shown_columns.std(axis=0))[:, [0, 2]]
  distances = np.sum(((z[:, None] - z[None]) / lengths[[0, 2]]) ** 2, axis=2)
  solved = made._kernel.solve(made._parameters)
  left_out = float(np.median(np.abs(solved.weights / np.diag(solved.inverse)))) ** 2
  expected = signal * np.exp(-0.5 * distances) + slope * z @ z.T + 7.0 + max(noise, left_out) * np.eye(60)
  np.testing.assert_allclose(made.factor(1, 7.0) @ made.factor(1, 7.0).T, expected, rtol=1e-8)
  np.testing.assert_allclose(made.target * made.size + np.mean(y), y)


def test_where_nothing_is_known_there_is_no_factor(rng, monkeypatch):
  monkeypatch.setattr(gaussian_process._Kernel, "solve", lambda self, parameters: None)
  made = Others(rng.normal(size=(20, 2)), rng.normal(size=20), SURROGATE)
  assert made.factor(0, 1.0) is None


def test_factor_error_and_what_is_left_are_those_of_generalized_least_squares(others):
  x, _, made = others
  lower = made.factor(1, CONFIG.constant)
  every = TrendConfig(most_left=1e9, least_before=0.0, least_share=0.0, alike=1.0)
  terms = trend_terms._Terms.of(x, every).having(1)
  found = trend_terms._nearest(terms, made, lower, every)
  inverse = linalg.inv(lower @ lower.T)
  results = {}
  for monomial in terms.monomials:
    values = np.prod([x[:, column] ** exponent for column, exponent in monomial], axis=0)
    centred = (values - values.mean()) / values.std()
    precision = centred @ inverse @ centred
    factor = centred @ inverse @ made.target / precision
    left = made.target - factor * centred
    unit = made.size / values.std()
    results[monomial] = left @ inverse @ left / 60, factor * unit, unit / np.sqrt(precision)
  nearest = min(results, key=lambda each: results[each][0])
  assert found.monomial == nearest and all(1 in dict(each) for each in results)
  np.testing.assert_allclose((found.left, found.factor, found.deviation), results[nearest], rtol=1e-6)


# --- limits ----------------------------------------------------------------------------------------------------------


class Known:
  """Covariances that leave a target as it is: rows count alike."""

  def __init__(self, target):
    self.target, self.size = np.asarray(target, float), 1.0


def nearest_of(target, values, config, monomials=None):
  values = np.asarray(values, float).reshape(len(target), -1)
  names = monomials or [((0, float(k + 1)),) for k in range(values.shape[1])]
  terms = trend_terms._Terms(names, values, np.ones(values.shape[1]))
  return trend_terms._nearest(terms, Known(target), np.eye(len(target)), config)


@pytest.mark.parametrize(("left", "is_one"), [(1.19, True), (1.21, False)])
def test_what_is_left_is_no_more_than_rows_left_out_leave(left, is_one):
  target = np.array([10.0, np.sqrt(2 * left)])
  assert (nearest_of(target, [1.0, 0.0], CONFIG) is not None) is is_one


@pytest.mark.parametrize(("before", "is_one"), [(5.1, True), (4.9, False)])
def test_a_column_without_which_hardly_more_is_left_needs_no_term(before, is_one):
  assert (nearest_of([np.sqrt(2 * before), 0.0], [1.0, 0.0], CONFIG) is not None) is is_one


@pytest.mark.parametrize(("share", "is_one"), [(0.86, True), (0.84, False)])
def test_a_term_takes_most_of_it(share, is_one):
  config = dataclasses.replace(CONFIG, most_left=1e9)
  assert (nearest_of(10 * np.sqrt([share, 1 - share]), [1.0, 0.0], config) is not None) is is_one


def test_of_terms_that_leave_as_much_the_simplest_is_taken():
  target = np.array([10.0, 1.0, 0.0])
  near = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.03]]).T
  long, short = ((0, 2.0), (1, -1.0)), ((0, 1.0),)
  assert nearest_of(target, near, CONFIG, [long, short]).monomial == short
  assert nearest_of(target, near, dataclasses.replace(CONFIG, alike=1.0), [long, short]).monomial == long


@pytest.mark.parametrize(("factor", "deviation", "expected"), [
  (2.004, 0.003, 2.0), (2.004, 0.001, None), (0.4996, 0.0003, 0.5), (-1.498, 0.002, -1.5), (1.2345, 1e-4, None),
  (0.2504, 4e-4, 0.25), (0.251, 1e-3, None), (3.0, 2.0, None), (1.23401, 1e-4, None), (1230.4, 0.3, 1230.0)])
def test_a_factor_of_few_digits_is_taken_for_exact(factor, deviation, expected):
  term = trend_terms._Term(((0, 1.0),), factor, deviation, 0.5)
  assert trend_terms._exact(term, CONFIG) == expected


@pytest.mark.parametrize("wrong", [{"least_columns": 0}, {"most_digits": 0}])
def test_counts_are_above_0(wrong):
  with pytest.raises(ValueError):
    TrendConfig(**wrong)


def test_a_column_that_hardly_varies_is_in_no_term(rng):
  x = rng.uniform(1, 2, (60, 3))
  x[:, 2] = 1e12 + x[:, 2]
  assert {change.dropped for change in find_terms(x, np.sin(x[:, 0]) + x[:, 1], SURROGATE, CONFIG)} <= {0, 1}


def test_columns_in_exponents_that_are_undefined_are_left_out():
  x = np.array([[-1.0, 1.0], [1.0, 2.0], [2.0, 3.0], [0.0, 5.0]])
  with np.errstate(all="ignore"):
    terms = trend_terms._Terms.of(x, CONFIG)
  assert ((0, 0.5),) not in terms.monomials and ((0, -1.0),) not in terms.monomials and ((0, 2.0),) in terms.monomials
  np.testing.assert_allclose([terms.values.mean(axis=0), terms.values.std(axis=0) - 1], 0, atol=1e-12)
