"""What decides among equals and just at a limit: orders, signs, columns with a 0; with made up parts."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, ViewsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import quadratics, rational_fits, views
from symformer_jax.sources.reductions import reductions, smaller_tasks
from symformer_jax.sources.sums import products, terms
from symformer_jax.sources.unknowns import single_index

# --- views and roots -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "text"), [("arctangents", "arctan(x)"), ("arccotangents", "arctan(1/x)")])
def test_angles_of_quotients_stand_beside_their_column(name, text):
  [view] = views.views(np.array([[0.2], [0.7]]), ViewsConfig((name,), (), False))
  assert [printing.to_text(part.node, ("x",)) for part in view] == ["x", text]


@pytest.mark.parametrize("column", [[0.0, 1.0, 2.0], [0.0, -1.0, -2.0], [-1.0, 1.0, 2.0]])
def test_a_column_leaves_a_root_where_it_keeps_its_sign_alone(column):
  x = np.column_stack([column, [2.0, 3.0, 5.0]])
  node = quadratics._square_root({(2.0, 1.0): 1.0, (2.0, 0.0): -1.0}, x)
  np.testing.assert_allclose(expression.evaluate(node, x), np.sqrt(x[:, 0] ** 2 * (x[:, 1] - 1)), rtol=1e-12)
  kept = x + [[-x[:, 0].min() + 1.0, 0.0]]
  node = quadratics._square_root({(2.0, 1.0): 1.0, (2.0, 0.0): -1.0}, kept)
  assert "pow2" not in {part.token for part in expression.walk(node)}
  np.testing.assert_allclose(expression.evaluate(node, kept), kept[:, 0] * np.sqrt(kept[:, 1] - 1), rtol=1e-12)


# --- orders ----------------------------------------------------------------------------------------------------------


def test_of_starts_that_are_as_good_the_first_is_asked_first(rng):
  """Solutions by themselves, and extended by each smaller one before."""
  config = SimpleNamespace(num_steps=1, max_idle=1000)
  for _ in range(5):
    asked, count, whole, errors = [], itertools.count(), iter([True] * 39), rng.integers(0, 2, 40).astype(float)
    # The first 39 are taken at once; the fortieth has forty to begin with.
    equation = SimpleNamespace(
      reweighted=lambda own, num, count=count: np.array([next(count), 1.0]), num_rows=9,
      is_whole=lambda some, asked=asked, whole=whole: asked.append(some[0, 0]) or np.array([next(whole, False)]),
      errors=lambda some, errors=errors: errors if len(some) == 40 else np.zeros(len(some)),
      refined=lambda start, num, count=count: np.array([next(count), 1.0]))
    rational_fits._best_refined(equation, [np.ones(2)] * 40, config)
    last, choices = asked[-40:], sorted(asked[-40:])
    assert len(set(last)) == 40
    # The latest number is that of the solution itself, which is the first of all; the others are in their order.
    in_order = [choices[-1], *choices[:-1]]
    assert last == [in_order[i] for i in np.argsort(errors, kind="stable")]


def test_products_are_fitted_by_the_nats_that_describe_the_data_with_them(monkeypatch):
  short, long = parser.parse("x0 + x1", ("x0", "x1")), parser.parse("x0*x1*x0 + 2.5", ("x0", "x1"))
  lists = {"first": [(long, 1.0), (short, 1.0)], "second": [(short, 1.0), (long, 1e-9)]}
  monkeypatch.setattr(terms.products, "find_products", lambda *given, **named: list(lists))
  monkeypatch.setattr(terms, "scored", lambda formulas, rows, *, max_nodes: lists["".join(formulas)])
  monkeypatch.setattr(terms, "filter", lambda rule, formulas: formulas, raising=False)
  x = np.ones((40, 2)) * np.linspace(1, 2, 40)[:, None]
  found = terms.products_of(Rows(x, x[:, 0], np.ones(40)), (0, 1), rule=Rule(2), config=DEFAULT)
  assert found == [short, long, long, short]


# --- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.0, -2.0])
@pytest.mark.parametrize("exponent", [0.5, -1.0, 2.0])
def test_a_power_of_a_sum_is_written_with_its_signs_and_with_all_of_them_changed(factor, exponent):
  """Of each way one is the power of the size, whatever the sign of the sum."""
  x = np.array([[0.3, 1.1], [2.0, 0.7], [1.5, 2.5]])
  for monomial in (((0, 1.0),), ((0, 1.0), (1, -1.0))):
    ways = products._ways_to_write_sum(monomial, factor, exponent)
    assert len(ways) == 2 * (1 + (len(monomial) == 2))
    size = 1 + factor * math.prod(x[:, column] ** p for column, p in monomial)
    with np.errstate(invalid="ignore"):
      for (outside, one), (_, other) in zip(ways[::2], ways[1::2], strict=True):
        beside = math.prod((x[:, column] ** p for column, p in outside), start=np.ones(len(x)))
        values = np.stack([expression.evaluate(node, x) * beside for node in (one, other)])
        assert one != other
        np.testing.assert_allclose(np.nanmax(np.abs(values), axis=0), np.abs(size) ** exponent, rtol=1e-9)


def test_one_product_of_each_direction_is_looked_at():
  exponents = [np.array([-1.0, 0.0, 1.0, 2.0])] * 3
  every = np.array(list(itertools.product(*exponents)))
  found = every[single_index._directions(SimpleNamespace(exponents=exponents))]
  several = every[np.count_nonzero(every, axis=1) > 1]
  directions = {tuple(np.round(each / each[np.flatnonzero(each)[0]], 6) + 0.0) for each in several}
  assert len(found) == len(directions)
  assert {tuple(np.round(each / each[np.flatnonzero(each)[0]], 6) + 0.0) for each in found} == directions


# --- smaller tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("smallest", "largest", "is_table"), [
  (0.9, 2.0, True), (1.0, 2.0, False), (0.9, 1.0, False), (0.0, 0.99, False)])
def test_a_smaller_table_has_a_spread_within_limits(smallest, largest, is_table, monkeypatch):
  y = np.array([-1.0, 1.0, -1.0, 1.0])
  rows = Rows(np.array([[0.1], [0.2], [0.3], [0.4]]), y, np.ones(4))
  monkeypatch.setattr(smaller_tasks, "SMALLEST", smallest)
  monkeypatch.setattr(smaller_tasks, "LARGEST", largest)
  task = SimpleNamespace(fit_rows=rows, rule=Rule(1), num_rows=4)
  reduced = SimpleNamespace(of=lambda x, y: (x, y, np.ones(4)))
  assert (reductions._task_of(task, reduced) is not None) is is_table
