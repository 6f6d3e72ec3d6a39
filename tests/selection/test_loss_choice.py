"""Losses as weights of rows: each reaches the optimum of its loss, by independent fits, and says what it did."""

from hypothesis import given, strategies as st
import jax
import numpy as np
import pytest

from symformer_jax import first_look, inference, testing
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import LOSSES, SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import parser, printing, programs
from symformer_jax.selection import choice, losses, scoring


def make_rows(x, y, weights=None):
  return Rows(np.asarray(x, float)[:, None], np.asarray(y, float), np.ones(len(y)) if weights is None else weights)


def weigh(loss, texts, rows):
  nodes = [parser.parse(text, ["x"]) for text in texts]
  return losses.weigh(loss, nodes, rows, text=lambda node: printing.to_text(node, ["x"]))


def fitted(text, rows, weights):
  from symformer_jax.selection import rounding

  node = parser.parse(text, ["x"])
  for _ in range(5):
    node = rounding.refit_constants(node, rows.x, rows.y, weights)
  return node


@pytest.fixture
def decades(rng):
  x = np.exp(rng.uniform(-4, 6, 60))
  return make_rows(x, 4.6 * x**0.75 * np.exp(0.3 * rng.normal(size=60)))


def test_relative_weights_are_those_of_relative_errors(decades):
  weights = losses.weigh_first("relative", decades).weights
  values = scoring.evaluate(fitted("4.1*x**0.7", decades, weights), decades.x)
  own = np.sum(weights * (values - decades.y) ** 2)
  assert own == pytest.approx(np.min(weights * decades.y**2) * np.sum((values / decades.y - 1) ** 2))


def test_zeros_count_as_the_smallest_other_and_it_is_said():
  weighing = losses.weigh_first("relative", make_rows(range(5), [0, 2, -4, 8, 0]))
  np.testing.assert_allclose(weighing.weights, [1, 1, 1 / 4, 1 / 16, 1])
  assert "2 with y = 0 as the smallest other, 2" in weighing.text and "changes its sign" in weighing.text


def test_log_reaches_the_least_squares_of_logarithms(decades):
  weighing = weigh("log", ["3.1*x**0.7", "1.1*x + 3.2"], decades)
  slope, intercept = np.polyfit(np.log(decades.x[:, 0]), np.log(decades.y), 1)
  values = programs.fitted_values(fitted("3.1*x**0.7", decades, weighing.weights))
  assert sorted(values) == pytest.approx(sorted([np.exp(intercept), slope]), rel=1e-4)
  assert weighing.text.startswith("loss log: log|y| is fitted; first look: 4.") and weighing.exponent == 1


def test_log_of_negative_targets_is_that_of_their_size(decades):
  below = make_rows(decades.x[:, 0], -decades.y)
  weights = weigh("log", ["-3.1*x**0.7"], below).weights
  np.testing.assert_allclose(weights, weigh("log", ["3.1*x**0.7"], decades).weights, rtol=1e-6)


@pytest.mark.parametrize("y, got", [([1, 2, -3, 4, 5], "both signs"), ([1, 0, 3, 4, 5], "0")])
def test_log_needs_one_sign(y, got):
  with pytest.raises(InputError, match=f"loss: log takes a target of one sign, got {got}"):
    losses.weigh_first("log", make_rows(range(5), y))


@given(st.floats(1e-3, 1e3))
def test_weights_of_the_logarithm_have_its_slope(ratio):
  rows = make_rows([1.0], [2.5])
  [weight] = losses._log_weights(ratio * rows.y, rows, DEFAULT.loss).weights * 2.5**-2
  if 1 / 30 < ratio < 30 and abs(ratio - 1) > 1e-9:
    f = 2.5 * ratio
    # d/df of (log f - log y)**2 is 2 log(f/y)/f, of w (f - y)**2 it is 2 w (f - y).
    assert weight * (f - 2.5) == pytest.approx(np.log(ratio) / f, rel=1e-6)
  assert weight > 0


