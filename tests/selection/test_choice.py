"""The recommended line: not a bare mean where something predicts, nothing where noise would do, nothing odd."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser, printing
from symformer_jax.results import Equation
from symformer_jax.selection import between_rows, choice, frequencies, rounding, scoring, select as select_lib
from symformer_jax.selection.judge import Judge
from symformer_jax.sources import closed_forms

NAMES = ("x", "z")


def make_rows(function, *, num=22, noise=0.0, columns=1, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.uniform(1, 9, (num, columns))
  return Rows(x, function(*x.T) + noise * rng.normal(size=num), np.ones(num))


def make_lines(texts, rows):
  lines = []
  for text in texts:
    node = rounding.refit_constants(parser.parse(text, NAMES[: rows.x.shape[1]]), rows.x, rows.y, rows.weights)
    mse = scoring.score(scoring.evaluate(node, rows.x), rows.y).mse
    lines.append(choice.Line(node, expression.complexity(node), mse))
  return lines


def chosen(texts, rows, **config):
  return texts[choice.choose(make_lines(texts, rows), rows, num_points=len(rows), seed=0, **config)]


def test_a_slope_that_twenty_two_rows_tell_of_is_taken():
  rows = make_rows(lambda x: 0.4 * x, noise=0.9)  # R2 about .5: description length took the mean up to .69
  assert chosen(["1.5", "0.41*x + 0.12"], rows) == "0.41*x + 0.12"


def test_of_noise_the_constant_is_taken():
  lines = ["0.5", "0.5*x", "0.3*x + 1.2", "0.7*sin(1.3*x + 0.4) + 0.1"]
  taken = [chosen(lines, make_rows(lambda x: 0 * x, num=8, noise=1.0, seed=seed)) for seed in range(40)]
  # 5 % of 40 are 2; 5 would be two standard deviations more.
  assert sum(line != "0.5" for line in taken) < 5


def test_a_gain_is_measured_from_the_line_before_not_from_the_mean():
  rows = make_rows(lambda x: 0.4 * x + 1.3, noise=0.3, num=40)
  shorter, longer = make_lines(["0.41*x + 1.2", "0.41*x + 1.2 + 0.1*sin(7.3*x)"], rows)
  assert longer.mse < shorter.mse < 0.3 * np.var(rows.y)
  assert not choice.is_beyond_chance(longer, shorter, rows, num_points=len(rows))
  constant = choice.Line(expression.number(2.5), 1, float(np.mean((rows.y - 2.5) ** 2)))
  assert choice.is_beyond_chance(shorter, constant, rows, num_points=len(rows))


def test_a_column_in_an_exponent_needs_more_than_a_little_gain():
  rows = make_rows(lambda x, z: 3.2 * x + 1.1 * z, num=40, noise=0.8, columns=2)
  assert chosen(["0.9*x**(0.11*z)*z + 2.9*x", "3.1*x + 1.2*z"], rows) == "3.1*x + 1.2*z"
  power = make_rows(lambda x, z: x ** (0.3 * z), num=40, noise=0.01, columns=2)
  assert chosen(["x**(0.31*z)", "3.1*x + 1.2*z"], power) == "x**(0.31*z)"


@pytest.mark.parametrize("text, count", [
  ("x**z", 1), ("sin(x*z)", 1), ("sin(x)*z", 0), ("cos(x - z)*x**(z + 1)", 2), ("exp(x*z)", 0),
  ("x**12.5", 1), ("x**12", 0), ("x**5.1", 1), ("x**5.5", 0), ("x**(-4.87)", 0), ("cos(exp(2*x))", 1),
  ("sin(7*sqrt(x))", 1), ("sin(7*x**2)", 1), ("sin(7/x)", 1), ("sin(-4*x + 0.5)", 0), ("sin(4*(x - 3))", 0),
  ("x**(-12.5) + z", 1), ("exp(1.5*x)", 0), ("1.5**(20*x)", 0),
  # Rows see x from 1 to 3: two radians of it, one of sin(0.5*x + 1), seven of sin(3.5*x).
  ("sin(0.5*x + 1)", 1), ("sin(3.5*x)", 0), ("tan(1.4*x)", 1), ("tan(1.6*x)", 0), ("sin(x + 0.5)", 0),
  ("sin(2*x)", 0), ("sin(0.3*x*z)", 1)])
def test_oddities(text, count):
  x = np.column_stack([np.linspace(1, 3, 20), np.linspace(2, 4, 20)])
  assert choice.num_oddities(parser.parse(text, NAMES), x) == count


@pytest.mark.parametrize("text, is_line", [
  ("3*x + 2*z - 1", True), ("-x", True), ("x*z", False), ("2*x + sin(z)", False), ("4.0", True), ("x**2", False)])
def test_what_least_squares_fits(text, is_line):
  assert choice.is_linear(parser.parse(text, NAMES)) is is_line


def front_of(*pairs):
  return [Equation(parser.parse(text, NAMES), NAMES, 1 - r2, r2, None, ()) for text, r2 in pairs]


def test_the_simple_line_is_the_simplest_that_looks_the_same():
  front = front_of(("1.5", 0.0), ("2*x", 0.985), ("2*x + 1", 0.995), ("2*x + z**2*x", 0.9999))
  assert choice.simplest_good(front, front[3]) is front[2]
  assert choice.simplest_good(front, front[2]) is front[2]
  poor = front_of(("1.5", 0.0), ("2*x", 0.45), ("2*x + z**2*x", 0.6))
  assert choice.simplest_good(poor, poor[2]) is poor[1]
  alike = [SimpleNamespace(complexity=c, r2=r2) for c, r2 in ((1, 0.0), (5, 0.96), (5, 0.97))]
  assert choice.simplest_good(alike, alike[1]) is alike[1]  # as long is not simpler


# --- the whole selection ---------------------------------------------------------------------------------------


def select(texts, rows, **options):
  names = NAMES[: rows.x.shape[1]]
  nodes = [parser.parse(text, names) for text in texts]
  yardsticks = closed_forms.fit(rows, range(rows.x.shape[1]))
  return select_lib.select(nodes, rows, names, seed=0, yardsticks=yardsticks, **options)[:2]


def test_a_needle_between_rows_is_never_listed():
  rows = make_rows(lambda x: 2 * x, num=30, noise=0.3)
  at = float(np.sort(rows.x[:, 0])[7:9].mean())
  rows.y[np.argsort(rows.x[:, 0])[7]] += 3.0  # which the needle explains
  _, front = select([f"2*x + 0.1/(x - {at!r})", "2*x"], rows)
  assert not any("/" in line.expression for line in front)


def test_an_alias_is_listed_as_the_slow_wave_it_is():
  years = np.arange(1900.0, 1960.0)
  rows = Rows(years[:, None], 3 * np.sin(0.6 * years) + 0.1 * np.random.default_rng(0).normal(size=60), np.ones(60))
  best, _ = select([f"3*sin({0.6 + 2 * np.pi!r}*x)"], rows)
  [wave] = frequencies.waves(best.node)
  assert frequencies.turn(wave, between_rows.make_segments(rows)) == pytest.approx(0.6, abs=0.01)
  assert best.r2 > 0.99


def test_exact_data_are_chosen_by_description_length_whatever_the_formula():
  rows = make_rows(lambda x, z: x**z, columns=2, num=60)
  best, _ = select(["x**z", "0.5*x**z + 0.5*exp(z*log(x))", "100*x*z"], rows)
  assert printing.to_text(best.node, NAMES) == "x**z"
  pole = Rows(np.linspace(-2, 2, 30)[:, None], 1 / (np.linspace(-2, 2, 30) - 0.01), np.ones(30))
  assert select(["1/(x - 0.01)"], pole)[0].expression == "1/(x - 0.01)"


def test_lines_that_describe_the_data_worse_than_a_yardstick_are_not_listed():
  rows = make_rows(lambda x: 0 * x, num=40, noise=1.0)
  best, front = select(["x", "0.1*x**2", "sin(x)"], rows)
  assert not expression.has_column(best.node)
  assert {line.complexity for line in front} <= {1, 5, 6}  # the mean and the line


def test_numbers_of_selection_are_a_config():
  rows = make_rows(lambda x: 0.4 * x, noise=0.9)
  config = dataclasses.replace(DEFAULT.choice, noise_share=1e-12, line_share=1e-13)
  best, _ = select(["0.4*x"], rows, choice_config=config)
  assert not expression.has_column(best.node)


def test_where_one_row_is_most_of_the_variance_the_others_decide(rng):
  constant, good, fair = np.full(100, 1.0), rng.uniform(0, 0.1, 100), rng.uniform(0, 0.9, 100)
  good[0], fair[0] = 1e9, 1e9  # which no formula predicts from the others
  errors = [constant, fair, good, rng.uniform(0, 2, 100), np.full(100, np.inf)]
  assert choice._nearer_to_most(errors, [1, 2, 3, 4], 0, DEFAULT.choice) == 2
  assert choice._nearer_to_most(errors, [3, 4], 0, DEFAULT.choice) == 0  # a coin would do as well
  assert choice._nearer_to_most([e[:10] for e in errors], [2], 0, DEFAULT.choice) == 0  # nine of ten rows may be chance


@pytest.mark.parametrize(("selection", "place"), [
  ("recommended", 2), ("accurate", 3), ("simple", 1), (0, 0), ("3", 3), (-1, 3), (np.int64(2), 2)])
def test_the_line_that_a_user_takes(selection, place):
  figures = (1, 0.0), (3, 0.994), (9, 0.995), (20, 0.996)
  front = [SimpleNamespace(complexity=c, r2=r2, mse=1 - r2) for c, r2 in figures]
  assert choice.pick(front, front[2], selection, argument="--select") is front[place]


@pytest.mark.parametrize(("selection", "message"), [
  ("acurate", "--select: unknown choice 'acurate', .* did you mean 'accurate'?"),
  ("best of all", "--select: unknown choice 'best of all', .* expected one of recommended, accurate, simple"),
  ("", "--select: unknown choice ''"), (True, "--select: unknown choice True"), (1.5, "--select: unknown choice 1.5"),
  ("9" * 5000, "--select: unknown choice '9+...9+', a number of the front or a word"),
  (None, "--select: unknown choice None"), (2, "--select: expected a line of the front, 0 to 1, got 2"),
  ("7", "0 to 1, got 7"), (-3, "0 to 1, got -3"),
])
def test_a_choice_that_is_none_is_refused(selection, message):
  front = [SimpleNamespace(complexity=c, r2=0.5, mse=0.5) for c in (1, 3)]
  with pytest.raises(InputError, match=message):
    choice.pick(front, front[0], selection, argument="--select")


@pytest.mark.parametrize("shares, expected", [
  ((0.15, 0.30, 0.2), 0), ((0.2, 0.30, 0.2), 0),  # as good as the straight line, the third
  ((0.25, 0.30, 0.1), 2), ((0.25, 0.1, 0.1), 1),  # the second is the shorter description of those that predict as well
  ((0.202, 0.30, 0.2), 0), ((0.25, 0.202, 0.2), 1),  # worse by less than anybody would mind
  ((0.25, 0.01, np.inf), 0)])  # a line that is undefined on a fold says nothing
def test_nothing_is_taken_that_predicts_worse_than_a_straight_line(shares, expected):
  texts = ["7.8*x", "0.14*sqrt(z)*x", "6.1*x + 0.011*z - 7.4"]
  lines = [choice.Line(parser.parse(text, NAMES), 3 * i, share) for i, (text, share) in
           enumerate(zip(texts, shares, strict=True), start=1)]
  gains = [14.0, 12.0, 10.0]
  assert choice._not_below_least_squares(lines, shares, gains, 0, DEFAULT.choice) == expected


def test_a_second_column_that_rows_not_seen_tell_of_is_not_left_out(monkeypatch):
  """Few rows, of which one is far off: what it costs in description hides what the second column is worth."""
  rng = np.random.default_rng(25)
  x = np.column_stack([rng.uniform(2, 16, 26), rng.uniform(300, 7500, 26)])
  y = 6 * x[:, 0] + 0.011 * x[:, 1] + 12 * rng.standard_t(3, 26)
  rows = Rows(x, y, np.ones(26))
  texts = ["60.0", "8.1*x", "6*x + 0.011*z + 1.3"]
  lines = make_lines(texts, rows)
  monkeypatch.setattr(choice, "is_linear", lambda node: False)
  assert choice.choose(lines, rows, num_points=26, seed=0) == 1
  monkeypatch.undo()
  assert choice.choose(lines, rows, num_points=26, seed=0) == 2


def test_many_rows_do_not_pay_for_a_wave_of_several_columns_that_explains_little():
  rows = make_rows(lambda x, z: 2.1 * x + 0.7 * np.cos(3 * x * z), num=600, noise=1.0, columns=2)
  lines = make_lines(["1.1*x", "2.1*x + 0.7*cos(3*x*z)"], rows)
  config = dataclasses.replace(DEFAULT.choice, odd_gain=1.0)
  assert choice.choose(lines, rows, num_points=600, seed=0, config=config) == 1
  assert choice.choose(lines, rows, num_points=600, seed=0) == 0
  clear = make_rows(lambda x, z: 2.1 * x + 4 * np.cos(3 * x * z), num=600, noise=1.0, columns=2)
  assert chosen(["1.1*x", "2.1*x + 4.1*cos(3*x*z)"], clear) == "2.1*x + 4.1*cos(3*x*z)"


def test_a_pole_between_rows_must_matter():
  """Rows on both sides tell of it, but of those that were not seen it explains little."""
  x = np.linspace(1, 9, 300)
  noise = np.random.default_rng(0).normal(size=300)
  texts = ["2.1*x", "0.31/(x - 5) + 2*x"]
  weak, clear = (Rows(x[:, None], size / (x - 5) + 2 * x + noise, np.ones(300)) for size in (0.1, 1.0))
  config = dataclasses.replace(DEFAULT.choice, odd_gain=1.0)
  assert choice.choose(make_lines(texts, weak), weak, num_points=300, seed=0, config=config) == 1
  assert chosen(texts, weak) == "2.1*x" and chosen(texts, clear) == texts[1]


@pytest.mark.parametrize("text, nats", [
  ("exp(x) + sin(z)", 0.0), ("arctan(x)", 2.2), ("tan(arcsin(x)) + arctan(z)*x", 1.6 + 1.8 + 2.2 + 2.3),
  ("arccos(x)*cot(z)", 2.2 + 1.6)])
def test_functions_that_formulas_seldom_have_cost_more(text, nats):
  assert choice.function_nats(parser.parse(text, NAMES)) == pytest.approx(nats)
  none = dataclasses.replace(DEFAULT.choice, function_nats=(), nested_nats=0.0)
  assert choice.function_nats(parser.parse(text, NAMES), config=none) == 0.0


@pytest.mark.parametrize("text, num", [
  ("exp(-0.3*x)*sin(z)", 0), ("exp(-sin(0.4*x))", 1), ("exp(2*log(x)**2 + 1)", 1), ("sin(x*cos(exp(z)))", 2),
  ("exp(sin(x) + cos(z))", 2), ("sqrt(exp(x))**3 + 1/cos(z)", 0), ("exp(x*log(2.5))", 0)])
def test_functions_of_functions_cost_more(text, num):
  node = parser.parse(text, NAMES)
  assert choice.num_nested(node) == num
  assert choice.function_nats(node) == pytest.approx(2.3 * num)
  assert choice.function_nats(node, config=dataclasses.replace(DEFAULT.choice, nested_nats=1.0)) == pytest.approx(num)


def test_the_price_of_a_function_is_part_of_the_description_length():
  rows = make_rows(lambda x: np.arctan(0.3 * x), noise=0.1)
  prices = (("atan", 5.0),)
  node = parser.parse("arctan(0.3*x)", NAMES)

  def cost(**changes):
    config = dataclasses.replace(DEFAULT.choice, **changes)
    return Judge(rows, len(rows), DEFAULT.selection, config).cost_of(node)
  assert cost(function_nats=prices) == pytest.approx(cost(function_nats=()) + 5)
  assert cost() == pytest.approx(cost(function_nats=()) + choice.function_nats(node))


def test_of_two_bends_that_are_as_near_the_common_function_is_taken():
  """What is longer and cheaper need not be beyond chance; without the prices it is not taken."""
  rng = np.random.default_rng(2)
  x = rng.uniform(0.1, 20, 25)
  y = 4.75 - 4 * np.exp(-0.313 * x)
  rows = Rows(x[:, None], y * (1 + 0.04 * rng.normal(size=25)), np.ones(25))
  texts = ["4.16*sqrt(arctan(0.227*x))", "4.75 - 4*exp(-0.313*x)"]
  assert chosen(texts, rows) == texts[1]
  assert chosen(texts, rows, config=dataclasses.replace(DEFAULT.choice, function_nats=())) == texts[0]


def test_two_waves_that_noise_sets_apart_are_the_one_with_a_phase():
  time = np.linspace(0, 10, 60)
  y = 2.5 * np.exp(-0.3 * time) * np.cos(2.1 * time + 0.4) + 0.7
  rows = Rows(time[:, None], y + 0.05 * y.std() * np.random.default_rng(1).normal(size=60), np.ones(60))
  best, _ = select(["2.34*cos(2.13*x)*exp(-0.27*x) - exp(-0.36*x)*sin(2.21*x) + 0.7"], rows)
  [wave] = frequencies.waves(best.node)
  assert best.r2 > 0.99 and best.complexity <= 16
  np.testing.assert_allclose(sorted(abs(c.value) for c in best.constants), [0.3, 0.4, 0.7, 2.1, 2.5], rtol=0.15)


def test_an_evenly_spaced_decay_is_an_exponential():
  """Its steep beginning is no block that the rest has to tell."""
  rng, x = np.random.default_rng(13), np.linspace(0, 5, 40)
  scale, rate, offset = rng.uniform(3, 6), rng.uniform(0.4, 0.9), rng.uniform(0.8, 2.2)
  rows = Rows(x[:, None], scale * np.exp(-rate * x) + offset + 0.03 * rng.normal(size=40), np.ones(40))
  lines = ["2.4", "5.5 - 0.9*x", "7.5 - 4*arctan(x)", "5.6*exp(-0.8*x) + 1.9", "exp(24*exp(-0.035*x) - 22.3) + 1.9"]
  config = dataclasses.replace(DEFAULT.choice, blocks_per_fold=1)
  assert chosen(lines, rows, config=config) != lines[3]
  assert chosen(lines, rows) == lines[3]


def test_constants_that_the_rows_do_not_tell_from_nothing():
  x = np.linspace(0, 10, 50)[:, None]
  y = 10 / (1 + np.exp(-(x[:, 0] - 4) / 0.6)) + 0.1 * np.random.default_rng(1).normal(size=50)
  rows = Rows(x, y, np.ones(50))
  known, vague = make_lines(["9.9/(811*exp(-1.67*x) + 1)", "30*(exp(-11.3*x) + 2.7e-22)**(-0.005) - 30.5"], rows)
  assert choice.num_vague(known.node, rows) == 0
  assert choice.num_vague(vague.node, rows) >= 3
  assert choice.num_vague(vague.node, Rows(x[:5], y[:5], np.ones(5))) == 0  # of so few rows nothing has an error
  strict = dataclasses.replace(DEFAULT.choice, vague_errors=1e9)
  assert choice.num_vague(known.node, rows, config=strict) == 3


def test_a_vague_constant_needs_more_than_it_gains():
  rows = make_rows(lambda x: 2.1 * x, num=60, noise=1.0)
  lines = make_lines(["2.1*x", "2.1*x + 0.02"], rows)
  contest = [choice._Contest(lines, rows, 60, 0, config, between_rows.make_segments(rows, config=config))
             for config in (DEFAULT.choice, dataclasses.replace(DEFAULT.choice, vague_nats=0.0))]
  assert contest[1].gain(1, 0) - contest[0].gain(1, 0) == pytest.approx(3.0)
