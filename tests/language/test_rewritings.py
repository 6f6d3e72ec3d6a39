"""Rewritings keep the value of a formula and read as a person would write it."""

import numpy as np
import pytest

from symformer_jax.language import expression, parser, printing
from symformer_jax.language.rewritings import (
  to_absolutes,
  to_limits,
  to_opened_logarithms,
  to_opened_powers,
  to_origins,
  to_positive_arguments,
  to_powers,
  to_powers_of_equals,
  to_powers_of_factors,
  to_principal_phases,
  to_proper_fractions,
  to_single_waves,
  to_unit_constants,
  to_unit_factors,
  to_unit_slopes,
  to_vertices,
)
from symformer_jax.language.tidy import tidy


@pytest.mark.parametrize(("text", "expected"), [
  ("sin(x + 3.14159265358979)", "-sin(x)"), ("cos(2*x - 1.5707963267949)", "sin(2*x)"),
  ("sin(x**2 + 34.5575191894877)", "-sin(x**2)"), ("3*cos(x + 1.5707963267949)", "-3*sin(x)"), ("sin(x + 7)", None),
  ("cos(x - 100)", None), ("sin(x + 0.5)", "sin(x + 0.5)"),
  ("tan(0.1*exp(x) - 1.5707963267948966)", "-1/tan(0.1*exp(x))"), ("tan(2*x + 19.8624)", None),
  ("tan(x - 31.41592653589793)", "tan(x)"),
  ("sin(cos(x + 3.14159265358979) + 9)", None)])
def test_phases_come_within_half_a_turn(text, expected):
  node, x = parser.parse(text), np.linspace(-3, 3, 7)[:, None]
  phases = tidy(to_principal_phases(node))
  np.testing.assert_allclose(expression.evaluate(phases, x), expression.evaluate(node, x), atol=1e-12)
  assert all(abs(n.value) <= np.pi for n in expression.walk(phases) if n.is_number)
  if expected is not None:
    assert printing.to_text(phases, ["x"]) == expected


@pytest.mark.parametrize(("text", "expected"), [
  ("cos(-0.3*x)", "cos(0.3*x)"), ("cos(2 - 0.3*x)", "cos(0.3*x - 2)"), ("cos(-x**2 - x - 1.5)", "cos(x**2 + x + 1.5)"),
  ("cos(x**2 - x)", "cos(x**2 - x)"), ("sin(-0.3*x) + 1", "1 - sin(0.3*x)"), ("sin(2 - x)", "sin(2 - x)"),
  ("-3*arctan(-x - 2)", "3*arctan(x + 2)"), ("cos(-3*cos(-x))", "cos(3*cos(x))"),
  ("x - tan(-0.2*x)", "tan(0.2*x) + x"), ("sin(-2*x)**2", "sin(2*x)**2"), ("sin(-x)**3 + 1", "1 - sin(x)**3"),
  ("3*sin(-0.2*x)**4", "3*sin(0.2*x)**4"), ("2/sin(-0.2*x - 1)", "-2/sin(0.2*x + 1)")])
def test_arguments_are_positive(text, expected):
  node, x = parser.parse(text), np.linspace(-3, 3, 7)[:, None]
  written = tidy(to_positive_arguments(tidy(node)))
  np.testing.assert_allclose(expression.evaluate(written, x), expression.evaluate(node, x), atol=1e-12)
  assert printing.to_text(written, ["x"]) == expected


@pytest.mark.parametrize(("text", "expected"), [
  ("log(exp(12.5*y/x)*y**2.5)", "12.5*y/x + 2.5*log(y)"), ("log(3*exp(x)*y)", "log(3*y) + x"),
  ("log(exp(x)*exp(y)*sin(y))/x", "(log(sin(y)) + x + y)/x"), ("1/log(exp(x)/y)", "1/(x - log(y))"),
  ("2*log(sqrt(x*y))", "log(x*y)"), ("y*log((x + y)**(-1.5))", "-1.5*log(x + y)*y"), ("log(1/x**3)", "-3*log(x)"),
  ("log(x**2)", None), ("log(1/(x - 4)**4)", None), ("log(x**y)", None), ("log(x**3*y)", None), ("log(x*y)", None),
  ("log(exp(x) + y)", None), ("log(-exp(-x)*sin(-y))", None)])