def test_huber_reaches_the_line_under_outliers(rng):
  x = rng.uniform(1, 10, 60)
  y = 3 * x + 2 + 0.2 * rng.normal(size=60)
  clean, y[:3] = y.copy(), [90, -80, 130]
  rows = make_rows(x, y)
  weighing = weigh("huber", ["2.5*x + 8.2", "21.5"], rows)
  values = programs.fitted_values(fitted("2.5*x + 8.2", rows, weighing.weights))
  line = np.polyfit(x[3:], clean[3:], 1)
  assert sorted(values) == pytest.approx(sorted(line), rel=0.02)
  assert np.all(weighing.weights[:3] < 1e-4) and 3 <= weighing.num_light < 20
  # What gross errors add to the weighted squares is bounded: it is not taken for noise.
  errors = y - np.polyval(line, x)
  assert np.max(weighing.weights[:3] * errors[:3] ** 2) < 6 * 0.2**2 * 1.5


def test_huber_leaves_weights_of_the_user_in_place(rng):
  x = rng.uniform(1, 10, 50)
  sigma = rng.uniform(0.01, 10, 50)
  rows = make_rows(x, 3 * x + 2 + sigma * rng.normal(size=50), sigma**-2)
  weights = weigh("huber", ["2.5*x + 3.2"], rows).weights
  # Errors are judged in standard deviations of their own: large ones of rows that are known to be poor are none.
  share = weights * sigma**2
  assert np.median(share) == pytest.approx(1) and np.mean(share > 0.5) > 0.9


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_growth_of_errors_is_found(exponent, rng):
  x = rng.uniform(0.1, 10, 300)
  values = 2 * x**2 + 1
  rows = make_rows(x, values + 0.1 * values**exponent * rng.normal(size=300))
  assert losses.find_growth(values, rows) == exponent
  weighing = weigh("auto", ["2.2*x**2.1 + 1.3", "3.1*x"], rows)
  assert weighing.exponent == exponent
  assert (f"errors grow as |y|**{exponent:g}" if exponent else "errors do not grow with |y|") in weighing.text
  # The smallest twentieth counts as its largest.
  is_usual = values > np.quantile(values, 0.06)
  expected = (values ** (-2 * exponent))[is_usual]
  np.testing.assert_allclose(weighing.weights[is_usual] / weighing.weights[is_usual].max(), expected / expected.max(),
                             rtol=0.1)


def test_few_rows_and_exact_ones_say_nothing_of_growth(rng):
  x = rng.uniform(0.1, 10, 19)
  assert losses.find_growth(x, make_rows(x, x * (1 + rng.normal(size=19)))) == 0
  x = rng.uniform(0.1, 10, 99)
  assert losses.find_growth(x, make_rows(x, x * (1 + 1e-15))) == 0


def test_of_noise_alone_growth_is_seldom_found(rng):
  values = np.exp(rng.uniform(0, 5, (200, 40)))
  found = [losses.find_growth(v, make_rows(v, v + rng.normal(size=40))) for v in values]
  assert np.mean(np.array(found) > 0) < 0.05


def test_undefined_formulas_leave_squares():
  rows = make_rows([-1, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 7])
  weighing = weigh("huber", ["log(x)"], rows)
  assert np.array_equal(weighing.weights, rows.weights) and "squared" in weighing.text


def is_yardstick(line):
  return choice.is_linear(line.node) or line.complexity == 1


@pytest.mark.parametrize("loss", [
  loss if loss == "auto" else pytest.param(loss, marks=pytest.mark.slow) for loss in LOSSES])
