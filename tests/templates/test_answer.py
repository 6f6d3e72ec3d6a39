"""The front of a template with several functions, of formulas for these that are given."""

import numpy as np
import pytest

from symformer_jax import conclusion
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser, templates
from symformer_jax.selection import choice
from symformer_jax.templates import answer, profile

NAMES, OPTIONS = ("x", "t", "z"), SearchOptions()
FOUND = (("x**2 + 0.5", "5.1*x - 4.2", "0.9*x**2.1", "8.5"), ("1.1*exp(-0.9*t)", "1/(t + 0.9)", "0.7 - 0.3*t", "0.4"),
         ("3.1/z - 0.4", "2.7*z**(-1.3)", "2.6 - 0.6*z", "1.4"))


@pytest.fixture
def x(rng):
  return np.column_stack([rng.uniform(0.2, 5, 90), rng.uniform(0, 3, 90), rng.uniform(1, 4, 90)])


def _answer(x, y, found, num_chosen=None, text="f(x) + g(t) + h(z)"):
  """`num_chosen`: of the formulas of each function, the simplest, that the choice hears of."""
  problem = profile.pose(templates.read(text, NAMES), Rows(x, y, np.ones(len(y))), seed=0)
  nodes = [[parser.parse(each, part.names) for each in texts] for part, texts in zip(problem.parts, found, strict=True)]

  def choose(task, nodes):
    heard = sorted(nodes, key=expression.complexity)[:num_chosen]
    return conclusion._choose(task, heard, OPTIONS, Clock(), is_late=False)

  return answer.answer(problem, nodes, OPTIONS, choose)


def _parts(line):
  return [parser.parse(text, NAMES) for _, text in line.filled.functions]


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_lines_are_more_accurate_than_all_simpler_ones(x, rng, noise):
  y = x[:, 0] ** 2 + np.exp(-x[:, 1]) + 3 / x[:, 2]
  y += noise * np.std(y) * rng.normal(size=len(y))
  found = _answer(x, y, FOUND)
  assert found.best in found.front and found.best.r2 > 0.999
  proper = [line for line in found.front if not all(map(choice.is_linear, _parts(line)))]
  assert len(proper) > 2
  assert all(a.complexity < b.complexity and a.mse > b.mse for a, b in zip(proper, proper[1:], strict=False))


def test_one_function_has_the_constant_of_all(x):
  y = x[:, 0] ** 2 + np.exp(-x[:, 1]) + 3 / x[:, 2]
  found = _answer(x, y, (("x**2 - 1", "2.5"), ("exp(-t) + 1", "1.5"), ("3/z", "2.5")))
  assert found.best.expression == "3/z + exp(-t) + x**2"
  assert [text for _, text in found.best.filled.functions] == ["x**2", "exp(-t)", "3/z"]
  for line in found.front:
    terms = [term for part in _parts(line) for term in expression.flatten(part, "+")]
    assert sum(term.is_number and term.value != 0 for term in terms) <= 1


def test_there_is_an_answer_where_the_first_of_all_functions_are_too_long_together(x):
  y = x[:, 0] ** 2 + np.exp(-x[:, 1]) + 3 / x[:, 2]
  long = [" + ".join(f"{i}.{k}*sin({k}.5*{{0}})" for k in range(1, 7)) for i in range(1, 7)]
  found = _answer(x, y, [[*(text.format(name) for text in long), f"2.5*{name}"] for name in NAMES], num_chosen=1)
  assert found is not None and found.best.r2 > 0.9


def test_what_is_chosen_to_first_order_and_has_no_value_is_not_recommended(x):
  """Rows below 0, which no root meets, ask for a function below 0 to first order."""
  x[:, 0] = np.linspace(-5, 8, 90)
  found = _answer(x, x[:, 0] ** 3, [["-5.5", "1.1*exp(1.6*x)"]], num_chosen=1, text="sqrt(f(x))")
  assert "exp(" in found.best.expression and found.best.r2 > 0.8 and found.best.filled is not None
  assert found.best in found.front and all(np.isfinite(line.mse) for line in found.front)
