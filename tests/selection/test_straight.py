"""Functions of which the rows see a straight piece are tried as that line, and bent ones are not."""

from hand_made_rows import parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.selection import select, straight

SHARE = DEFAULT.selection.straight


def lines_of(text, x, share=SHARE):
  return list(straight.straightened(parse(text), x, share=share))


def test_a_straight_piece_of_a_wave_is_the_line_of_least_squares_as_the_formula_depends_on_it(rng):
  x = rng.uniform(1, 9, (50, 2))
  [line] = lines_of("100*sin(0.03*x)*sqrt(z)", x)
  root = np.sqrt(x[:, 1])  # a change of the wave is one of the formula times the root
  design = root[:, None] * np.column_stack([x[:, 0], np.ones(50)])
  slope, offset = np.linalg.lstsq(design, root * np.sin(0.03 * x[:, 0]))[0]
  np.testing.assert_allclose(expression.evaluate(line, x), 100 * root * (slope * x[:, 0] + offset))


@pytest.mark.parametrize(("text", "num"), [
  ("100*sin(0.3*x)*sqrt(z)", 0), ("2*sqrt(x) + x**2", 0), ("3*exp(0.001*x) + sin(0.02*z)", 2), ("x*sin(0.5) + z", 0),
  ("1/log(x - 5)", 0)])
def test_functions_that_bend_or_are_powers_or_numbers_stay(text, num, rng):
  assert len(lines_of(text, rng.uniform(1, 9, (50, 2)))) == num


def test_what_a_line_may_leave_is_a_share_of_the_variance():
  x = np.linspace(0, 1, 200)[:, None]
  values = np.exp(x[:, 0])
  design = np.column_stack([x[:, 0], np.ones(200)])
  rest = values - design @ np.linalg.lstsq(design, values)[0]
  left = np.var(rest) / np.var(values)
  assert [len(lines_of("exp(x)", x, share)) for share in (0.99 * left, 1.01 * left)] == [0, 1]


def judge_of(x, y):
  return select._Judge(rows_of(x, y), len(y), DEFAULT.selection, DEFAULT.choice)


def test_a_line_takes_the_place_of_a_wave_where_that_describes_the_rows_as_well(rng):
  x = rng.uniform(1, 9, (60, 2))
  noisy = 3 * x[:, 0] * np.sqrt(x[:, 1]) + rng.normal(size=60)
  found = select._straight(parse("100*sin(0.03*x)*sqrt(z)"), judge_of(x, noisy), lambda node: True)
  assert found and not any(part.token == "sin" for node in found for part in expression.walk(node))
  assert select._straight(parse("100*sin(0.03*x)*sqrt(z)"), judge_of(x, noisy), lambda node: False) == []
  exact = 100 * np.sin(0.03 * x[:, 0]) * np.sqrt(x[:, 1])
  assert select._straight(parse("100*sin(0.03*x)*sqrt(z)"), judge_of(x, exact), lambda node: True) == []
