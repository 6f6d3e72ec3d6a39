"""Fractions over one or two sums of columns, and logarithms of these."""

import dataclasses

from exact_rows import NAMES, rows_of, share_left
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, ClosedFormsConfig, LogarithmsOfSumsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources import logarithms_of_sums, projections
from symformer_jax.sources.closed_forms import ClosedForms
from symformer_jax.sources.logarithms_of_sums import sums_of

CONFIG = DEFAULT.closed_forms.logarithms_of_sums
SHARES = ((0.02, 0.9), (0.1, 1.2), (0.1, 1.2))


def found_in(rows, config=CONFIG, rule=None):
  num_columns = rows.x.shape[1]
  return sums_of(rows, range(num_columns), rule or Rule(num_columns), config)


@pytest.mark.parametrize(("text", "box", "most_nodes"), [
  ("-log(x + y*(1 - x)) + (1 - x)*(y/(x + y*(1 - x)) - z/(z*x + 1 - x))", SHARES, 44),
  ("exp(-log(x + y*(1 - x)) + (1 - x)*(y/(x + y*(1 - x)) - z/(z*x + 1 - x)))", SHARES, 45),
  ("-2.5*x*log(x + y*(1 - x)) - 2.5*(1 - x)*log(1 - x + z*x)", SHARES, 32),
  ("3*log(1 + x/y) - 3*x/(x + y)", ((0.2, 9), (1, 9)), 24),
  ("sqrt(log(x + y*z) - x/(x + y*z))", ((2, 9), (1, 3), (1, 2)), 20),
  ("0.7*log(y - x) + x*y - z/(y - x)", ((0.2, 1), (2, 3), (0.4, 2)), 22),
  ("0.000001*log(x + y) - 0.000001*x/(x + y)", ((0.5, 2), (0.5, 3)), 16),
  ("log(x - 1) + y/(x - 1)", ((1.1, 3), (0.5, 3)), 13),
])
def test_sums_are_met_exactly(text, box, most_nodes):
  rows = rows_of(text, box)
  [node] = found_in(rows)
  assert share_left(node, rows) < 1e-24 and expression.complexity(node) <= most_nodes


@pytest.mark.parametrize(("text", "noise"), [
  ("log(x + y) - x/(x + y)", 1e-6), ("x*sin(7*y) + 2*z", 0.0), ("(x + 2*y)/(x + y*z)", 0.0), ("x*log(y) + z", 0.0)])
def test_of_what_has_no_logarithm_of_a_sum_there_is_none(text, noise):
  assert found_in(rows_of(text, ((0.5, 2), (0.5, 3), (0.5, 2)), noise=noise)) == []


def test_sums_that_are_0_in_a_row_have_no_logarithm():
  rows = rows_of("log(x + y) - x/(x + y)", ((2, 3), (0.5, 1)))
  rows.x[3, 1], rows.y[3] = rows.x[3, 0], np.log(2 * rows.x[3, 0]) - 0.5
  [node] = found_in(rows)
  assert share_left(node, rows) < 1e-24
  with np.errstate(all="ignore"):
    terms = logarithms_of_sums._Terms.of(logarithms_of_sums._outer([variable(0), variable(1)]), rows)
    blocks = list(logarithms_of_sums._blocks([variable(0), variable(1)], rows, projections.directions(terms.values)))
  assert all(np.all(np.isfinite(block.terms.values)) and len(block.terms.products) == 7 for block in blocks)


def test_one_column_four_few_rows_and_what_is_not_allowed_have_none():
  text, box = "log(x + y) - x/(x + y)", ((0.5, 2), (0.5, 3))
  rows = rows_of(text, box)
  assert len(found_in(rows)) == 1
  assert sums_of(rows, (0,), Rule(2), CONFIG) == []
  assert found_in(rows, dataclasses.replace(CONFIG, max_columns=1)) == []
  assert found_in(rows_of(text, box, num_rows=40)) == []
  for operators in (("+", "*", "inv"), ("+", "*", "ln")):
    options = SearchOptions(restrictions=Restrictions(operators=operators))
    assert found_in(rows, rule=make_task((rows.x, rows.y), NAMES[:2], options).rule) == []


def test_where_linear_algebra_fails_there_is_none(monkeypatch):
  def fail(*given):
    raise np.linalg.LinAlgError
  monkeypatch.setattr(logarithms_of_sums, "_nearest", fail)
  assert found_in(rows_of("log(x + y) - x/(x + y)", ((0.5, 2), (0.5, 3)))) == []


def test_there_are_two_rows_for_each_term():
  """1, two columns, three products, six logarithms; of each of two sums four fractions and three logarithms."""
  rows = rows_of("log(x + y) - x/(x + y)", ((0.5, 2), (0.5, 3)))
  for num_rows, is_found in ((52, True), (51, False)):
    assert bool(found_in(Rows(rows.x[:num_rows], rows.y[:num_rows], np.ones(num_rows)))) is is_found


