"""Which line is recommended where two answers differ by little: the order of lines, what is handed on, exact limits."""

import dataclasses
import math

from hand_made_rows import parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, programs
from symformer_jax.selection import choice, cross_validation, rounding, soundness

CONFIG = DEFAULT.choice


def chosen(monkeypatch, front, shares, *, lengths, beyond, config=CONFIG):
  """`choose` on shares of variance that rows not seen leave, and lengths and chances that are given."""
  rows = rows_of(np.arange(8.0).reshape(4, 2), [-1.0, 1.0, -1.0, 1.0])  # of variance 1
  found = iter(shares)
  monkeypatch.setattr(cross_validation, "squared_errors", lambda node, rows, folds: np.full(4, next(found)))
  lines = [choice.Line(parse(text), expression.complexity(parse(text)), 0.5) for text in front]
  monkeypatch.setattr(choice._Contest, "gain", lambda contest, i, base: lengths[base] - lengths[i])
  monkeypatch.setattr(choice, "is_beyond_chance", lambda line, base, *rest, **named: (
    front[lines.index(line)], front[lines.index(base)]) in beyond)
  return front[choice.choose(lines, rows, num_points=4, seed=0, config=config)]


def test_a_long_line_that_comes_first_is_measured_by_the_shorter_ones(monkeypatch):
  given = {"shares": (0.3, 1.0, 0.4), "lengths": (3.0, 5.0, 4.0)}
  front = ("x*z", "1.5", "x")
  assert chosen(monkeypatch, front, **given, beyond={("x", "1.5"), ("x*z", "1.5")}) == "x"
  assert chosen(monkeypatch, front, **given, beyond={("x", "1.5"), ("x*z", "x")}) == "x*z"


def test_an_r2_of_just_what_is_worthwhile_is_not_above_it(monkeypatch):
  monkeypatch.setattr(choice, "_nearer_to_most", lambda errors, among, best, config: best)
  given = {"front": ("1.5", "x"), "shares": (1.0, 0.5), "lengths": (5.0, 6.0), "beyond": {("x", "1.5")}}
  assert chosen(monkeypatch, **given, config=dataclasses.replace(CONFIG, worthwhile_r2=0.5)) == "1.5"
  assert chosen(monkeypatch, **given, config=dataclasses.replace(CONFIG, worthwhile_r2=0.49)) == "x"


def test_segments_are_made_as_the_config_says_where_none_are_given(monkeypatch):
  config, asked = dataclasses.replace(CONFIG, points_between=3), []
  real = soundness.make_segments
  monkeypatch.setattr(soundness, "make_segments", lambda rows, **named: asked.append(named) or real(rows, **named))
  assert chosen(monkeypatch, ("1.5",), (1.0,), lengths=(5.0,), beyond=set(), config=config) == "1.5"
  assert asked == [{"config": config}]


def test_what_two_lines_are_worth_goes_by_the_weights_of_rows():
  contest, rng = object.__new__(choice._Contest), np.random.default_rng(3)
  contest._rows, contest._num_points, contest._config, contest._variance = np.zeros(50), 0.0, CONFIG, 1.0
  contest.weights = rng.uniform(0.1, 9, 50)
  contest.errors = [rng.normal(size=50) ** 2, 0.6 * rng.normal(size=50) ** 2]
  first, second = (np.average(errors, weights=contest.weights) for errors in contest.errors)
  contest.shares = [first, second]
  spread = np.average((contest.errors[0] / first - contest.errors[1] / second) ** 2, weights=contest.weights)
  expected = 50 * 4 * math.log(first / second) / spread
  assert expected < 50
  assert contest.num_points(1, 0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("shares", "expected"), [
  ((0.5, 0.75, 0.7), 1), ((0.5, 0.76, 0.75), 2), ((0.5, 0.76, 0.76), 0)])
def test_just_the_room_beside_a_straight_line_is_not_clearly_worse(shares, expected):
  lines = [choice.Line(parse(text), 3, 0.5) for text in ("2*x", "sin(x)", "sin(z)")]
  config = dataclasses.replace(CONFIG, line_room=0.25)
  assert choice._not_below_least_squares(lines, shares, [1.0, 8.0, 9.0], 1, config) == expected


def test_the_best_that_others_are_compared_with_is_the_one_of_least_error():
  errors = [np.array([8.9, 9.0, 9.1]), np.array([0.9, 1.0, 1.1]), np.array([2.9, 3.0, 3.1])]
  assert cross_validation.simplest_within_one_error(errors, [1, 5, 3], np.ones(3)) == 1


def test_an_error_that_no_double_holds_when_squared_is_infinite():
  rows = rows_of([1.0, 2.0, 3.0, 4.0, 5.0, 400.0], np.ones(6))  # exp(400) is 5e173
  found = cross_validation.squared_errors(parse("exp(x)"), rows, np.arange(6) // 2)
  np.testing.assert_allclose(found, [*(np.exp(np.arange(1.0, 6)) - 1) ** 2, np.inf])


@pytest.mark.parametrize(("num_refits", "slope"), [(0, 1.5), (1, 3.25)])
def test_constants_are_fitted_again_in_as_many_steps_as_the_config_says(num_refits, slope):
  config = dataclasses.replace(DEFAULT.selection, num_refits=num_refits)
  x = np.arange(1.0, 9)[:, None]
  found = rounding.refit_constants(parse("1.5*x"), x, 3.25 * x[:, 0], np.ones(8), config=config)
  assert programs.fitted_values(found) == pytest.approx([slope], rel=1e-12)


def test_small_columns_have_a_direction_of_their_own_and_columns_of_zeros_any():
  assert rounding._null_direction(np.array([[1e-10, 0.0], [0.0, 1.0], [0.0, 0.0]])) is None
  assert abs(rounding._null_direction(np.zeros((3, 1)))).tolist() == [1]
  assert abs(rounding._null_direction(np.array([[1.0, 0.0]]))).tolist() == [0, 1]  # fewer rows than columns
