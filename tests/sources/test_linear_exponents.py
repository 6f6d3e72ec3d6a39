"""Products of powers whose exponents are straight lines of columns, with one inner sum or function."""

import dataclasses

from exact_rows import NAMES, rows_of, share_left
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, ClosedFormsConfig, LinearExponentsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, printing
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources import linear_exponents
from symformer_jax.sources.closed_forms import ClosedForms
from symformer_jax.sources.linear_exponents import products_of

CONFIG = DEFAULT.closed_forms.linear_exponents


def found_in(rows, config=CONFIG, rule=None):
  num_columns = rows.x.shape[1]
  return products_of(rows, range(num_columns), rule or Rule(num_columns), config)


@pytest.mark.parametrize(("text", "box", "most_nodes"), [
  ("-3*z*y*x**(y - 1)*(1 + x**y)**(-z)", ((0.1, 4), (0.6, 4), (0.5, 3)), 28),
  ("2*(x/z)**y*(1 - x/z)**(w - 1)", ((0.5, 1), (0.5, 3), (1.2, 3), (0.5, 4)), 28),
  ("z*(y**2 - x**2)**(1.5 - z)", ((0.5, 1), (1.2, 3), (0.5, 4)), 18),
  ("x*(1 - exp(-y*z))**(2*w)", ((5, 40), (0.05, 0.5), (1, 20), (0.6, 4)), 20),
  ("x**2*(-log(1 - y))**(1/z)", ((1, 10), (0.05, 0.95), (0.8, 4)), 18),
  ("7*sin(y)**(2*x)*x**y", ((0.5, 3), (0.3, 1.4)), 16),
  ("(y + 1)**2.5*exp(x*z)*(x + z)**y", ((0.5, 1), (1.2, 3), (0.5, 2)), 20),
  ("x*exp(-0.3*y)*(1 + 1/x)**(-y/(y - 1))", ((0.5, 3), (1.2, 3)), 28),
  # of both signs
  ("x*exp(-y/z)*cos(w*y)", ((1, 4), (0.1, 5), (1, 4), (1, 3)), 16),
  ("(x - y)*x**y*(1 + z)**(2*y)", ((0.5, 2), (0.4, 2), (0.5, 3)), 18),
  ("-log(z)*x**y*(1 + x)**(-y)", ((0.5, 2), (0.4, 2), (0.3, 3)), 16),
  ("x*cos(y*z + w)*exp(-v*z)", ((1, 4), (1, 3), (0.1, 3), (0, 1.5), (0.1, 0.6)), 16),
  # of more columns, without an inner function
  ("3*x**y*exp(-z*w)/v", ((1, 4), (1, 3), (0.1, 3), (0.2, 1.5), (0.1, 0.6)), 18),
])
def test_products_are_met_exactly_and_have_no_idle_factor(text, box, most_nodes):
  rows = rows_of(text, box)
  [node] = found_in(rows)
  assert share_left(node, rows) < 1e-24 and expression.complexity(node) <= most_nodes


@pytest.mark.parametrize(("text", "box"), [
  ("(1 + 0.37*x**2)**(-y/(y - 1))*x", ((0.2, 3), (1.2, 3))),
  ("z*(1 - 0.21*x/y)**(z + 2)", ((0.5, 3), (1.2, 3), (0.5, 2))),
  ("x*sqrt(y)*(1 + (y - 1)/3*x**2)**(-2*y)", ((0.2, 3), (1.2, 1.7))),
])
def test_a_constant_of_the_sum_is_fitted(text, box):
  rows = rows_of(text, box)
  [node] = found_in(rows)
  assert 1e-30 < share_left(node, rows) < 1e-14
  plain = dataclasses.replace(CONFIG, max_columns_fitted=1)
  assert found_in(rows, plain) == []


@pytest.mark.parametrize(("text", "noise"), [
  ("z*x**y*(1 + x)**z", 1e-6), ("x*sin(7*y) + 2*z", 0.0), ("x*sin(5*y) + z - 1", 0.0),
  ("x*cos(5*y)*z", 0.0), ("log(1 + x + y*z) + z", 0.0)])
def test_of_what_is_no_such_product_there_is_none(text, noise):
  assert found_in(rows_of(text, ((0.5, 2), (0.5, 3), (0.5, 2)), noise=noise)) == []