def test_exponentials_in_logarithms_are_opened(text, expected):
  node, x = parser.parse(text, ["x", "y"]), np.random.default_rng(0).uniform(0.3, 3, (7, 2))
  opened = tidy(to_opened_logarithms(tidy(node)))
  np.testing.assert_allclose(expression.evaluate(opened, x), expression.evaluate(node, x), rtol=1e-12)
  if expected is None:
    expected = printing.to_text(tidy(node), ["x", "y"])
  assert printing.to_text(opened, ["x", "y"]) == expected


@pytest.mark.parametrize(("text", "expected"), [
  ("sin(log(x**y))", "sin(log(x)*y)"), ("log((2*x)**(1/y)) + 1", "log(2*x)/y + 1"), ("log(x**3)", None),
  ("log(x**y*y)", None)])
def test_logarithms_of_powers_are_opened(text, expected):
  node = tidy(parser.parse(text, ["x", "y"]))
  x = np.random.default_rng(0).uniform(0.3, 3, (7, 2))
  opened = tidy(to_opened_powers(node))
  np.testing.assert_allclose(expression.evaluate(opened, x), expression.evaluate(node, x), rtol=1e-12)
  assert printing.to_text(opened, ["x", "y"]) == (expected or printing.to_text(node, ["x", "y"]))


@pytest.mark.parametrize(("text", "expected"), [
  ("(exp(0.4*x) + 1)**(-900)", "exp(-900*exp(0.4*x))"), ("2*(0.5*x + 2)**20", "2097152*exp(5*x)"),
  ("(x + 1)**12", None), ("(x + 1)**13", "exp(13*x)"), ("x**40", None),
  ("(x - 3)**(-15)", None), ("(x + 1e-9)**(-40)", None), ("2**x", None)])
def test_powers_are_near_their_limits(text, expected):
  written = printing.to_text(tidy(to_limits(tidy(parser.parse(text, ["x"])))), ["x"])
  assert written == (printing.to_text(tidy(parser.parse(text, ["x"])), ["x"]) if expected is None else expected)


def test_the_larger_the_exponent_the_nearer_the_limit():
  x, away = np.linspace(0, 1, 9)[:, None], []
  for exponent in (20, 200, 2000):
    node = parser.parse(f"(1 + x/{exponent})**{exponent}", ["x"])
    away.append(np.max(np.abs(expression.evaluate(to_limits(node), x) - expression.evaluate(node, x))))
  assert away[0] > 9 * away[1] > 81 * away[2] > 0


def test_logarithms_of_exponentials_too_large_for_a_number_are_numbers():
  node = parser.parse("log(exp(900*x)*x)", ["x"])
  assert np.isinf(expression.evaluate(node, np.ones((1, 1))))
  assert expression.evaluate(to_opened_logarithms(tidy(node)), np.ones((1, 1))) == 900


@pytest.mark.parametrize(("text", "expected"), [
  ("3e-13*exp(14*x)", "exp(14*(x - 2.0596"), ("-2e9*exp(-9*x**2)*x", "-exp(-9*(x**2 - 2.3796"),
  ("exp(20*x - 30)", "exp(20*(x - 1.5))"), ("5*exp(20*x - 30)", "5*exp(20*(x - 1.5))"),
  ("1e8*x**12.5", "(4.36515"), ("2e9*exp(3*x*y)", "exp(3*(x*y + 7.1388"), ("1e-9*exp(3*(x + 2))", "exp(3*(x - 4.9077"),
  ("4*exp(-x)", None), ("1e8*x*y", None), ("2e9*exp(3*x + y)", None), ("1e8*2**x", None), ("1e8*x**2", None)])
