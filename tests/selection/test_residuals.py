"""What residuals of a fit by plain squares tell of the loss, and how seldom those of normal errors tell anything."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from symformer_jax import conclusion, inference, testing
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser
from symformer_jax.results import Equation
from symformer_jax.selection import residuals
from symformer_jax.selection.residuals import Residuals

CONFIG = DEFAULT.hints


def look(text, x, y, **options):
  return residuals.look([parser.parse(text, ["x"])], Rows(x[:, None], y, np.ones(len(y))), **options)


def curve(rng, num_far, *, num_rows=60):
  """A decay with small errors, some rows far off."""
  x = np.linspace(0, 5, num_rows)
  y = 4 * np.exp(-0.6 * x) + 1 + 0.03 * rng.normal(size=num_rows)
  far = rng.choice(num_rows, num_far, replace=False)
  y[far] += np.resize([1, -1], num_far) * rng.uniform(1, 20, num_far)
  return x, y


@pytest.mark.parametrize("num_far", [1, 6, 12])
def test_few_rows_far_from_all_others_are_counted(num_far, rng):
  assert look("4*exp(-0.6*x) + 1", *curve(rng, num_far)) == Residuals(60, num_far, False)


def test_of_more_than_a_fifth_nobody_knows_which_are_the_rule(rng):
  assert look("4*exp(-0.6*x) + 1", *curve(rng, 13)) == Residuals(60, 0, False)


def test_a_peak_that_a_formula_misses_is_no_outlier(rng):
  x = np.linspace(0, 10, 80)
  y = 1 + 0.1 * x + 0.05 * rng.normal(size=80)
  peak = y + 8 * np.exp(-((x - 4) ** 2) / 0.05)
  assert look("1 + 0.1*x", x, peak).num_far == 0
  scattered = y + np.where(np.arange(80) % 13 == 5, 8, 0)
  assert look("1 + 0.1*x", x, scattered).num_far == 6


def test_where_most_y_are_equal_the_others_are_no_outliers():
  y = np.zeros(40)
  y[::9] = 1
  assert look("0.1*x", np.linspace(0, 1e-3, 40), y).num_far == 0


@pytest.mark.parametrize("num_rows", [40, 60, 200])
def test_where_errors_grow_the_largest_are_no_outliers(num_rows, rng):
  x = 10 ** rng.uniform(-4, 4, num_rows)
  y = 3.2e-3 * x**0.75 * (1 + 0.05 * rng.normal(size=num_rows))
  assert look("0.0032*x**0.75", x, y) == Residuals(num_rows, 0, True)


def test_rows_of_few_large_predictions_are_compared_with_their_like(rng):
  x = rng.permutation(np.concatenate([rng.uniform(1, 2, 180), rng.uniform(50, 60, 20)]))
  errors = 0.05 * x * rng.uniform(-1, 1, 200)
  assert residuals.count_far(errors, x, rng.uniform(size=(200, 1))) == 0
  errors[np.argmax(x)] = 60.0
  assert residuals.count_far(errors, x, rng.uniform(size=(200, 1))) == 1


def test_counts_over_a_decade_grow_though_their_sizes_alone_may_be_chance():
  times = np.linspace(0, 590, 60)
  law = 640 * np.exp(-0.0047 * times)
  told = alone = 0
  for seed in range(40):
    errors = np.random.default_rng(seed).poisson(law) - law
    told += residuals.are_growing(errors, law, times[:, None])
    alone += residuals._correlation(np.abs(errors), law) > residuals._deviations(CONFIG.chance)
  assert told >= 15 and alone <= 10, (told, alone)


def masses(rng):
  x = 10 ** rng.uniform(-2.3, 3.5, 200)
  return x, 3.4 * x**0.75


def test_small_values_over_decades_that_a_formula_misses_are_told(rng):
  x, law = masses(rng)
  y = law * np.exp(0.28 * rng.standard_normal(200))
  for sign in (1, -1):
    found = look(f"{957 * sign} - {950 * sign}*exp(-0.00092*x)", x, sign * y)
    assert 4 < found.decades < 5.5 and found.texts == [
      f"y spans {found.decades:.1f} decades, and the formula misses the small values: --loss=log or --loss=auto (in "
      "Python loss='log' or 'auto') lets them count"]
  assert look("3.4*x**0.75", x, y).decades == 0  # off by 28 %, not by more than the values
  y[0] = -0.1
  assert look("957 - 950*exp(-0.00092*x)", x, y).decades == 0  # of two signs


def test_within_three_decades_and_of_few_small_rows_nothing_is_missed(rng):
  x = np.linspace(1, 30, 200)
  assert look("30 - 20*exp(-0.1*x)", x, x**2).decades == 0
  x, law = masses(rng)
  some = np.sort(x)[-20:]
  wide = np.concatenate([np.sort(x)[:9], some])
  missed = look("957 - 950*exp(-0.00092*x)", wide, 3.4 * wide**0.75)
  assert np.ptp(np.log10(wide)) > 4 and missed.decades == 0


def test_exact_data_and_noise_of_the_range_over_decades_miss_nothing():
  for seed in range(200):
    rng = np.random.default_rng(seed)
    x, law = masses(rng)
    assert look("3.4*x**0.75", x, law).decades == 0
    noisy = np.abs(law + 0.02 * np.ptp(law) * rng.standard_normal(200))  # of one sign, small rows are noise alone
    assert look("3.4*x**0.75", x, noisy).decades == 0


def test_within_a_decade_weights_by_size_would_change_little(rng):
  x = np.linspace(1, 5, 400)
  assert not look("2*x", x, 2 * x * (1 + 0.05 * rng.normal(size=400))).is_growing
  wide = np.linspace(0.1, 5, 400)
  assert look("2*x", wide, 2 * wide * (1 + 0.05 * rng.normal(size=400))).is_growing


def test_what_a_formula_misses_where_it_is_large_is_no_growth(rng):
  x = np.linspace(1, 10, 400)
  values = np.exp(0.4 * x)
  errors = 0.2 * values * np.sin(x) + rng.normal(size=400)
  assert residuals._correlation(np.abs(errors), values) > residuals._deviations(CONFIG.chance)
  assert not residuals.are_growing(errors, values, x[:, None])


def test_a_line_for_a_law_that_is_none_leaves_no_noise(rng):
  x = np.linspace(0.5, 8, 120)
  y = 50 / x**2 + 0.3 * rng.normal(size=120)
  slope, constant = np.polyfit(x, y, 1)
  values = slope * x + constant
  assert residuals.are_growing(y - values, values, x[:, None])
  assert look(f"{constant} + {slope}*x", x, y) == Residuals(120)


def test_noise_is_asked_for_in_errors_by_their_weights(monkeypatch):
  asked = []
  monkeypatch.setattr(residuals.losses, "settle", lambda loss, node, rows: (
    parser.parse("x", ["x"]), np.array([4.0, 9.0, 1.0])))
  monkeypatch.setattr(residuals.noise, "looks_like_noise", lambda errors, x, columns, **named: asked.append(
    errors.tolist()))
  residuals._is_noise(parser.parse("2*x", ["x"]), Rows(np.array([[1.0], [2], [3]]), np.array([2.0, 2, 5]), np.ones(3)))
  assert asked == [[2, 0, 2]]


def test_what_rises_towards_the_far_row_is_a_pole(rng):
  x = np.linspace(0.1, 8, 120)
  y = 1 + 0.1 * x + 0.05 * rng.normal(size=120)
  y[:4] += [4, 0.25, 0.2, 0.15]
  assert look("1 + 0.1*x", x, y).num_far == 0
  y[1:4] -= [0.25, 0.2, 0.15]
  assert look("1 + 0.1*x", x, y).num_far == 1


def test_the_rank_correlation_is_that_of_spearman(rng):
  first = rng.integers(0, 9, 50)
  second = first + rng.integers(0, 9, 50)
  expected = stats.spearmanr(first, second).statistic * np.sqrt(49)
  assert residuals._correlation(first, second) == pytest.approx(expected)
  assert residuals._correlation(np.ones(5), np.arange(5)) == 0


@pytest.mark.parametrize("num_rows, degree", [(20, 0), (20, 3), (50, 1), (100, 2), (200, 0)])
def test_normal_errors_tell_nothing(num_rows, degree):
  rng = np.random.default_rng(num_rows + degree)
  num_told = 0
  for _ in range(200):
    x = np.sort(rng.uniform(0.1, 10, num_rows))
    y = np.polyval(np.ones(degree + 1), x) + rng.normal(size=num_rows)
    values = np.polyval(np.polyfit(x, y, degree), x)
    far = residuals.count_far(y - values, values, x[:, None], num_constants=degree + 1)
    num_told += far > 0 or residuals.are_growing(y - values, values, x[:, None])
  assert num_told <= 4  # of 200: a share of 2 %


def test_exact_data_and_those_of_few_digits_tell_nothing(rng):
  x = 10 ** rng.uniform(-4, 4, 60)
  assert look("0.0032*x**0.75", x, 0.0032 * x**0.75).texts == []
  rounded = np.array([float(f"{value:.4g}") for value in 0.0032 * x**0.75])
  assert look("0.0032*x**0.75", x, rounded).texts == []


def test_few_rows_weights_and_what_is_undefined_tell_nothing(rng):
  x, y = curve(rng, 2, num_rows=19)
  assert look("4*exp(-0.6*x) + 1", x, y) == Residuals(19)
  x, y = curve(rng, 6)
  node = parser.parse("4*exp(-0.6*x) + 1", ["x"])
  weighted = Rows(x[:, None], y, np.where(np.arange(60) % 2, 1.0, 2.0))
  assert residuals.look([node], weighted) == Residuals()
  assert look("log(x - 1)", x, y) == Residuals(60)


def test_of_many_rows_a_sample_is_looked_at(rng):
  x, y = curve(rng, 500, num_rows=5000)
  found = look("4*exp(-0.6*x) + 1", x, y, config=dataclasses.replace(CONFIG, max_rows=1000))
  assert found.num_rows == 1000 and 50 < found.num_far < 150


def test_the_first_formula_that_tells_something_counts(rng):
  x, y = curve(rng, 6)
  rows = Rows(x[:, None], y, np.ones(60))
  nodes = [parser.parse(text, ["x"]) for text in ("log(x - 1)", "4*exp(-0.6*x) + 1", "100*x")]
  assert residuals.look(nodes, rows).num_far == 6


def test_what_is_said_names_the_loss():
  assert Residuals(60).texts == []
  assert Residuals(60, 6).texts == [
    "6 of 60 rows lie far from all others: --loss=huber (in Python loss='huber') gives these less weight"]
  assert Residuals(60, 1).texts == [
    "1 of 60 rows lies far from all others: --loss=huber (in Python loss='huber') gives it less weight"]
  assert Residuals(60, 2, True).texts == [
    "errors grow with |y|: --loss=auto (in Python loss='auto') lets rows count by that"]


# --- in the answer -----------------------------------------------------------------------------------------------


CLOSED = dataclasses.replace(DEFAULT, sources=("closed_forms", "guesses"))


def answer(x, y, **options):
  [found] = inference.search(testing.FixedProposer(["x0"]), [(x[:, None], y)], config=CLOSED, **options)
  assert found.status == "ok", found.message
  return found


def test_outliers_that_a_mean_hides_are_told_of_by_the_most_accurate_line(rng):
  x = np.linspace(0, 5, 60)
  y = 4 * x + 0.03 * rng.normal(size=60)
  y[5::10] += np.resize([12, -12], 6)
  rows, options = Rows(x[:, None], y, np.ones(60)), SearchOptions()
  mean, line = (Equation(parser.parse(text, ["x"]), ("x",), mse, None, None, ())
                for text, mse in (("10", 50), ("4*x", 9)))
  assert residuals.look([mean.node], rows).num_far == 0
  assert conclusion._look_at_residuals(mean, (mean, line), rows, options).num_far == 6
  assert conclusion._look_at_residuals(line, (mean, line), rows, options).num_far == 6
  assert not conclusion._look_at_residuals(line, (mean, line), rows, SearchOptions(loss="relative")).texts


def test_outliers_are_told_of_in_message_and_json(rng):
  x = np.linspace(0, 5, 60)
  y = 4 * x + 0.03 * rng.normal(size=60)
  y[5::10] += np.resize([12, -12], 6)
  found = answer(x, y, guesses=["a*x0 + b"])
  assert "6 of 60 rows lie far from all others: --loss=huber" in found.message
  assert found.to_json(data="d", target="y", features=["x0"])["seen"]["num_far"] == 6


def test_errors_that_grow_are_told_of_unless_another_loss_was_chosen(rng):
  x = 10 ** rng.uniform(-1, 2, 100)
  y = 2 * x * (1 + 0.1 * rng.normal(size=100))
  found = answer(x, y, guesses=["a*x0"])
  assert found.seen.is_growing and "--loss=auto" in found.message
  assert found.to_json(data="d", target="y", features=["x0"])["seen"]["is_growing"] is True
  assert "--loss" not in answer(x, y, guesses=["a*x0"], loss="relative").message
  [weighted] = inference.search(
    testing.FixedProposer(["x0"]), [(x[:, None], y, 1 / x**2)], guesses=["a*x0"], config=CLOSED)
  assert "--loss" not in weighted.message


@pytest.mark.parametrize(("exact", "num_far"), [(2**-12, 0), (2**-13, 7)])
def test_errors_of_just_what_is_exact_tell_nothing(exact, num_far, monkeypatch):
  monkeypatch.setattr(residuals, "count_far", lambda *given, **named: 7)
  monkeypatch.setattr(residuals, "are_growing", lambda *given, **named: False)
  monkeypatch.setattr(residuals, "missed_decades", lambda *given, **named: 0.0)
  x = 4 * np.resize([1.0, -1.0], 20)
  node = expression.Node("*", (expression.variable(0), expression.number(1 - 2**-12)))
  config = dataclasses.replace(DEFAULT.hints, exact=exact)
  assert residuals.look([node], Rows(x[:, None], x, np.ones(20)), config=config).num_far == num_far


def test_a_formula_that_overflows_tells_nothing_and_gives_no_warning():
  x = np.linspace(1, 99, 40)
  for text in ("exp(exp(x))", "log(x - 50)"):
    assert residuals.look([parser.parse(text, ["x"])], Rows(x[:, None], x, np.ones(40))) == residuals.Residuals(40)


def test_where_nothing_is_looked_at_nothing_is_seen():
  assert residuals.Residuals() == (0, 0, False, 0.0) and residuals.Residuals().texts == []


@pytest.mark.parametrize(("times", "are_missed"), [(2.02, True), (1.98, False)])
def test_errors_of_small_values_are_measured_by_how_much_neighbouring_ones_differ(times, are_missed):
  """That is the root of two times their scatter."""
  off = np.sqrt(2) / (2 * residuals.NORMAL * times)
  y = np.append(np.full(30, 0.1), np.full(30, 200.0))
  errors = np.append(np.resize([1 + off, 1 - off], 30), np.zeros(30))
  config = dataclasses.replace(CONFIG, beyond_scatter=2.0)
  assert bool(residuals.missed_decades(errors, y, np.arange(60.0)[:, None], config=config)) is are_missed