def test_one_column_five_few_rows_and_a_zero_have_none():
  text = "z*x**y*(1 + x)**z"
  rows = rows_of(text, ((0.5, 2), (0.5, 3), (0.5, 2)))
  assert len(found_in(rows)) == 1
  assert products_of(rows, (0,), Rule(3), CONFIG) == []
  assert found_in(rows, dataclasses.replace(CONFIG, max_columns=2)) == []
  assert found_in(rows_of("x*cos(y*z + 1)", ((0.5, 2), (0.5, 3), (0.5, 2))),
                  dataclasses.replace(CONFIG, max_columns_of_waves=2)) == []
  assert found_in(rows_of(text, ((0.5, 2), (0.5, 3), (0.5, 2)), num_rows=40)) == []
  assert found_in(dataclasses.replace(rows, y=np.where(np.arange(256) == 3, 0.0, rows.y))) == []
  assert found_in(dataclasses.replace(rows, y=np.full(256, 2.0))) == []
  assert found_in(dataclasses.replace(rows, x=rows.x[:, [0, 0, 0]] * [1.0, 0.0, 0.0])) == []


def test_a_column_that_is_1_in_a_row_has_no_logarithm_of_what_it_is_above_1():
  rows = rows_of("z*x**y*(1 + x)**z", ((1, 2), (0.5, 3), (0.5, 2)))
  rows.x[7, 0], rows.y[7] = 1.0, rows.x[7, 2] * 2.0 ** rows.x[7, 2]
  [node] = found_in(rows)
  assert share_left(node, rows) < 1e-24


def test_operators_that_may_not_be_used_are_not():
  rows = rows_of("x**2*(-log(1 - y))**(1/z)", ((1, 10), (0.05, 0.95), (0.8, 4)))
  task = make_task((rows.x, rows.y), NAMES[:3], SearchOptions(
    restrictions=Restrictions(operators=("+", "*", "pow", "exp"))))
  assert found_in(rows, rule=task.rule) == []


def test_where_linear_algebra_fails_there_is_none(monkeypatch):
  def fail(*given):
    raise np.linalg.LinAlgError
  monkeypatch.setattr(linear_exponents, "_products", fail)
  assert found_in(rows_of("log(x + y) - x/(x + y)", ((0.5, 2), (0.5, 3)))) == []


def asked_of(config):
  rows = rows_of("z*x**y*(1 + x)**z", ((0.5, 2), (0.5, 3), (0.5, 2)))
  options = SearchOptions(config=dataclasses.replace(DEFAULT, closed_forms=config))
  task = make_task((rows.x, rows.y), NAMES[:3], options)
  return min(share_left(node, rows) for node in ClosedForms(options.config)._proposal(task).nodes)


def test_closed_forms_have_them_unless_they_are_left_out():
  alone = ClosedFormsConfig(has_logarithms_of_sums=False)
  assert asked_of(alone) < 1e-20 < asked_of(dataclasses.replace(alone, has_linear_exponents=False))


# --- parts -----------------------------------------------------------------------------------------------------------


def table_of(text, box, config=CONFIG):
  rows = rows_of(text, box, num_rows=100)
  return linear_exponents._Table(rows, range(len(box)), config), rows


def test_what_is_left_beside_an_inner_sum_is_that_of_least_squares():
  table, rows = table_of("x**y*(x + y)**(0.3*x*y) + 0.1*sin(9*x)", ((0.5, 2), (1.3, 3)))
  inner = np.log(rows.x.sum(axis=1))
  x, y = rows.x.T
  ones = np.ones(100)
  outer = [ones, x, y, 1 / x, 1 / y, x * y, x / y, y / x, x**2, y**2,
           *(np.log(a) * by for a in (x, y) for by in (ones, x, y)), np.log(1 + x), np.log(1 + y), np.log(y - 1)]
  inside = [inner * by for by in (ones, x, y, 1 / x, 1 / y, 1 / (y - 1), x * y)]
  design = np.column_stack([each / np.linalg.norm(each) for each in (*outer, *inside)])
  left = np.log(rows.y) - design @ np.linalg.lstsq(design, np.log(rows.y), rcond=None)[0]
  assert table._left_by(inner) == pytest.approx(left @ left, rel=1e-6)