def test_what_lies_far_from_the_data_is_said_where_the_formula_is_one(text, expected):
  node, x = parser.parse(text, ["x", "y"]), np.random.default_rng(0).uniform(0.3, 3, (7, 2))
  moved = tidy(to_origins(node))
  np.testing.assert_allclose(expression.evaluate(moved, x), expression.evaluate(node, x), rtol=1e-12)
  assert printing.to_text(moved, ["x", "y"]).startswith(expected or printing.to_text(tidy(node), ["x", "y"]))


@pytest.mark.parametrize(("rewrite", "text", "expected"), [
  (to_powers_of_factors, "(2*exp(-0.5*x)*y)**3", "8*exp(-1.5*x)*y**3"), (to_powers_of_factors, "exp(x + y)**2", None),
  (to_powers_of_factors, "(-3*x*sin(y))**2", "9*sin(y)**2*x**2"), (to_powers_of_factors, "(x + 1)**3", "(x + 1)**3"),
  (to_absolutes, "sqrt(4*(x - 1)**2)", "2*abs(x - 1)"), (to_absolutes, "3*sqrt(x**2*y**4) + 1", "3*abs(x)*y**2 + 1"),
  (to_absolutes, "sqrt(x**3*y**2)", None), (to_absolutes, "sqrt(-x**2)", None),
  (to_powers_of_equals, "3*(x + 1)**(-2.3)/(x + 1)**2", "3*(x + 1)**(-4.3)"),
  (to_powers_of_equals, "3.6*x**0.687/x", "3.6*x**(-0.313)"), (to_powers_of_equals, "x**2.3/x**2.2", "x**0.1"),
  (to_powers_of_equals, "x**0.3333333333333333*y*x**0.3333333333333332", "x**0.6666666666666665*y"),
  (to_powers_of_equals, "sqrt(x)*y*sqrt(x)", "x*y"), (to_powers_of_equals, "x*y/x", "y"),
  (to_positive_arguments, "(-2*x - 1)**2", "(2*x + 1)**2"), (to_positive_arguments, "y/(-x - 1)**3", "-y/(x + 1)**3"),
  (to_positive_arguments, "(1 - x)**2", None),
  (to_powers_of_factors, "(x**1.5)**2", "x**3"), (to_powers_of_factors, "sqrt(x)**2", "x"),
  (to_powers_of_factors, "2*(x**(-1.5))**2", "2/x**3"), (to_powers_of_factors, "(1/x)**1.5", None),
  (to_powers_of_factors, "(x**2*y)**3", None), (to_powers_of_equals, "x*y*2*x", "2*x**2*y"),
  (to_powers_of_equals, "sin(x + 1)*x*sin(x + 1)*sin(x + 1)", "sin(x + 1)**3*x"), (to_powers_of_equals, "x*y", None),
  (to_powers_of_equals, "1/(x*x)", "1/x**2"), (to_powers_of_equals, "x + x*y", None),
  (to_powers_of_factors, "(1e300*x)**3", "(1e+300*x)**3"), (to_unit_factors, "0*sqrt(x + 2)", "0"),
  (to_unit_factors, "3*(x + 2)**0.001", "3*(x + 2)**0.001"), (to_unit_constants, "(x + 2)**2", "(x + 2)**2"),
  (to_unit_factors, "0*x/(x + 1.5)", None), (to_origins, "1e8*x**0.01", "100000000*x**0.01"),
  (to_unit_slopes, "exp(-(2*x - 5)**2)", "exp(-4*(x - 2.5)**2)"), (to_unit_slopes, "3/(2*x + 5)", "1.5/(x + 2.5)"),
  (to_unit_slopes, "(x - 1)**2", "(x - 1)**2"),
  (to_unit_slopes, "x/(2 + 3)**2", "0.04*x"), (to_unit_slopes, "sqrt(4*x + 1)", "2*sqrt(x + 0.25)"),
  (to_unit_slopes, "sqrt(9 - 4*x)", "sqrt(9 - 4*x)")])
