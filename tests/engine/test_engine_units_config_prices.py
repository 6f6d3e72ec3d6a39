"""What the default config says of waves, of prices of functions and constants, and of what is asked of few rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import parse

from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.selection import between_rows, choice, cross_validation, frequencies, rounding

CONFIG = DEFAULT.choice


def test_the_part_of_the_default_is_that_of_no_arguments():
  assert ChoiceConfig() == CONFIG


def rows_of(x, y=None):
  x = np.asarray(x, float)
  x = x[:, None] if x.ndim == 1 else x
  return Rows(x, np.arange(float(len(x))) if y is None else np.asarray(y, float), np.ones(len(x)))


@pytest.mark.parametrize(("num_first", "is_scattered"), [(4, False), (3, True)])
def test_before_a_gap_in_a_wave_four_rows_are_asked_for(num_first, is_scattered):
  x = np.append(np.arange(num_first), 20 + np.arange(9.0))
  for column in (x, -x):
    assert frequencies.is_scattered(parse("sin(x)"), column[:, None]) is is_scattered


@pytest.mark.parametrize(("largest", "is_arc"), [(4 * np.pi - 0.01, False), (4 * np.pi + 0.01, True)])
def test_what_goes_through_two_turns_may_be_an_angle(largest, is_arc):
  x = largest - np.linspace(0, 0.5, 9)
  assert frequencies.is_arc(parse("sin(x)"), x[:, None]) is is_arc


@pytest.mark.parametrize(("token", "nats"), [
  ("ln", 0.0), ("exp", 0.0), ("sin", 0.0), ("cos", 0.0), ("tan", 1.6), ("cot", 1.6), ("asin", 1.8), ("acos", 2.2),
  ("atan", 2.2), ("acot", 2.2)])
def test_functions_that_formulas_seldom_have_cost_more(token, nats):
  assert choice.function_nats(expression.Node(token, (parse("x"),))) == pytest.approx(nats)


@pytest.mark.parametrize(("error", "num"), [(0.76, 1), (0.74, 0), (None, 1)])
def test_a_constant_within_two_standard_errors_of_nothing_is_vague(error, num, monkeypatch):
  monkeypatch.setattr(rounding, "standard_errors", lambda *given, **named: [error])
  assert choice.num_vague(parse("1.5*x"), rows_of(np.arange(1.0, 10))) == num


def test_a_vague_constant_costs_three_nats(monkeypatch):
  rows = rows_of(np.arange(1.0, 10))
  monkeypatch.setattr(choice, "num_vague", lambda node, *given, **named: int(node == parse("1.5*x")))
  monkeypatch.setattr(cross_validation, "squared_errors", lambda *given: np.ones(9))
  lines = [choice.Line(parse(text), 3, 0.5) for text in ("1.5*x", "2.5*x")]
  contest = choice._Contest(lines, rows, 9, 0, CONFIG, between_rows.make_segments(rows))
  assert contest._costs[0] - contest._costs[1] == pytest.approx(3)


def test_of_a_series_each_fold_has_four_blocks():
  folds = cross_validation.draw_folds(rows_of(np.arange(100.0)), 5, seed=0)
  assert np.sum(np.diff(folds) != 0) == 5 * 4 - 1


@pytest.mark.parametrize(("num_rows", "is_line"), [(30, True), (29, False)])
def test_a_straight_line_has_ten_rows_for_each_coefficient(num_rows, is_line):
  lines = [choice.Line(parse(text), 3, 0.5) for text in ("2.5*x + 1.5*z + 0.5", "sin(x)*z")]
  contest = SimpleNamespace(shares=[0.1, 0.2], errors=[np.ones(9), 2 * np.ones(9)], weights=np.ones(9))
  found = choice._or_straight_line(contest, lines, 1, num_rows=num_rows, config=CONFIG)
  assert (found == 0) is is_line
