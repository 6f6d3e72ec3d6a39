"""A formula's operations one after the other: values and derivatives against the interpreter and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language import expression, interpreter, parser, programs, tape
from symformer_jax.language.expression import Node

NAMES = ("x", "y")
FORMULAS = (
  "2.5*exp(-0.31*x)*cos(4.2*y + 0.51)", "(1.7*x)**2.3/(0.6 + y**1.5) - x*y", "sqrt(arctan(0.3*x) + 1.1)**3",
  "(0.7 + x/3.3)**(1.4*y)", "x*y + 3", "7.25")


def theta_of(node):
  return np.array(programs.fitted_values(node))


@pytest.mark.parametrize("text", FORMULAS)
def test_values_and_slopes_are_those_of_the_interpreter(text, rng):
  x, node = rng.uniform(0.2, 3, (30, 2)), parser.parse(text, NAMES)
  theta = theta_of(node) * rng.uniform(0.9, 1.1, len(theta_of(node)))
  vocab = programs.base_vocabulary(2)
  ids, values = programs.encode_programs([node], vocab, num_programs=1, length=64)
  with jax.enable_x64(True):
    program = interpreter.translate(ids[0], values[0], vocab=vocab, num_slots=len(theta))
    expected = np.asarray(interpreter.run(program, jnp.asarray(theta), jnp.asarray(x.T)))
  found, slopes = tape.Tape(node, x).values_and_slopes(theta)
  np.testing.assert_allclose(found, expected[0], rtol=1e-13)
  np.testing.assert_allclose(slopes, expected[1:].T if len(theta) else np.zeros((30, 0)), rtol=1e-12)
  np.testing.assert_array_equal(tape.Tape(node, x).values(theta), found)


@pytest.mark.parametrize("text", FORMULAS)
def test_lists_of_constants_are_evaluated_as_each_alone(text, rng):
  x, node = rng.uniform(0.2, 3, (30, 2)), parser.parse(text, NAMES)
  made, thetas = tape.Tape(node, x), theta_of(node) * rng.uniform(0.9, 1.1, (7, len(theta_of(node))))
  found = made.values(thetas)
  assert found.shape == (7, 30)
  np.testing.assert_allclose(found, [made.values(theta) for theta in thetas], rtol=1e-14)
  for theta, values in zip(thetas, found, strict=True):
    np.testing.assert_allclose(values, expression.evaluate(programs.replace_values(node, theta), x), rtol=1e-14)


def test_what_reads_no_constant_is_computed_once(monkeypatch):
  calls = []
  sine = expression.operators.BY_NAME["sin"]
  counting = {"numpy_fn": lambda a: calls.append(1) or np.sin(a)}
  changed = {**expression.operators.BY_NAME, "sin": type(sine)(**{**vars(sine), **counting})}
  monkeypatch.setattr(tape.operators, "BY_NAME", changed)
  made = tape.Tape(parser.parse("2.5*sin(x*y) + sin(1.5*x)", NAMES), np.ones((5, 2)))
  for _ in range(3):
    made.values(np.array([2.5, 1.5]))
  assert len(calls) == 1 + 3


def test_zero_times_infinity_is_no_slope():
  """As in the interpreter: of `sqrt(1.5*x)` at 0 nothing depends on the constant."""
  for text in ("sqrt(1.5*x)", "(1.5*x)**0.5"):
    node = parser.parse(text, ("x",))
    _, slopes = tape.Tape(node, np.array([[0.0], [1.5]])).values_and_slopes(theta_of(node))
    assert slopes[0].tolist() == [0] * len(theta_of(node)) and np.all(slopes[1] != 0)


def test_where_a_formula_is_undefined_its_values_say_so_in_silence():
  node = Node("ln", (Node("*", (expression.number(1.5), expression.variable(0))),))
  values, slopes = tape.Tape(node, np.array([[-1.0], [0.0], [2.0]])).values_and_slopes(np.array([1.5]))
  assert np.isnan(values[0]) and values[1] == -np.inf and values[2] == np.log(3)
  assert slopes[2, 0] == pytest.approx(1 / 1.5)