def test_of_two_that_are_met_the_shorter_is_taken(monkeypatch):
  long, short = (parser.parse(text, NAMES[:2]) for text in ("log(x + y) - x/(x + y)", "log(x + y)"))
  written = iter((long, short))
  monkeypatch.setattr(logarithms_of_sums, "_nearest", lambda *given: [(0,), (1,)])
  monkeypatch.setattr(logarithms_of_sums, "_written", lambda *given: next(written))
  assert found_in(rows_of("log(x + y) - x/(x + y)", ((0.5, 2), (0.5, 3)))) == [short]


def asked_of(config):
  rows = rows_of("log(x + y*z) - x/(x + y*z)", ((2, 9), (1, 3), (1, 2)))
  options = SearchOptions(config=dataclasses.replace(DEFAULT, closed_forms=config))
  task = make_task((rows.x, rows.y), NAMES[:3], options)
  return min(share_left(node, rows) for node in ClosedForms(options.config)._proposal(task).nodes)


def test_closed_forms_have_them_unless_they_are_left_out():
  assert asked_of(ClosedFormsConfig()) < 1e-20 < asked_of(ClosedFormsConfig(has_logarithms_of_sums=False))


def test_of_two_sums_what_is_left_is_that_of_least_squares(rng):
  """The nearest pair by products of small matrices, against least squares of all."""
  rows = rows_of("sin(3*x)*y", ((0.5, 2), (0.5, 3)), num_rows=120)
  plain = [variable(0), variable(1)]
  with np.errstate(all="ignore"):
    outer = logarithms_of_sums._Terms.of(logarithms_of_sums._outer(plain), rows)
    basis = projections.directions(outer.values)
    blocks = list(logarithms_of_sums._blocks(plain, rows, basis))
  left = projections.without(rows.y, basis)

  def left_beside(i, j):
    design = np.concatenate([outer.values, blocks[i].terms.values, blocks[j].terms.values], axis=1)
    design = design / np.linalg.norm(design, axis=0)
    return np.sum((rows.y - design @ np.linalg.lstsq(design, rows.y, rcond=1e-12)[0]) ** 2)

  pairs = [(i, j) for i in range(len(blocks)) for j in range(i)]
  every = {tuple(sorted(pair)): left_beside(*pair) for pair in pairs}
  few = dataclasses.replace(CONFIG, num_tried=6, num_written=6)
  nearest = logarithms_of_sums._nearest(blocks, left, np.inf, few)
  assert nearest == [(i,) for i in range(min(6, len(blocks)))]  # whatever is left a single one will do
  singles = min(logarithms_of_sums._left_by([block.basis], left) for block in blocks)
  found = logarithms_of_sums._nearest(blocks, left, 0.999 * singles, few)
  assert every[found[0]] == pytest.approx(min(every.values()), rel=0.01)
  assert all(every[pair] <= 1.01 * singles for pair in found)


@pytest.mark.parametrize("wrong", [
  {"max_columns": 0}, {"max_rows": 0}, {"rows_per_term": 0}, {"num_tried": 0}, {"num_written": 0}, {"links": ("no",)}])
def test_limits_are_checked(wrong):
  with pytest.raises(ValueError):
    LogarithmsOfSumsConfig(**wrong)


@pytest.mark.parametrize(("factor", "expected"), [(2 + 1e-10, 2.0), (-1 - 1e-8, -1 - 1e-8), (0.5, 0.5)])
def test_factors_that_are_whole_but_for_rounding_are_whole(factor, expected):
  assert logarithms_of_sums._simple(factor) == expected


# --- what is left of columns beside others ---------------------------------------------------------------------------


def test_columns_that_are_not_needed_are_left_out_one_by_one(rng):
  columns = np.column_stack([rng.normal(size=(60, 4)), np.zeros(60)])
  target = 3 * columns[:, 1] - 0.5 * columns[:, 3]
  chosen, factors = projections.sparse(columns, target, 0.0, times_left=100.0)
  assert chosen == [1, 3] and factors == pytest.approx([3.0, -0.5])
  assert len(projections.sparse(columns, target, 1e9, times_left=1.0)[0]) == 1  # one stays
  loose = 0.26 * float(columns[:, 3] @ columns[:, 3])
  assert projections.sparse(columns, target, loose, times_left=1.0)[0] == [1]


def test_directions_are_those_that_are_not_told_by_others(rng):
  design = rng.normal(size=(50, 3))
  twice = np.column_stack([design, design[:, 0] - 2 * design[:, 1], np.zeros(50), np.full(50, np.inf)])
  basis = projections.directions(twice)
  assert basis.shape == (50, 3)
  np.testing.assert_allclose(basis @ (basis.T @ design), design, atol=1e-12)
  assert projections.directions(np.zeros((50, 2))).shape == (50, 0)