def test_what_is_raised_and_what_is_divided_by(rewrite, text, expected):
  node, x = parser.parse(text, ["x", "y"]), np.random.default_rng(0).uniform(0.3, 2, (9, 2))
  written = tidy(rewrite(node))
  np.testing.assert_allclose(expression.evaluate(written, x), expression.evaluate(node, x), rtol=1e-12)
  if expected is not None:
    assert printing.to_text(written, ["x", "y"]) == expected


@pytest.mark.parametrize(("text", "constants", "factors"), [
  ("1/(4*exp(-0.9*x) + 0.25)", "4/(16*exp(-0.9*x) + 1)", None), ("8/(y**3.1 + 8)", "1/(0.125*y**3.1 + 1)", None),
  ("0.5*sqrt(x**2 + 4) - 1", "sqrt(0.25*x**2 + 1) - 1", "sqrt(0.25*x**2 + 1) - 1"),
  ("y*(2 - 2*exp(-x))**3", "8*(1 - exp(-x))**3*y", None), ("-8*(x + 3)**3", None, "-(2*x + 6)**3"),
  ("0.5*x/(y + 1.5)", None, "x/(2*y + 3)"), ("3/(x - 2)", "-1.5/(1 - 0.5*x)", None),
  ("3*sqrt(x + y - 0.5)", None, "sqrt(9*x + 9*y - 4.5)"), ("5*x", "5*x", "5*x"), ("4*x**2", "4*x**2", "4*x**2"),
  ("x/(y + 1)", "x/(y + 1)", "x/(y + 1)"), ("sin(2/(x + 4))", "sin(0.5/(0.25*x + 1))", "sin(1/(0.5*x + 2))")])
def test_what_is_multiplied_within_and_without(text, constants, factors):
  node, x = parser.parse(text, ["x", "y"]), np.random.default_rng(0).uniform(0.3, 3, (9, 2))
  for rewrite, expected in ((to_unit_constants, constants), (to_unit_factors, factors)):
    written = tidy(rewrite(node))
    np.testing.assert_allclose(expression.evaluate(written, x), expression.evaluate(node, x), rtol=1e-12)
    if expected is not None:
      assert printing.to_text(written, ["x", "y"]) == expected


@pytest.mark.parametrize(("text", "expected"), [
  ("exp(log(x + 1)*x + 0)", "(x + 1)**x"), ("exp(log(x + 1)*x + 6.9077)", None), ("exp(2*log(x))", "x**2"),
  ("exp(-log(x))", "1/x"),
  ("exp(log(x) - 3*x)", "exp(-3*x)*x"), ("exp(x)", "exp(x)"), ("2*sin(exp(x*log(3*x)))", "2*sin((3*x)**x)"),
  ("exp(log(x)*log(x + 1))", None)])
def test_logarithms_leave_exponents(text, expected):
  node, x = parser.parse(text), np.linspace(0.3, 3, 7)[:, None]
  powers = tidy(to_powers(node))
  np.testing.assert_allclose(expression.evaluate(powers, x), expression.evaluate(node, x), rtol=1e-12)
  if expected is not None:
    assert printing.to_text(powers, ["x"]) == expected


@pytest.mark.parametrize(("text", "terms"), [
  ("3*sin(2*x) + 4*cos(2*x)", 1), ("exp(-x)*cos(x)*2 - 3*sin(x)*exp(-x) + 1", 2), ("sin(x) + cos(2*x)", 2),
  ("sin(x)*x + cos(x)", 2), ("-2*cos(x) - sin(x) + x", 2), ("2*sin(x + 0.3) + cos(x + 0.3) + sin(5*x)", 2),
  ("exp(3*sin(x) + 2*cos(x)) + 1", 2), ("sin(x)*cos(x) + sin(x)**2", 2), ("x + 2", 2)])
