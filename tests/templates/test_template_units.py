"""Templates over columns with units: which those of functions and parameters are, and what cannot be."""

import dataclasses

import numpy as np
import pytest

from symformer_jax import inference, testing
from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import templates, units as units_lib

NAMES = ("x", "t", "z")
UNITS = {"x": "m", "t": "s", "z": "kg", "y": "N"}


def units_of(*, dimensionless=False, **changes):
  found = units_lib.read_units(UNITS | changes, dimensionless_constants=dimensionless)
  return found.for_columns(NAMES)


@pytest.mark.parametrize(("text", "y", "functions", "parameters"), [
  ("f(x)*exp(-k*t)", "N", {"f": "N"}, {"k": "1/s"}),
  ("sqrt(f(x) + t**2)", "s", {"f": "s**2"}, {}),
  ("a*t + f(x, z)", "N", {"f": "N"}, {"a": "N/s"}),
  ("t*f(x)**2 + z", "kg", {"f": "kg**(1/2)/s**(1/2)"}, {}),
  ("x/(b + t)*f(z)", "m/s", {"f": "1"}, {"b": "s"}),
  ("exp(f(x)) + log(k*t)", "1", {"f": "1"}, {"k": "1/s"}),
  ("f(x) + g(t)", "N", {"f": "N", "g": "N"}, {}),
])
def test_units_of_functions_and_parameters_follow(text, y, functions, parameters):
  units, template = units_of(y=y), templates.read(text, NAMES)
  assert units.dimensions.allows(template.node)
  found = {name: units.of_part(template.node, template.path(name)) for name in (*functions, *parameters)}
  for name, unit in (functions | parameters).items():
    expected = units_lib.read_unit(unit, name=name)
    assert (found[name].dimension, found[name].powers) == (expected.dimension, expected.powers)


def search(text, x, y, units, **options):
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "guesses"))
  [result] = inference.search(testing.FixedProposer(["0.7*x0"]), [(x, y)], names=[NAMES], template=text, config=config,
                              units=units, **options)
  return result


@pytest.mark.parametrize(("text", "options", "message"), [
  ("f(x) + t + z", {}, "'f(x) + t + z' cannot be a N: it adds what has different units, or takes a function"),
  ("f(x)*exp(-t)", {}, "cannot be a N"),
  ("f(x)*exp(-k*t)", {"dimensionless_constants": True}, "cannot be a N"),
  ("f(x)*g(t)", {}, r"the units leave open which f(x) has in 'f(x)*g(t)': leave them out, or one of the unknown"),
])
def test_what_units_forbid_is_said_before_the_search(rng, text, options, message):
  x = rng.uniform(1, 2, (20, 3))
  result = search(text, x, x[:, 0], UNITS, **options)
  assert result.status == "failed" and message in result.message


def test_what_is_found_has_units(rng):
  x = rng.uniform(1, 3, (60, 3))
  y = 1.7 * x[:, 0] ** 2 * np.exp(-0.7 * x[:, 1])
  # Of the guesses one has not the unit of the function, whatever its number.
  with_other = search("f(x)*exp(-k*t)", x, y, UNITS, guesses=["sin(x)"])
  assert "breaks the rules" in with_other.message
  result = search("f(x)*exp(-k*t)", x, y, UNITS, guesses=["1.2*x**2"])
  assert result.status == "ok" and result.best.filled.functions == (("f(x)", "1.7*x**2"),)
  [(_, constant)] = result.best.filled.parameters
  assert constant.value == pytest.approx(0.7) and constant.unit == "1/s"
  assert result.units == ("m", "s", "kg", "N") and "x in meter" in result.message
  units = units_of().dimensions
  assert all(units.allows(line.node) for line in result.pareto)
  by_value = {round(each.value, 3): each.unit for each in result.best.constants}
  assert by_value == {1.7: "N/m**2", 0.7: "1/s"} or by_value == {1.7: "N/m**2", -0.7: "1/s"}