def test_a_search_under_any_loss_says_so_and_its_front_never_rises(loss, rng):
  model = testing.FixedProposer(["0.7*x0**1.4", "1.3*x0 + 2.2", "1.3/x0", "0.7*x0**1.2 + 0.1"])
  x = np.exp(rng.uniform(-2, 4, 50))
  y = 4.6 * x**0.75 * np.exp(0.2 * rng.normal(size=50))
  [result] = inference.search(model, [(x, y)], n_samples=64, names=[["x"]], loss=loss, seed=1,
                              effort="quick")
  assert result.loss == loss and (f"loss {loss}" in result.message) == (loss != "squared")
  assert result.is_weighted == (loss in ("relative", "log", "huber", "auto"))
  values = scoring.evaluate(result.best.node, x[:, None])
  assert result.best.mse == pytest.approx(np.average((values - y) ** 2, weights=result.weights), rel=1e-9)
  if loss in ("log", "auto"):
    exponents = [constant.value for constant in result.best.constants]
    assert min(abs(e - 0.75) for e in exponents) < 0.05
  proper = [line for line in result.pareto if not is_yardstick(line) or line is result.best]
  assert all(a.complexity < b.complexity and a.mse > b.mse for a, b in zip(proper, proper[1:], strict=False))


def test_a_loss_that_cannot_be_fails_its_data_set_alone():
  model = testing.FixedProposer(["1.3*x0 + 2.2"])
  x = np.linspace(1, 5, 12)
  good, bad = inference.search(model, [(x, x**2), (x, x - 3.1)], n_samples=16, loss="log")
  assert good.status == "ok" and (bad.status, "one sign" in bad.message) == ("failed", True)


def test_one_formula_settles_with_the_weights_that_it_gives(rng):
  x = 10 ** rng.uniform(-4, 4, 60)
  rows = Rows(x[:, None], 3.2e-3 * x**0.75 * (1 + 0.05 * rng.normal(size=60)), np.ones(60))
  node, weights = losses.settle(losses.AUTO, parser.parse("0.0042*x**0.71", ["x"]), rows)
  factor_and_exponent = sorted(programs.fitted_values(node))
  assert factor_and_exponent == pytest.approx([3.2e-3, 0.75], rel=0.03)
  assert np.corrcoef(np.log(weights), np.log(x))[0, 1] < -0.9


# --- looks under outliers --------------------------------------------------------------------------------------------


def decay(rng, *, num_bad, size, num=60):
  """`4*exp(-0.6*x) + 1` with errors of 0.03, rows drawn by chance off by so much, one-sided."""
  x = np.linspace(0, 5, num)
  y = 4 * np.exp(-0.6 * x) + 1 + 0.03 * rng.normal(size=num)
  y[rng.choice(num, num_bad, replace=False)] += rng.uniform(*size, num_bad)
  return x, y


@pytest.mark.parametrize("num_bad", [6, 12])
def test_under_gross_outliers_the_scale_is_that_of_the_other_rows(num_bad, rng):
  rows = make_rows(*decay(rng, num_bad=num_bad, size=(5, 20)))
  law = 4 * np.exp(-0.6 * rows.x[:, 0]) + 1
  is_bad = np.abs(rows.y - law) > 1
  weighed, is_stopped = first_look.weigh(
    testing.FixedProposer(["x0"]), [(rows.x, rows.y)], [["x"]], SearchOptions(loss="huber"), jax.random.key(0), Clock(),
    lambda: False)
  found = weighed[0].weighing
  assert not is_stopped and np.sum(is_bad) == num_bad and np.max(found.weights[is_bad]) < 1e-3
  assert np.mean(found.weights[~is_bad] == 1) > 0.7
  far = float(found.text.split("beyond ")[1].split()[0])
  assert 0.02 < far / DEFAULT.loss.huber_errors < 0.05


def test_the_law_is_recommended_beside_gross_outliers(rng):
  x, y = decay(rng, num_bad=6, size=(5, 20))
  model = testing.FixedProposer(["0.7*exp(-0.5*x0) + 0.5", "1.3/(x0 + 2.2)"])
  [result] = inference.search(model, [(x, y)], n_samples=16, names=[["x"]], loss="huber", effort="quick")
  law = 4 * np.exp(-0.6 * x) + 1
  assert np.sqrt(np.mean((scoring.evaluate(result.best.node, x[:, None]) - law) ** 2)) < 0.03
