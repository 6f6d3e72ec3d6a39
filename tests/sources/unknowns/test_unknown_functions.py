"""Formulas for functions of one column that are known at some places."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.sources.unknowns import unknown_functions
from symformer_jax.sources.unknowns.unknown_functions import Table, Tabulated

FORMS = DEFAULT.separable.forms


def table_of(x, column=1, operators=None):
  options = SearchOptions()
  if operators is not None:
    options = dataclasses.replace(
      options, restrictions=dataclasses.replace(options.restrictions, operators=operators))
  task = make_task((x, x[:, 0] + np.sin(9 * x[:, 1])), ["x", "y"], options)
  return Table(task, column, DEFAULT, FORMS), options


@pytest.mark.parametrize("text", [
  "2.2*exp(-0.7*y) + 0.3", "1.3*sin(4*y + 0.4) - 2", "0.6*y**2/(y + 1.7)", "log(y) - y",
  "(1 + (0.4*y)**1.4)**(-0.8)", "1.3*(1 - exp(-0.4*y))**1.6", "2*exp(-0.3*y) - exp(-1.9*y)"])
def test_formulas_are_in_the_column_and_near(rng, text):
  table, options = table_of(rng.uniform(0.5, 3, (100, 2)))
  node = parser.parse(text, ["x", "y"])
  points = np.column_stack([np.zeros_like(table.places), table.places])
  truth = expression.evaluate(node, points)
  [forms] = unknown_functions.find_forms([(table, Tabulated(truth, 1e-14))], options, FORMS)
  assert 0 < len(forms) <= FORMS.num_forms
  assert [nats for nats, _ in forms] == sorted(nats for nats, _ in forms)
  np.testing.assert_allclose(expression.evaluate(forms[0][1], points), truth, atol=1e-5)
  assert {part.value for _, form in forms for part in expression.walk(form) if part.token == "variable"} <= {1}


def test_places_are_values_that_rows_have(rng):
  few, many = np.repeat([[1.0, 2.0], [1.5, 5.0], [1.7, 7.0]], 20, axis=0), rng.uniform(0.5, 3, (200, 2))
  assert table_of(few)[0].places.tolist() == [2.0, 5.0, 7.0]
  places = table_of(many)[0].places
  assert len(places) == DEFAULT.varying.forms.num_places and set(places) <= set(many[:, 1])
  assert (places[0], places[-1]) == (many[:, 1].min(), many[:, 1].max())


def test_a_constant_is_one(rng):
  table, options = table_of(rng.uniform(0.5, 3, (100, 2)))
  [[(_, form)]] = unknown_functions.find_forms([(table, Tabulated(np.full(64, 2.5), 0.0))], options, FORMS)
  assert form.is_number and form.value == 2.5


def test_the_less_is_known_the_shorter_the_formula(rng):
  table, options = table_of(rng.uniform(0.5, 3, (100, 2)))
  values = np.exp(-table.places) + 0.02 * np.sin(5 * table.places)
  exact, rough = (unknown_functions.find_forms([(table, Tabulated(values, error))], options, FORMS)[0][0][1]
                  for error in (1e-12, 1e-2))
  assert expression.complexity(rough) < expression.complexity(exact)


def test_rules_are_kept(rng):
  table, _ = table_of(rng.uniform(0.5, 3, (100, 2)), operators=("+", "*", "exp"))
  forms = table.forms(Tabulated(np.cos(table.places), 0.0))
  assert len(forms) > 1 and not any(part.token == "cos" for form in forms for part in expression.walk(form))


def test_terms_that_are_next_to_nothing_are_left_out(rng):
  table, _ = table_of(rng.uniform(0.5, 3, (100, 2)))
  node = parser.parse("exp(-0.7*y)*(y + 1e-9) + 2e-8*cos(y)", ["x", "y"])
  lean = unknown_functions._leaner(expression.with_columns(node, {0: 0, 1: 0}), table, FORMS)
  assert expression.sort_operands(lean) == expression.sort_operands(parser.parse("exp(-0.7*x)*x", ["x"]))
