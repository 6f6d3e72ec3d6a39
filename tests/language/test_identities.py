"""Identities keep the value of a formula and read as a person would write it."""

import numpy as np
import pytest

from symformer_jax.language import expression, parser, printing
from symformer_jax.language.identities import (
  to_collected,
  to_complements,
  to_distributed,
  to_expanded,
  to_factors_of_exponentials,
  to_half_angles,
  to_joined_logarithms,
  to_multiple_angles,
  to_multiplied,
  to_other_waves,
  to_roots,
  to_single_fractions,
  to_steps,
  to_tangents,
)
from symformer_jax.language.tidy import tidy


@pytest.mark.parametrize(("rewrite", "text", "expected"), [
  (to_other_waves, "sin(2*x + 1.9707963267948966)", "cos(2*x + 0.4"), (to_other_waves, "cos(x - 1)", "sin(x + 0.57079"),
  (to_other_waves, "sin(x)", None), (to_other_waves, "sin(cos(x + 1))", "sin(sin(x + 2.57079"),
  (to_complements, "asin(0.3*x - 1) + 1.5707963267948966", "3.14159"),
  (to_complements, "2*acos(x/4) + y - 3", "y - 2*arcsin"),
  (to_complements, "y - atan(x/y) + 1.5707963267948966", "arctan(y/x) + y"), (to_complements, "asin(x/4)", None),
  (to_complements, "atan(x) + y", None),
  (to_roots, "sqrt(9*x**2*y)", "3*sqrt(y)*x"), (to_roots, "0.3*sqrt(x**2)", "0.3*x"), (to_roots, "sqrt(x + 4)", None),
  (to_roots, "sqrt(-9*x**2/(x**2 - 9))", "3*x/sqrt(9 - x**2)"), (to_roots, "sqrt(4*y/x**2)", "2*sqrt(y)/x"),
  (to_roots, "sqrt(-4*y*(x - 5))", "2*sqrt((5 - x)*y)"),
  (to_factors_of_exponentials, "exp(-1.2*exp(-x) + 4.605170185988092)", "100.00000000000004*exp(-1.2*exp(-x))"),
  (to_factors_of_exponentials, "exp(x + y)", None), (to_factors_of_exponentials, "exp(x - 800)", None),
  (to_factors_of_exponentials, "exp(2*x)", None), (to_factors_of_exponentials, "exp(2*(x + y))", None),
  (to_factors_of_exponentials, "exp(-1.25*((x + 2)**2 - 0.8788898309344879))",
   "3.000000000000001*exp(-1.25*(x + 2)**2)"),
  (to_joined_logarithms, "log(x**2 + 2.5)/y - 0.916290731874155/y", "log(0.4*x**2 + 1"),
  (to_joined_logarithms, "3*log(x) + y + 3", "3*log(2.718281828459045*x) + y"),
  (to_joined_logarithms, "log(x) + y", None),
  (to_joined_logarithms, "x*log(y) + 2000*x", None),
  (to_joined_logarithms, "log(x)*log(y) + log(y)", "log(2.718281828459045*"),
  (to_expanded, "(x + 3)**2", "6*x + x**2 + 9"), (to_expanded, "4*x*y/((y + 1)*(y + 3))", "4*x*y/(4*y + y**2 + 3)"),
  (to_expanded, "-0.5*((y - 3)**2 - 9) - x", "3*y - 0.5*y**2 - x"),
  (to_expanded, "2*((x + 2)**2 + 1)*exp(-x)", "2*(4*x + x**2 + 5)*exp(-x)"), (to_expanded, "(x + y + 2)**2", None),
  (to_distributed, "8*(0.5*x**2*y + x)*y/x", "4*x**2*y**2/x + 8*y"),
  (to_distributed, "2*(x + y)", "2*x + 2*y"),
  (to_distributed, "(x + 1)*(y + 2)", None), (to_distributed, "x*y/(x + 1)", None),
  (to_distributed, "sin(3*(x + y)*x)", "sin(3*x**2 + 3*x*y)"),
  (to_collected, "2*cos(1.7/y)/x + 0.4*cos(1.7/y)*x - cos(1.7/y) + y", "(2/x + 0.4*x - 1)*cos(1.7/y) + y"),
  (to_collected, "3*x*y - 2*x*sqrt(y)", "(3*y - 2*sqrt(y))*x"), (to_collected, "x**2 + x*y + 1", None),
  (to_collected, "exp(2*x*y + 3*x)", "exp((2*y + 3)*x)"),
  (to_collected, "x*y/(x + 1) - x*y/(y + 1)", "(1/(x + 1) - 1/(y + 1))*x*y"),
  (to_expanded, "(x + 1)*(y + 2)", None), (to_expanded, "(x - y)*(x + y)", "x**2 - y**2"),
  (to_expanded, "2*(x - 1)*(y - 1) + 2*y - 2", "2*x*y - 2*x"), (to_expanded, "(x + y)*(y - 1)*x + y", None),
  (to_expanded, "(sqrt(x) + 2)*(cos(y) - 1) + 5", "2*cos(y) + cos(y)*sqrt(x) - sqrt(x) + 3"),
  (to_expanded, "(sqrt(x) + 2)*(cos(y) - 1) + x", None), (to_expanded, "(x + y + 2)*(x - cos(y)) + y", None),
  (to_multiple_angles, "4*cos(x)**3*y - 3*cos(x)*y", "cos(3*x)*y"),
  (to_multiple_angles, "3*sin(x) - 4*sin(x)**3", "sin(3*x)"),
  (to_multiple_angles, "(8*cos(y)**3 - 4*cos(y))*exp(-x) + 2", "(2*cos(3*y) + 2*cos(y))*exp(-x) + 2"),
  (to_multiple_angles, "2*cos(x)**2 - 1", "cos(2*x)"), (to_multiple_angles, "y - 2*sin(x/2)**2*y", "cos(x)*y"),
  (to_multiple_angles, "3*cos(2*x + 1)**2*y + x - y", "1.5*cos(4*x + 2)*y + 0.5*y + x"),
  (to_multiple_angles, "3*sin(x*y)*cos(x*y)*y", "1.5*sin(2*x*y)*y"), (to_multiple_angles, "sin(x)*cos(y)", None),
  (to_multiple_angles, "2*cos(x)**2 - y", None), (to_multiple_angles, "cos(x)**3 - cos(y)", None),
  (to_multiple_angles, "exp(x)**2 + 1", None), (to_multiple_angles, "cos(x)**2", None),
  (to_half_angles, "(3 - 3*cos(7.4*x))/y**2", "6*sin(3.7*x)**2/y**2"),
  (to_half_angles, "y*cos(x + 0.4) + y - 2", "2*cos(0.5*x + 0.2)**2*y - 2"), (to_half_angles, "1 - cos(x)*y", None),
  (to_half_angles, "cos(x)*y - y + exp(x)", "exp(x) - 2*sin(0.5*x)**2*y"), (to_half_angles, "2 - 3*cos(x)", None),
  (to_half_angles, "cos(x)*cos(y) - cos(y)", "-2*cos(y)*sin(0.5*x)**2"),
  (to_half_angles, "cos(x)*cos(y) + cos(x)", "2*cos(x)*cos(0.5*y)**2"),
  (to_steps, "44.6 - 44.6/(exp(3/x) + 1)", "44.6/(exp(-3/x) + 1)"), (to_steps, "44.6 - 30/(exp(3/x) + 1)", None),
  (to_steps, "2*y + 1.5 - 6*y/(0.5*exp(x) + 3)", "y/(3*exp(-x) + 0.5) + 1.5"), (to_steps, "1 + 1/(exp(x) + 1)", None),
  (to_steps, "exp(x*y)*(1 + 1/(exp(-2*x) - 1))", "exp(x*y)/(1 - exp(2*x))"),
  (to_steps, "1 - 1/(exp(x) + y)", None), (to_steps, "1 - 1/(exp(x) + exp(y) + 1)", None),
  (to_steps, "1 - 1/(x + 1)", None),
  (to_tangents, "7*sin(2*x)/sin(2*x - 3)", "0.9878400564190705*(1/tan(2*x - 3)) - 6.929947476203118"),
  (to_tangents, "y*cos(x)/cos(x + 0.5)", "0.479425538604203*tan(x + 0.5)*y + 0.8775825618903728*y"),
  (to_tangents, "x*y/(2*tan(x) + 2) + 3",
   "(0.24999999999999997*(1/tan(x + 0.7853981633974483)) + 0.24999999999999997)*x*y + 3"),
  (to_tangents, "1/(2*cot(y) - 3)", "-0.15384615384615385*(1/tan(y - 0.5880026035475674)) - 0.23076923076923078"),
  (to_tangents, "cos(x)/sin(x)", "1/tan(x)"), (to_tangents, "2*sin(x)/sin(x)", "2"),
  (to_tangents, "1/(1e160*tan(x) + 2)", "1e-160*(1/tan(x + 2e-160))"),
  (to_tangents, "sin(x)/sin(y)", None), (to_tangents, "sin(x)/sin(2*x)", None), (to_tangents, "1/(tan(x) + y)", None),
  (to_half_angles, "cos(x) - cos(y)", None), (to_half_angles, "1 - sin(x)", None),
  (to_single_fractions, "1 - 2/(x/y + 1)", "(x - y)/(x + y)"),
  (to_single_fractions, "3*y/(x**2/y**2 + 4)", "3*y**3/(4*y**2 + x**2)"),
  (to_single_fractions, "(1 - 2/(x/y + 1))*exp(-y/3)", "(x - y)*exp(-0.3333333333333333*y)/(x + y)"),
  (to_single_fractions, "x + y/(x + 2)", "(2*x + x**2 + y)/(x + 2)"),
  (to_single_fractions, "2/(x + 1) + y", "(x*y + y + 2)/(x + 1)"),
  (to_multiplied, "(x/(y*log(x/y)) - 1/log(x/y))*y", "x/log(x/y) - y/log(x/y)"),
  (to_multiplied, "(x/y + 2)*y", "2*y + x"),
  (to_multiplied, "exp((x/y + 3)*y*sin(x))", "exp((3*y + x)*sin(x))"),
  (to_multiplied, "(x/y - x*y)*y*(x + 1/y)", "(1/y + x)*(x - y**2*x)"),
  (to_multiplied, "(x/y**2 + 2)*y", None), (to_multiplied, "(x + 2)*y", None), (to_multiplied, "x/y + y", None),
  (to_single_fractions, "x + y + 1/(x + y + 2)", None), (to_single_fractions, "2*x/(x + y)", None)])