def test_a_sine_and_a_cosine_are_one_wave(text, terms):
  node, x = tidy(parser.parse(text)), np.linspace(-3, 3, 13)[:, None]
  wave = tidy(to_single_waves(node))
  np.testing.assert_allclose(expression.evaluate(wave, x), expression.evaluate(node, x), atol=1e-12)
  assert len(expression.flatten(wave, "+")) == terms
  assert expression.complexity(wave) <= expression.complexity(node)


@pytest.mark.parametrize(("text", "terms"), [
  ("2.193*cos(4*x)*exp(-0.299*x) - 1.1954*exp(-0.2992*x)*sin(4.001*x)", 1),
  ("2*cos(4*x)*exp(-0.3*x) + 0.01*exp(-0.55*x)*sin(4.1*x)", 1),
  ("2*cos(4*x)*exp(-0.3*x) + exp(-0.61*x)*sin(4*x)", 2), ("2*cos(4*x) + sin(8.2*x)", 2),
  ("2*cos(4*x) + sin(4*sqrt(x))", 2)])
def test_waves_that_differ_in_their_constants_are_offered_as_one(text, terms):
  wave = tidy(to_single_waves(tidy(parser.parse(text))))
  assert len(expression.flatten(wave, "+")) == terms
  x = np.linspace(0, 3, 31)[:, None]
  np.testing.assert_allclose(
    expression.evaluate(wave, x), expression.evaluate(tidy(parser.parse(text)), x), atol=0.01 if terms == 1 else 1e-12)


@pytest.mark.parametrize(("text", "expected"), [
  ("x**2 - 4*x + 9", "(x - 2)**2 + 5"), ("0.5*x**2 + 2*x", "0.5*((x + 2)**2 - 4)"),
  ("3*x**2 + 6*x + 3", "3*(x + 1)**2"),
  ("x**2 - 2*x + sin(x) + 3", "(x - 1)**2 + sin(x) + 2"), ("exp(-2*x**2 + 4*x)", "7.38905609893065*exp(-2*(x - 1)**2)"),
  ("sin(x)**2 + sin(x)", "(sin(x) + 0.5)**2 - 0.25"), ("x**2 + x**3 + 1", "x**2 + x**3 + 1"), ("x**2 + 1", "x**2 + 1"),
  ("2/(x**2 - 100*x + 2509)", "2/((x - 50)**2 + 9)"),
  ("1/(3*x**2 - 6*x + 15)", "0.33333333333333333/((x - 1)**2 + 4)")])
def test_squares_are_completed(text, expected):
  node, x = tidy(parser.parse(text)), np.linspace(-3, 3, 13)[:, None]
  vertex = tidy(to_vertices(node))
  np.testing.assert_allclose(expression.evaluate(vertex, x), expression.evaluate(node, x), rtol=1e-9, atol=1e-12)
  assert vertex == tidy(parser.parse(expected))


@pytest.mark.parametrize(("text", "expected"), [
  ("0.9 - 0.9*x/(x + 2)", "1.8/(x + 2)"), ("3 - 2/(0.5 + 4/x)", "32/(x + 8) - 1"),
  ("1 + x/(2*x + 3)", "1.5 - 1.5/(2*x + 3)"), ("exp(x) - 2*sqrt(x)/(sqrt(x) + 3) + 2", "exp(x) + 6/(sqrt(x) + 3)"),
  ("sin(1 - x/(x + 1))", "sin(1/(x + 1))"),
  # Nothing to be gained: no number beside it, another factor, none below the line.
  ("x/(x + 2)", None), ("2 + x*y/(x + 1)", None), ("2 + x/(x + y)", None), ("2 + 1/x", None)])
def test_fractions_become_proper(text, expected):
  node, x = tidy(parser.parse(text)), np.linspace(0.2, 3, 26).reshape(13, 2)
  proper = tidy(to_proper_fractions(node))
  np.testing.assert_allclose(expression.evaluate(proper, x), expression.evaluate(node, x), rtol=1e-12)
  assert printing.to_text(proper) == printing.to_text(tidy(parser.parse(expected or text)))
