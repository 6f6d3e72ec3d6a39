"""Searches under a template: made-up laws in which the unknown function is hidden come back, exact and with noise."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import sympy

from symformer_jax import SymFormerRegressor, inference, load_result, save_result, testing
from symformer_jax.commands import listing
from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, sympy_trees
from symformer_jax.language.rules import Restrictions

NAMES = ["x", "t", "z"]
# The cheap sources, and the form of the function among the guesses: what they find is tested elsewhere.
CONFIG = dataclasses.replace(DEFAULT, sources=("closed_forms", "guesses"))


@pytest.fixture(scope="module")
def model():
  return testing.FixedProposer(["0.7*x0"])


@pytest.fixture
def x(rng):
  return np.column_stack([rng.uniform(0.2, 5, 90), rng.uniform(0, 3, 90), rng.uniform(1, 4, 90)])


def _search(model, x, y, template, config=CONFIG, **options):
  [result] = inference.search(model, [(x, y)], names=[NAMES], template=template, config=config, **options)
  assert result.status == "ok", result.message
  return result


def _equal(first, second):
  """Whether two texts are the same formula, by SymPy."""
  trees = [sympy_trees.to_sympy(parser.parse(text, NAMES), NAMES) for text in (first, second)]
  return sympy.simplify(trees[0] - trees[1]) == 0


# Template, law, its function, its parameters, a guess of the function's form.
LAWS = [
  ("f(x)*exp(-k*t)", lambda x, t, z: 2 * x / (x + 1.5) * np.exp(-0.7 * t), "2*x/(x + 1.5)", {"k": 0.7},
   "1.2*x/(x + 1.2)"),
  ("sqrt(f(x) + t)", lambda x, t, z: np.sqrt(x**2 + 0.5 + t), "x**2 + 0.5", {}, "x**2 + 1.2"),
  ("a*t + f(x, z)", lambda x, t, z: 3.3 * t + 1.5 * x * z / (x + z), "1.5*x*z/(x + z)", {"a": 3.3}, "1.1*x*z/(x + z)"),
]


@pytest.mark.parametrize(("text", "law", "truth", "parameters", "guess"), LAWS, ids=[law[0] for law in LAWS])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_hidden_function_comes_back(model, x, rng, text, law, truth, parameters, guess, noise):
  clean = law(*x.T)
  y = clean + noise * np.std(clean) * rng.normal(size=len(clean))
  result = _search(model, x, y, text, guesses=[guess])
  best = result.best
  [(_, function)] = best.filled.functions
  found = {name: constant.value for name, constant in best.filled.parameters}
  assert found == pytest.approx(parameters, rel=3 * noise + 1e-6)
  # The whole is the template with what is in it, and so is each line of the front.
  for line in result.pareto:
    filled = text
    for name, part in line.filled.functions:
      filled = filled.replace(name, f"({part})")
    for name, constant in line.filled.parameters:
      filled = filled.replace(f"{name}*", f"({constant.value})*")
    np.testing.assert_allclose(
      expression.evaluate(line.node, x), expression.evaluate(parser.parse(filled, NAMES), x), rtol=1e-9)
  if noise:
    assert best.r2 > 0.999
    for name, constant in best.filled.parameters:
      assert abs(constant.value - parameters[name]) < 4 * constant.stderr < 0.05
  else:
    assert _equal(function, truth) and best.r2 == pytest.approx(1)


def test_what_the_form_says_stays_as_it_is(model, x):
  """Numbers of the template are not fitted, however they could be moved for a better fit or a shorter formula."""
  y = 2.5 * x[:, 0] ** 1.3 * np.exp(-0.401 * x[:, 1]) + 9.81
  result = _search(model, x, y, "f(x)*exp(-t/2.5) + 9.81", guesses=["2*x**1.2"])
  for line in result.pareto:
    np.testing.assert_allclose(  # whatever f is, of rows alike in x the other factors are those of the form
      (expression.evaluate(line.node, np.array([[2.0, 1.0, 0.0]])) - 9.81)
      / (expression.evaluate(line.node, np.array([[2.0, 0.0, 0.0]])) - 9.81), np.exp(-0.4), rtol=1e-9)
  assert result.best.filled.parameters == ()
  errors = {abs(constant.value): constant.stderr for constant in result.best.constants}
  assert errors[0.4] is None and errors[9.81] is None and sum(error is not None for error in errors.values()) >= 1


@pytest.mark.slow
def test_several_functions_share_no_constant(model, x):
  y = 3 * x[:, 0] ** 1.5 + 2.2 * np.exp(-x[:, 1]) + 7
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "library"))
  result = _search(model, x, y, "f(x) + g(t)", config=config)
  assert _equal(result.best.expression, "3*x**1.5 + 2.2*exp(-t) + 7") and result.best.r2 == pytest.approx(1)
  assert sum(part.count("+") for _, part in result.best.filled.functions) == 1  # the 7 stands in one of them
  assert [name for name, _ in result.best.filled.functions] == ["f(x)", "g(t)"]


def test_accuracy_is_that_of_y(model, x, rng):
  """Of a function that is nearly constant R2 is small, however well y is met."""
  y = (3.7 + 0.02 * rng.normal(size=len(x))) / x[:, 0]
  result = _search(model, x, y, "f(x)/x", accuracy=0.999, guesses=["1.2*x"])
  assert result.ended_by == "accuracy" and len(result.rounds) == 1
  assert result.best.r2 > 0.999 and result.rounds[0].r2 == pytest.approx(result.best.r2, abs=1e-4)


def test_a_function_that_is_a_constant_is_found_as_such(model, x):
  result = _search(model, x, 3.5 * x[:, 2] * np.exp(-0.7 * x[:, 1]), "f(x)*z*exp(-k*t)", guesses=["1.2*x"])
  assert _equal(result.best.expression, "3.5*z*exp(-0.7*t)") and result.best.filled.functions == (("f(x)", "3.5"),)


def test_rules_are_those_of_the_function(model, x):
  y = np.exp(0.3 * x[:, 0]) * np.exp(-0.7 * x[:, 1])
  rules = Restrictions(forbidden=("exp",), max_complexity=6)
  result = _search(model, x, y, "f(x)*exp(-k*t)", restrictions=rules, guesses=["x**2 + 1.5"])
  for line in result.pareto:
    [(_, function)] = line.filled.functions
    tree = parser.parse(function, NAMES)
    assert "exp" not in function and "exp" in line.expression and expression.complexity(tree) <= 6


def test_what_is_wrong_with_a_template_fails_the_data_set(model, x):
  for template, message in (("f(w)", "template: f has no column 'w' at position 3: expected one of x, t, z"),
                            ("sqrt(f(x))", "template: f(x) has a value in 0 of 90 rows, expected at least 5: "
                             "'sqrt(f(x))' cannot take the values of y"),
                            ("f(x) + g(t)", "guesses: of several unknown functions none is guessed, got 'x'")):
    [result] = inference.search(model, [(x, -1 - x[:, 0] * x[:, 1])], names=[NAMES], template=template, guesses=["x"])
    assert (result.status, result.message) == ("failed", message)


def test_of_values_that_a_function_cannot_take_it_is_said_where_they_come_from(model, x):
  [result] = inference.search(model, [(x, np.linspace(1, 170, 90))], names=[NAMES], template="log(f(x)*z)")
  assert result.message.startswith("template: f(x): its values, by 'log(f(x)*z)' solved for it: expected numbers up to")


def test_the_estimator_keeps_what_stands_in_the_template(x, tmp_path, capsys):
  table, y = pd.DataFrame(x, columns=NAMES), 2 * x[:, 0] * np.exp(-0.7 * x[:, 1])
  reg = SymFormerRegressor(template="f(x)*exp(-k*t)", config=CONFIG, guesses=["1.2*x"], verbose=False).fit(table, y)
  assert reg.result_.model == "univariate"  # f has one column, whatever the table has
  assert reg.best_.filled.functions == (("f(x)", "2*x"),) and reg.best_.filled.parameters[0][1].value == 0.7
  np.testing.assert_allclose(reg.predict(table), y)
  reg.save(tmp_path / "fit.json")
  assert SymFormerRegressor.load(tmp_path / "fit.json").best_ == reg.best_
  save_result(reg.result_, tmp_path / "result.json")
  assert load_result(tmp_path / "result.json").best.filled == reg.best_.filled
  listing.print_result(reg.result_, reg.best_, name="a.csv", target="y")
  assert "\ntemplate: f(x) = 2*x, k = 0.7 +- " in capsys.readouterr().out
  record = json.loads(json.dumps(reg.result_.to_json(data="a.csv", target="y", features=NAMES)))
  assert record["best"]["filled"]["functions"] == {"f(x)": "2*x"}
  assert record["best"]["filled"]["parameters"]["k"]["value"] == 0.7


def test_names_are_as_many_as_columns_with_a_template_too():
  x = np.linspace(1, 2, 20)
  [result] = inference.search(testing.FixedProposer(["x0"]), [(x, x)], names=[("a", "b")], template="f(b) + a")
  assert result.status == "failed" and result.message == "names: expected 1 of them, one for each column, got 2"
