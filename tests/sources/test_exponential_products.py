"""Products of powers with exponentials of monomials: known laws, against least squares over all monomials, odd data."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, ClosedFormsConfig, ExponentialProductsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser
from symformer_jax.sources import monomials
from symformer_jax.sources.exponential_products import products_with_exponentials

CONFIG = DEFAULT.closed_forms.exponentials
NAMES = "xyzwvabcde"


def table(text, *, low=0.3, high=4.0, num_columns=3, num_rows=120):
  x = np.random.default_rng(1).uniform(low, high, (num_rows, num_columns))
  return Rows(x, expression.evaluate(parser.parse(text, NAMES[:num_columns]), x), np.ones(num_rows))


def left(node, rows):
  return np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) / np.var(rows.y)


@pytest.mark.parametrize(("text", "num_columns"), [
  ("0.3*x/(y*z*w)*exp(-0.5*v**2/z**2)", 5), ("-7*x**1.7*exp(-0.3*x**1.5)", 1), ("2*y**(-0.4)*exp(3/x - 0.1*z*y)", 3),
  ("exp(0.2*x*y*z)", 3), ("5*x**2*exp(-1.3*x) + 0*y", 2), ("1e-100*x*exp(-y/z)", 3)])
def test_laws_are_found(text, num_columns):
  rows = table(text, num_columns=num_columns)
  assert min(left(node, rows) for node in products_with_exponentials(rows, range(num_columns), CONFIG)) < 1e-18


def test_columns_of_both_signs_have_whole_exponents():
  rows = table("3*exp(-0.4*x**2 + 0.2*x*y)", low=-2, num_columns=2)
  assert min(left(node, rows) for node in products_with_exponentials(rows, (0, 1), CONFIG)) < 1e-18


def test_a_column_with_a_zero_has_whole_exponents():
  x = np.column_stack([np.arange(120) % 5, np.linspace(0.3, 4, 120)])
  rows = Rows(x, 3 * np.exp(-0.4 * x[:, 0] ** 2 + 0.2 * x[:, 0] * x[:, 1]), np.ones(120))
  assert min(left(node, rows) for node in products_with_exponentials(rows, (0, 1), CONFIG)) < 1e-18


def test_the_best_monomials_are_those_of_least_squares(rng):
  x = rng.uniform(0.5, 2, (80, 2))
  rows = Rows(x, np.exp(rng.normal(size=80)), rng.uniform(0.2, 2, 80))
  config = dataclasses.replace(CONFIG, exponents=((-1.0, 1.0, 2.0),), num_beams=99, num_kept=1, most_left=np.inf)
  one, two = products_with_exponentials(rows, (0, 1), config)
  every = monomials.up_to((0, 1), 3, at_most=99, exponents=config.exponents)
  root = np.sqrt(rows.weights) * rows.y

  def misses(some):
    design = root[:, None] * np.column_stack([np.ones(80), np.log(x), monomials.Values(x)(some)])
    return np.sum((design @ np.linalg.lstsq(design, root * np.log(rows.y), rcond=None)[0] - root * np.log(rows.y)) ** 2)

  def misses_of(node):
    return np.sum((root * (np.log(expression.evaluate(node, x)) - np.log(rows.y))) ** 2)

  assert misses_of(one) == pytest.approx(min(misses([each]) for each in every))
  assert misses_of(two) == pytest.approx(min(misses(each) for each in itertools.combinations(every, 2)))


def test_nothing_is_made_of_odd_data(rng):
  rows = table("x*exp(-y)", num_columns=2)
  assert products_with_exponentials(rows, (0, 1), CONFIG)
  for y in (rows.y - np.median(rows.y), np.where(np.arange(120) == 3, 0.0, rows.y), np.ones(120)):
    assert products_with_exponentials(Rows(rows.x, y, rows.weights), (0, 1), CONFIG) == []
  assert products_with_exponentials(Rows(rows.x[:15], rows.y[:15], rows.weights[:15]), (0, 1), CONFIG) == []
  assert products_with_exponentials(rows, (), CONFIG) == []
  assert products_with_exponentials(rows, (0, 1), dataclasses.replace(CONFIG, max_columns=1)) == []
  assert products_with_exponentials(Rows(np.ones((120, 2)), rows.y, rows.weights), (0, 1), CONFIG) == []
  codes = Rows(rng.integers(0, 2, (120, 2)).astype(float), rows.y, rows.weights)
  huge = Rows(rows.x * 1e200, rows.y, rows.weights)
  for odd in (codes, huge):
    assert all(np.isfinite(left(node, odd)) for node in products_with_exponentials(odd, (0, 1), CONFIG))


def test_years_stand_in_the_exponential_with_a_constant():
  year = np.linspace(1990, 2020, 90)[:, None]
  rows = Rows(year, 1e6 * np.exp(0.05 * (year[:, 0] - 1990) - 1e-3 * (year[:, 0] - 1990) ** 2), np.ones(90))
  nodes = products_with_exponentials(rows, (0,), CONFIG)
  assert nodes and min(left(node, rows) for node in nodes) < 1e-12


def test_what_is_rounding_is_left_out():
  rows = table("0.3*x/(y*z)*exp(-0.5*x**2)", num_columns=5)
  found = [node for node in products_with_exponentials(rows, range(5), CONFIG) if left(node, rows) < 1e-18]
  assert {tuple(sorted(expression.columns_of(node))) for node in found} >= {(0, 1, 2)}


def test_of_y_with_errors_there_are_none(rng):
  rows = table("x*exp(-y)", num_columns=2)
  errors = 1e-5 * np.std(rows.y) * rng.normal(size=120)
  assert products_with_exponentials(Rows(rows.x, rows.y + errors, rows.weights), (0, 1), CONFIG) == []
  curve = table("2*x/(x + 0.5)", num_columns=1)
  assert products_with_exponentials(curve, (0,), CONFIG) == []


def test_as_many_come_as_the_config_says():
  rows = table("x*exp(-y) + 0.1*z")
  for num_kept, num_beams, num in ((1, 8, 2), (2, 8, 4), (3, 2, 4)):
    config = dataclasses.replace(CONFIG, num_kept=num_kept, num_beams=num_beams, most_left=np.inf)
    assert len(products_with_exponentials(rows, (0, 1, 2), config)) == num
  with pytest.raises(InputError, match="num_beams: expected a whole number of at least 1, got 0"):
    ExponentialProductsConfig(num_beams=0)
  assert ClosedFormsConfig().has_exponentials