def test_places_of_constants_reach_from_one_end_to_the_other_and_so_do_those_between(monkeypatch):
  table, rows = table_of("x**y*(x + y)**x", ((0.5, 2), (1.3, 3)), CONFIG)
  every = [each for each in table._with_constants() if each.monomial == variable(0)]
  assert [each.sign for each in every] == [1.0, -1.0]
  x = rows.x[:, 0]
  np.testing.assert_allclose(every[0].places[[0, -1]] * np.median(x), [1 / 30, 30])
  np.testing.assert_allclose(1 - every[1].places[[0, -1]] * np.max(x), [0.95, 0.01], rtol=1e-9)
  asked = []
  monkeypatch.setattr(table, "_with_constants", lambda: every[:1])
  monkeypatch.setattr(linear_exponents, "_least", lambda function, low, high: asked.append((low, high)) or low)
  for sign in (1, -1):
    monkeypatch.setattr(table, "_left_of", lambda each, c, sign=sign: sign * c)
    table.fitted()
  places = every[0].places
  assert asked == [(places[0], places[1]), (places[-2], places[-1])]


def test_sums_of_two_columns_are_these():
  shown = {printing.to_text(each, NAMES) for each in linear_exponents._sums([variable(0), variable(1)])}
  assert {"x + y", "x - y", "y - x", "x**2 + y**2", "1 - x", "x - 1", "1 + x", "x**y - 1", "1 - x/y", "1 - x**(1/y)",
          "1 + x*y", "sqrt(x) - 1"} <= shown
  assert not any("2*" in text or "+ 2" in text or "- 2" in text for text in shown)
  three = linear_exponents._more_monomials([variable(i) for i in range(3)])
  raised = [each for each in three if each.token == "pow" and each.args[0].token == "*"]
  assert raised and all(not expression.columns_of(each.args[0]) & expression.columns_of(each.args[1])
                        for each in raised)


def test_of_columns_of_both_signs_there_are_no_sums_with_a_constant():
  with np.errstate(all="ignore"):
    table, _ = table_of("exp(x + y)", ((-1, 1), (1, 2)))
    monomials = {printing.to_text(each.monomial, NAMES) for each in table._with_constants()}
  assert "y" in monomials and "x**2" in monomials and not monomials & {"x", "x/y", "x**y"}


def test_a_fitted_product_has_forty_nodes_at_most():
  rows = rows_of("(1 + 0.37*x**2)**(-y/(y - 1))*x", ((0.2, 3), (1.2, 3)))
  num = expression.complexity(found_in(rows)[0])
  for most, is_found in ((num, True), (num - 1, False)):
    assert bool(found_in(rows, dataclasses.replace(CONFIG, most_nodes_fitted=most))) is is_found


def test_there_are_two_rows_for_each_term():
  table, rows = table_of("x**y*(x + y)**x", ((0.5, 2), (1.3, 3)))
  for num_rows, is_asked in ((2 * table.num_terms, True), (2 * table.num_terms - 1, False)):
    some = Rows(rows.x[:num_rows], rows.y[:num_rows], np.ones(num_rows))
    with np.errstate(all="ignore"):
      assert bool(linear_exponents._products(some, (0, 1), CONFIG)) is is_asked


def test_of_both_signs_no_constant_is_fitted(monkeypatch):
  asked = []
  monkeypatch.setattr(linear_exponents._Table, "fitted", lambda self: asked.append(1) or [])
  rows = rows_of("(x - y)*(1 + 0.37*x*y)**y", ((0.5, 2), (0.6, 1.7)))
  assert found_in(rows) == [] and asked == []
  assert found_in(dataclasses.replace(rows, y=np.abs(rows.y))) == [] and asked == [1]


def test_the_least_of_a_function_lies_between_two_numbers():
  assert linear_exponents._least(lambda at: (at - 0.3) ** 2, 0.1, 2.0) == pytest.approx(0.3, abs=1e-8)
  assert linear_exponents._least(lambda at: at + 2, 0.1, 2.0) == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("wrong", [
  "max_columns", "max_columns_fitted", "max_columns_of_waves", "max_rows", "rows_per_term", "num_places", "num_tried",
  "num_written"])
def test_counts_are_above_0(wrong):
  with pytest.raises(ValueError):
    LinearExponentsConfig(**{wrong: 0})