def test_identities(rewrite, text, expected):
  node, x = parser.parse(text, ["x", "y"]), np.random.default_rng(0).uniform(0.3, 2.5, (9, 2))
  written = tidy(rewrite(node))
  np.testing.assert_allclose(expression.evaluate(written, x), expression.evaluate(node, x), rtol=1e-12)
  plain = printing.to_text(tidy(node), ["x", "y"])
  assert printing.to_text(written, ["x", "y"]).startswith(plain if expected is None else expected)


def test_what_noise_leaves_of_a_term_is_left_out():
  for text, expected in (("4*cos(x)**3 - 3.07*cos(x)", "cos(3*x)"), ("1.99*cos(x)**2 - 1", "0.995*cos(2*x)"),
                         ("4*cos(x)**3 - 3.1*cos(x)", "cos(3*x) - 0.1")):
    assert printing.to_text(to_multiple_angles(parser.parse(text, ["x"])), ["x"]).startswith(expected)


def test_what_is_the_same_but_for_rounding_is_half_an_angle():
  for text, expected in (("0.0365230095 - 0.03652301*cos(7.4*x)", "0.073046019*sin(3.7*x)**2"),
                         ("1.019 + cos(x)", "2.038*cos(0.5*x)**2"), ("1.021 + cos(x)", "cos(x) + 1.021")):
    assert printing.to_text(tidy(to_half_angles(parser.parse(text, ["x"]))), ["x"]) == expected


def test_roots_of_squares_are_another_value_where_the_base_is_negative():
  node = parser.parse("sqrt(x**2)", ["x"])
  assert expression.evaluate(to_roots(node), np.array([[-2.0]]))[0] == -2
