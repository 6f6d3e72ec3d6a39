"""Sums of powers of one column: all triples, against an exhaustive search and laws that are known."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, PowerSumsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Rule
from symformer_jax.sources import closed_forms, power_sums

CONFIG = DEFAULT.closed_forms.powers


def rows_of(text, low, high, *, num=100, noise=0.0):
  rng = np.random.default_rng(3)
  x = rng.uniform(low, high, (num, 1))
  y = expression.evaluate(parser.parse(text, ["x"]), x)
  return Rows(x, y + noise * np.std(y) * rng.normal(size=num), np.ones(num))


def found(rows, config=CONFIG, rule=None):
  return closed_forms.power_sums_of_one(rows, range(rows.x.shape[1]), rule or Rule(rows.x.shape[1]), config)


def left(node, rows):
  return np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) / np.var(rows.y)


def test_exponents_are_halves_and_thirds():
  exponents = power_sums.exponents_of(CONFIG)
  assert 0.0 not in exponents and {0.5, 1 / 3, 5 / 3, -7 / 3, 4.0, -4.0} <= set(exponents) and len(exponents) == 32
  assert power_sums.exponents_of(PowerSumsConfig(parts=(1,), largest=2)) == [-2.0, -1.0, 1.0, 2.0]


@pytest.mark.parametrize(("text", "low", "high"), [
  ("1.5*(x**(7/3) - x**(5/3))*(1 + 0.15*(x**(2/3) - 1))", 0.8, 1.6),
  ("15.75*x - 17.8*x**(2/3) - 0.711*x**(5/3)", 4, 250),
  ("3.2*x**(1/3) - 0.7*x**(2/3) + 0.1*x - 2", 1, 50), ("sqrt(2*x + 0.3/x**2 - 1)", 1, 4),
  ("exp(0.3*x**1.5 - 0.2*x + 1/x)", 0.5, 3), ("1/(2 + sqrt(x) - 0.1*x)", 0.1, 9), ("(1 + x**(1/3) + 2/x)**2", 0.5, 9)])
def test_laws_are_met(text, low, high):
  rows = rows_of(text, low, high)
  assert min(left(node, rows) for node in found(rows)) < 1e-20


def test_units_of_y_do_not_matter():
  rows = rows_of("2*x - x**(5/3) + 1/x", 0.5, 3)
  for unit in (1e-200, 1e150):
    [node] = found(dataclasses.replace(rows, y=unit * rows.y), PowerSumsConfig(links=("y",)))
    np.testing.assert_allclose(expression.evaluate(node, rows.x), unit * rows.y, rtol=1e-9)


def test_what_sums_of_two_and_of_one_need_no_more_of_is_not_there():
  rows = rows_of("2*x**(5/3) + 3/x", 0.5, 4)
  node = found(rows)[0]
  assert left(node, rows) < 1e-24 and expression.complexity(node) <= 12


def test_of_few_powers_the_best_triple_is_that_of_an_exhaustive_search():
  rng = np.random.default_rng(0)
  x, weights = rng.uniform(0.5, 3, 60), rng.uniform(0.5, 2, 60)
  config = PowerSumsConfig(parts=(2,), largest=2, num_looked_at=1, exact=1.0)
  y = np.sin(2 * x) + 0.1 * rng.normal(size=60)

  def share(exponents):
    design = np.column_stack([np.ones(60), *(x**p for p in exponents)]) * np.sqrt(weights)[:, None]
    rest = np.sqrt(weights) * y
    return float(np.sum((rest - design @ np.linalg.lstsq(design, rest, rcond=None)[0]) ** 2))

  expected = min(itertools.combinations(power_sums.exponents_of(config), 3), key=share)
  assert power_sums.nearest_powers(x, y, weights, config) == expected


def test_what_is_none_gives_nothing():
  assert found(rows_of("exp(sin(x))", 0.5, 3)) == [] == found(rows_of("x**1.7 + x**0.9 + 1/(x + 1)", 0.5, 3))
  assert found(rows_of("2*x - x**(5/3) + 1/x", 0.5, 3, noise=1e-6)) == []
  assert found(rows_of("2*x - x**3 + x**2", -3, 3)) == []  # of what has both signs there are no roots
  assert found(rows_of("2*x - x**(5/3) + 1/x", 0.5, 3, num=11)) == []
  assert found(rows_of("2*x - x**(5/3) + 1/x", 0.5, 3, num=12)) != []
  assert found(Rows(np.linspace(1, 2, 30)[:, None], np.zeros(30), np.ones(30))) == []
  two = rows_of("2*x - x**(5/3) + 1/x", 0.5, 3)
  assert found(Rows(np.column_stack([two.x, two.x[::-1]]), two.y, two.weights)) == []
  assert found(Rows(np.column_stack([two.x, np.ones(100)]), two.y, two.weights)) != []


def test_rules_and_the_config_say_whether_they_are_asked_for(monkeypatch):
  rows = rows_of("sqrt(2*x + 0.3/x**2 - 1)", 1, 4)
  assert found(rows, rule=dataclasses.replace(Rule(1), tokens=frozenset({"+", "*", "pow", "inv", "pow2"}))) == []
  assert found(rows, PowerSumsConfig(links=("y", "inv"))) == []
  task, asked = make_task((rows.x, rows.y), None, SearchOptions()), []
  monkeypatch.setattr(closed_forms, "power_sums_of_one", lambda *given: asked.append(given) or [])
  for has_powers in (True, False):
    config = dataclasses.replace(DEFAULT, closed_forms=dataclasses.replace(DEFAULT.closed_forms, has_powers=has_powers))
    closed_forms.ClosedForms(config).propose([SimpleNamespace(task=task)], turn=0, num=1, clock=Clock())
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["largest", "num_looked_at", "rows_per_term"])
def test_counts_are_checked(name):
  with pytest.raises(InputError, match=name):
    PowerSumsConfig(**{name: 0})
