"""What lines of a front cost, which constants are vague, and which straight line a constant gives way to."""

import dataclasses
import math
from types import SimpleNamespace

from hand_made_rows import parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.selection import between_rows, choice, cross_validation, frequencies, noise, rounding

CONFIG = DEFAULT.choice
X = np.arange(1.0, 13).reshape(6, 2)


def line(text, mse=0.5):
  return choice.Line(parse(text), expression.complexity(parse(text)), mse)


@pytest.mark.parametrize(("shares", "expected"), [
  ((1.0, 0.97, 0.95), "3*z"), ((1.0, 0.95, 0.97), "2*x"), ((1.0, 1.0, 0.97), "3*z"), ((1.0, 1.0, 1.0), "1.5")])
def test_a_constant_gives_way_to_the_straight_line_that_predicts_better(shares, expected, monkeypatch):
  texts, found = ("1.5", "2*x", "3*z"), iter(shares)
  rows = rows_of(X, [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])  # of variance 1
  monkeypatch.setattr(cross_validation, "squared_errors", lambda *given: np.full(6, next(found)))
  monkeypatch.setattr(choice._Contest, "gain", lambda contest, i, base: -1.0)
  monkeypatch.setattr(choice._Contest, "is_beyond_chance", lambda contest, i, base: i > 0)
  assert texts[choice.choose(list(map(line, texts)), rows, num_points=6, seed=0)] == expected


def test_a_line_costs_what_its_nodes_functions_vague_constants_frequencies_and_names_do(monkeypatch):
  monkeypatch.setattr(choice, "function_nats", lambda node, *, config: 5.0)
  monkeypatch.setattr(choice, "num_vague", lambda node, rows, *, config: 2)
  monkeypatch.setattr(frequencies, "log_frequencies", lambda node, x, *, config: 0.7)
  monkeypatch.setattr(cross_validation, "squared_errors", lambda *given: np.ones(6))
  rows = rows_of(X, X[:, 0])
  contest = choice._Contest([line("x*z + x")], rows, 6, 0, CONFIG, between_rows.make_segments(rows))
  num_nodes = expression.complexity(parse("x*z + x"))
  assert contest._costs == [pytest.approx(num_nodes + 5 + 3 * 2 + 2 * 0.7 + 3 * math.log(2))]


def test_a_formula_that_predicts_no_better_gives_way_to_a_straight_line_though_it_is_shorter():
  contest = SimpleNamespace(shares=[0.2, 0.2], errors=[np.ones(9)] * 2, weights=np.ones(9))
  lines = [line("2*x"), line("sin(x)")]
  assert choice._or_straight_line(contest, lines, 1, num_rows=99, config=CONFIG) == 0
  contest.shares = [0.2, 0.19]
  assert choice._or_straight_line(contest, lines, 1, num_rows=99, config=CONFIG) == 1


def test_waves_are_scattered_as_the_config_says(monkeypatch):
  monkeypatch.setattr(frequencies, "is_scattered", lambda wave, x, *, config: True)
  assert choice.num_oddities(parse("sin(x)"), np.linspace(0, 9, 60)[:, None], config=CONFIG) == 1


@pytest.mark.parametrize(("num_rows", "num"), [(2, 0), (3, 1)])
def test_constants_are_vague_of_which_there_are_two_fewer_than_rows(num_rows, num, monkeypatch):
  asked = []
  monkeypatch.setattr(rounding, "standard_errors", lambda *given, holds_form: asked.append(holds_form) or [None])
  assert choice.num_vague(parse("1.5*x"), rows_of(np.arange(1.0, 1 + num_rows), np.ones(num_rows))) == num
  assert asked == [True] * num


@pytest.mark.parametrize(("error", "num"), [(0.75, 0), (0.7500001, 1)])
def test_a_constant_at_just_two_standard_errors_is_not_vague(error, num, monkeypatch):
  monkeypatch.setattr(rounding, "standard_errors", lambda *given, **named: [error])
  assert choice.num_vague(parse("1.5*x"), rows_of(X, X[:, 0])) == num


def test_frequencies_that_a_wave_was_chosen_from_are_those_of_the_config(monkeypatch):
  asked = []
  monkeypatch.setattr(frequencies, "log_frequencies", lambda node, x, *, config: 0.7)
  monkeypatch.setattr(noise, "is_beyond_chance", lambda **named: asked.append(named["log_frequencies"]) or True)
  assert choice.is_beyond_chance(line("sin(x)"), line("1.5"), rows_of(X, X[:, 0]), num_points=6, config=CONFIG)
  assert asked == [0.7]


# --- what rows tell of waves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_first", "num_last", "is_scattered"), [(4, 4, False), (3, 9, True), (9, 3, True)])
def test_before_and_behind_gaps_of_half_a_turn_a_wave_has_four_rows(num_first, num_last, is_scattered):
  x = np.concatenate([np.arange(num_first), 20 + np.arange(9.0), 40 + np.arange(num_last)])
  assert frequencies.is_scattered(parse("sin(x)"), x[:, None]) is is_scattered


@pytest.mark.parametrize(("half_turns", "expected"), [(0.9, 0.0), (1.5, math.log(1.5)), (3.0, math.log(3))])
def test_of_a_wave_there_is_one_frequency_for_each_half_turn_and_itself(half_turns, expected):
  config = dataclasses.replace(CONFIG, phase_edges=0.0)
  x = np.linspace(0, half_turns * math.pi, 60)[:, None]
  assert frequencies.log_frequencies(parse("sin(x)"), x, config=config) == pytest.approx(expected)


def test_a_step_over_missing_rows_may_be_as_much_longer():
  for last, is_even in ((4.029, True), (4.031, False)):
    found = frequencies.even_step(np.array([[0.0], [1.0], [last]]))
    assert found == (1.0 if is_even else None)


def test_a_wave_of_just_half_a_period_a_row_is_as_slow_as_it_can_be():
  wave = parse(f"sin({math.pi!r}*x + 0.5)")
  assert frequencies._slowed(wave, 0.0, 1.0, 2 * math.pi) is wave


JUST_HALF = CONFIG.half_turn * (1 + 1e-6)


def test_just_half_a_turn_but_for_rounding_is_no_alias_and_no_gap(monkeypatch):
  for more, is_gap in ((0.0, False), (1.5e-6 * math.pi, True)):
    x = np.append(0.0, JUST_HALF + more + np.arange(9.0))
    assert frequencies.is_scattered(parse("sin(x)"), x[:, None]) is is_gap
  monkeypatch.setattr(frequencies, "turn", lambda wave, segments, *, config: JUST_HALF)
  assert not frequencies.is_alias(parse("sin(x)"), None)


def test_what_goes_through_just_two_turns_may_be_an_angle():
  x = 2 * math.pi * CONFIG.angle_turns - np.linspace(0.5, 0, 9)
  assert not frequencies.is_arc(parse("sin(x)"), x[:, None])
  assert frequencies.is_arc(parse("sin(x)"), np.nextafter(x, np.inf)[:, None])
