"""Multiples of single known functions, told by least squares."""

import dataclasses
import re

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.unknowns import plain_functions, unknown_functions
from symformer_jax.sources.unknowns.unknown_functions import Table, Tabulated

CONFIG = DEFAULT.separable.forms
PLACES = np.linspace(0.2, 3.0, 64)


def values_of(text, places=PLACES):
  with np.errstate(all="ignore"):
    return expression.evaluate(parser.parse(text, ["x"]), places[:, None])


def texts(values, places=PLACES, error=0.0, config=CONFIG):
  found = plain_functions.multiples(places, values, error, config)
  whole = (printing.to_text(node, ["x"]) for node in found)
  return [re.sub(r"\d+\.\d+", lambda digits: f"{float(digits[0]):.6g}", text) for text in whole]


@pytest.mark.parametrize(("text", "num"), [
  ("3*x", 2), ("2*x**(-0.5)", 2), ("7*x**(-1/3)", 2), ("-1.3*x**2 + 0.4", 1), ("2.1/x - 8", 1), ("0.3*log(x) - 2", 1),
  ("0.5*sin(x) + 1", 1), ("4*arctan(x)", 1), ("0.8*x**0.37", 1), ("-5*x**(-1.21)", 1), ("2*exp(-1.7*x)", 1),
  ("-exp(0.4*x)", 1), ("exp(x)", 2), ("exp(x) - 3", 1)])
def test_what_agrees_is_found(text, num):
  values = values_of(text)
  found = plain_functions.multiples(PLACES, values, 0.0, CONFIG)
  assert len(found) == num
  for node in found:
    np.testing.assert_allclose(expression.evaluate(node, PLACES[:, None]), values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("form", [
  *(f"x**({power})" for power in (
    1, 2, 3, 4, 0.5, 1.5, 2.5, "1/3", "2/3", "4/3", -1, -2, -3, -4, -0.5, -1.5, -2.5, "-1/3", "-2/3")),
  *(f"{function}(x)" for function in ("log", "exp", "sin", "cos", "tan", "arcsin", "arccos", "arctan"))])
def test_multiples_of_common_functions_may_have_a_constant(form):
  places = np.linspace(0.2, 0.95, 64)
  values = values_of(f"1.7*{form} - 0.3", places)
  [node] = plain_functions.multiples(places, values, 0.0, CONFIG)
  np.testing.assert_allclose(expression.evaluate(node, places[:, None]), values, rtol=1e-6, atol=1e-9)


def test_no_constant_where_there_is_none():
  assert texts(values_of("2*sin(x)")) == ["2*sin(x)"]
  assert texts(values_of("2*sin(x) + 0.001")) == ["2*sin(x) + 0.001"]


@pytest.mark.parametrize("text", ["1/(x + 2.2)", "sin(2*x + 0.3)", "x**2 - x", "exp(-2*x) + 0.1", "log(x + 1)"])
def test_other_functions_are_none(text):
  assert not texts(values_of(text))


def test_nothing_where_too_little_is_known_or_several_agree(rng):
  values = values_of("3*x**(-2/3)")
  share = 1e-8  # ten times that is a ten millionth
  noisy = values + np.sqrt(0.9 * share * np.var(values)) * rng.choice([-1, 1], 64)
  assert texts(noisy, error=0.99 * share * np.var(values)) and not texts(noisy, error=1.01 * share * np.var(values))
  assert not texts(noisy)  # an error that is not told
  narrow = np.linspace(100, 101, 64)
  assert texts(values_of("log(x)", narrow), narrow) == ["1*log(x)"]
  known = 1e-8 * np.var(values_of("log(x)", narrow))
  assert not texts(values_of("log(x)", narrow), narrow, error=known)


def test_places_below_zero_have_no_logarithms():
  places = np.linspace(-2, 3, 64)
  assert texts(values_of("2*x**3 - 1", places), places) == ["2*x**3 - 1"]
  assert texts(values_of("3*exp(0.5*x)", places), places) == ["3*exp(0.5*x)"]
  assert not texts(values_of("x**3 - 2.5*x", places), places)


def test_exponentials_of_years_are_beyond_all_numbers():
  places = np.linspace(1990, 2010, 64)
  assert not texts(np.exp(-0.8 * (places - 2000)), places)
  assert not texts(np.exp(-0.8 * (places - 2000)), places + 1e12)


def test_powers_and_functions_are_those_of_the_config():
  values = values_of("2*x**2 + 1")
  assert texts(values) and not texts(values, config=dataclasses.replace(CONFIG, plain_powers=(1.0, 3.0)))
  values = values_of("2*sin(x) + 1")
  assert texts(values) and not texts(values, config=dataclasses.replace(CONFIG, plain_functions=("cos",)))


def test_a_table_has_a_library_only_where_none_agrees(monkeypatch, rng):
  x = rng.uniform(0.5, 3, (100, 2))
  made = []
  atoms = unknown_functions.library.Atoms
  monkeypatch.setattr(unknown_functions.library, "Atoms", lambda *args, **more: made.append(1) or atoms(*args, **more))

  def forms(text, operators=None):
    options = SearchOptions()
    options = dataclasses.replace(
      options, restrictions=dataclasses.replace(options.restrictions, operators=operators))
    table = Table(make_task((x, x[:, 0]), ["x", "y"], options), 1, DEFAULT, CONFIG)
    return table.forms(Tabulated(values_of(text, table.places), 1e-16))

  assert len(forms("2*log(x) + 1")) == 1 and not made
  assert len(forms("2*log(x) + 1", ("+", "*", "inv", "pow2"))) > 1 and made == [1]
  assert len(forms("2*log(x + 2.2) + 1")) > 1 and made == [1, 1]
