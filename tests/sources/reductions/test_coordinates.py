"""Two columns of which one makes way for a function of both."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.reductions import coordinates, reduced_tables, smaller_tables

CONFIG = DEFAULT.reductions


def table(text, box=((0.5, 3),) * 2, num_rows=150):
  rng = np.random.default_rng(5)
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  return x, expression.evaluate(parser.parse(text, "xy"), x)


def found_in(text, config=CONFIG.coordinates, **data):
  found = coordinates.find_coordinates(*table(text, **data), config, CONFIG.surrogate)
  return found and (found[0], printing.to_text(found[1], "xy"))


@pytest.mark.parametrize(("text", "ways"), [
  ("(1 + 0.9*x)**(-0.2)*exp(-0.3*sqrt(x*y))", {(1, "y*x")}),
  ("log(1 + x*y)/(log(1 + y) + 0.2)", {(0, "x*y")}),
  ("(x + 0.5)**1.5*(2 + sin(x/y))", {(1, "y/x")}),
  ("arctan(2*x - 2*y) + sqrt(x)*x", {(1, "y - x"), (1, "-x + y")}),
  ("exp(sqrt(x + y))*(y**2 + 3)", {(0, "x + y"), (0, "y + x")})])
def test_a_function_of_both_makes_it_a_sum_or_a_product(text, ways):
  assert found_in(text) in ways


@pytest.mark.parametrize("text", ["sin(x)*(y + 1)", "exp(x) + log(y)", "sin(x**y) + exp(x*y**2)"])
def test_none_is_found_of_what_is_one_already_or_never(text):
  assert found_in(text) is None


def test_of_noise_nothing_is_known(rng):
  x = rng.uniform(1, 2, (100, 2))
  assert coordinates.find_coordinates(x, rng.normal(size=100), CONFIG.coordinates, CONFIG.surrogate) is None


def test_only_what_is_far_better_stands():
  doubtful = dataclasses.replace(CONFIG.coordinates, far_better=0.0, fine=0.0)
  assert found_in("log(1 + x*y)/(log(1 + y) + 0.2)", doubtful) is None


def test_columns_that_pass_0_divide_nothing():
  assert not any("inv" in {part.token for part in expression.walk(node)}
                 for _, node in coordinates._joined(np.array([[1.0, 0.0], [0.0, 2.0]]), CONFIG.coordinates))


def test_the_table_is_one_of_those_that_are_searched():
  x, y = table("log(1 + x*y)/(log(1 + y) + 0.2)")
  *_, last = smaller_tables.find_reductions(x, y, CONFIG)
  np.testing.assert_allclose(last.x, np.column_stack([x[:, 0] * x[:, 1], x[:, 1]]))
  form = parser.parse("log(1 + a)/(log(1 + b) + 0.2)", "ab")
  np.testing.assert_allclose(expression.evaluate(last.restore(form), x), y)


def test_a_column_of_a_smaller_table_comes_back_in_the_users():
  x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
  smaller = reduced_tables.whole(x, x[:, 0])._replace(
    x=x[:, 1:], columns=(parser.parse("y*x", "xyz"), parser.parse("z", "xyz")))
  changed = smaller.with_column(0, parser.parse("a/b", "ab"))
  np.testing.assert_allclose(changed.x[:, 0], x[:, 1] / x[:, 2])
  np.testing.assert_allclose(expression.evaluate(changed.columns[0], x), x[:, 1] * x[:, 0] / x[:, 2])


@pytest.mark.parametrize(("text", "way"), [
  ("sqrt(x*y**x)*exp(-y**x)", (1, "y**x")), ("(x**(1/y) + 0.3)*(y + 0.5)", (0, "x**(1/y)"))])
def test_a_column_is_the_exponent_of_the_other(text, way):
  assert found_in(text) == way


def test_powers_of_columns_are_of_some_size_and_have_positive_bases():
  def powers(x, **changes):
    config = dataclasses.replace(CONFIG.coordinates, **changes)
    return [node for _, node in coordinates._joined(np.array(x), config) if node.token == "pow"]

  rows = [[2.0, 3.0], [0.5, 1.0]]
  assert len(powers(rows)) == 4 and not powers(rows, largest_exponent=0.1)
  assert len(powers([[-2.0, 3.0], [0.5, 1.0]])) == 2  # one column is no base
