"""Derivatives by subtrees, against JAX and against finite changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language import adjoints, expression, operators
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.parser import parse

POINTS = np.random.default_rng(0).uniform(0.2, 0.9, (40, 2))


@pytest.mark.parametrize("operator", operators.OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_has_the_derivatives_that_jax_finds(operator):
  root, *arguments = adjoints.places(Node(operator.name, tuple(map(variable, range(operator.arity)))), POINTS)
  with jax.enable_x64(True):
    expected = jax.vmap(jax.grad(operator.jnp_fn, argnums=tuple(range(operator.arity))))(
      *(jnp.asarray(POINTS[:, i]) for i in range(operator.arity)))
  np.testing.assert_array_equal(root.adjoint, 1)
  for place, derivative in zip(arguments, expected, strict=True):
    np.testing.assert_allclose(place.adjoint, derivative, rtol=1e-12)


@pytest.mark.parametrize("text", ["3*sin(2*x + y)*x", "exp(-x*y)/(x + 0.3)", "(x + 2)**1.5 - log(y)", "x*x*y"])
def test_a_small_change_at_a_place_changes_the_formula_by_its_adjoint(text):
  node, step = parse(text, ["x", "y"]), 1e-6
  for place in adjoints.places(node, POINTS):
    up, down = (expression.evaluate(adjoints.replace(node, place.path, Node("+", (place.node, number(sign * step)))),
                                    POINTS) for sign in (1, -1))
    np.testing.assert_allclose(place.adjoint, (up - down) / (2 * step), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(place.values, expression.evaluate(place.node, POINTS))


def test_replace_changes_one_occurrence():
  node = parse("x*y + x", ["x", "y"])
  found = [adjoints.replace(node, place.path, number(2.0)) for place in adjoints.places(node, POINTS)
           if place.node == variable(0)]
  assert sorted(found) == sorted([parse("2*y + x", ["x", "y"]), parse("x*y + 2", ["x", "y"])])


def test_the_exponent_of_a_negative_base_stays():
  [_, _, exponent] = adjoints.places(parse("x**4", ["x"]), np.array([[-2.0], [3.0]]))
  np.testing.assert_allclose(exponent.adjoint, [0, 81 * np.log(3)])


def test_a_step_is_flat_where_it_is_one():
  [_, argument] = adjoints.places(Node("sign", (variable(0),)), np.array([[0.0], [2.0]]))
  np.testing.assert_array_equal(argument.adjoint, [0, 0])


def test_what_is_undefined_is_not_finite():
  root, argument = adjoints.places(parse("1/x", ["x"]), np.array([[0.0], [2.0]]))
  assert not np.isfinite(root.values[0]) and not np.isfinite(argument.adjoint[0])
  np.testing.assert_allclose(argument.adjoint[1], -0.25)
