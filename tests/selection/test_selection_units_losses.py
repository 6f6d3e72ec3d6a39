"""Losses as weights of rows, part by part: each formula of its definition, by NumPy, and where its limits lie."""

import dataclasses
import math

from hand_made_rows import NAMES, parse, rows_of
import numpy as np
import pytest
from scipy import optimize, stats

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import printing, programs
from symformer_jax.selection import losses, rounding, soundness

CONFIG = DEFAULT.loss


def text_of(node):
  return printing.to_text(node, NAMES)


# --- without a formula -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("y", "got"), [
  ([0.0, 1, 2, 3], "0"), ([0.0, -1, -2, -3], "0"), ([0.0, 1, -2, 3], "0"), ([1.0, 2, -3, 4], "both signs"),
  ([0.5, -0.2, -3, -4], "both signs")])
def test_a_logarithm_of_zeros_or_both_signs_is_refused(y, got):
  with pytest.raises(InputError, match=f"loss: log takes a target of one sign, got {got};"):
    losses.weigh_first("log", rows_of(np.arange(4.0), y))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_first_weights_of_logarithms_are_those_of_relative_errors(sign):
  rows = rows_of(np.arange(3.0), sign * np.array([0.5, 1, 2]), [1.0, 3, 2])
  for loss, text in (("log", "loss log"), ("relative", "loss relative: rows count as 1/y**2")):
    found = losses.weigh_first(loss, rows)
    np.testing.assert_allclose(found.weights, [1, 3 / 4, 2 / 16])
    assert (found.text, found.exponent, found.num_light) == (text, 1.0, 0)


@pytest.mark.parametrize("loss", ["squared", "huber", "auto"])
def test_squares_and_first_looks_leave_the_weights(loss):
  rows = rows_of(np.arange(3.0), [1.0, -2, 0], [1.0, 3, 2])
  found = losses.weigh_first(loss, rows)
  assert found.weights is rows.weights and (found.text, found.exponent) == ("", 0.0)


def test_zeros_and_signs_are_said_and_no_weight_vanishes():
  found = losses.weigh_first("relative", rows_of(np.arange(4.0), [0.0, 2, 4, 0]))
  np.testing.assert_allclose(found.weights, [1, 1, 1 / 4, 1])
  assert found.text.endswith(", 2 with y = 0 as the smallest other, 2") and "sign" not in found.text
  one = losses.weigh_first("relative", rows_of(np.arange(4.0), [0.0, 2, 4, 8]))
  assert ", 1 with y = 0" in one.text
  both = losses.weigh_first("relative", rows_of(np.arange(3.0), [0.5, -0.2, -4]))
  assert both.text.endswith("; y changes its sign: what lies near 0 decides") and "y = 0" not in both.text
  wide = losses.weigh_first("relative", rows_of(np.arange(3.0), [1e-80, 1.0, 1e-60]))
  np.testing.assert_allclose(wide.weights, [1, 1e-120, 1])
  far = losses.weigh_first("relative", rows_of(np.arange(2.0), [1.5e-60, 1.0]))
  np.testing.assert_allclose(far.weights, [1, 2.25e-120])
  below = losses.weigh_first("relative", rows_of(np.arange(3.0), [0.0, -2, -4]))
  assert "sign" not in below.text
  large = losses.weigh_first("relative", rows_of(np.arange(3.0), [1e-80, 1e3, 1e-57]))
  np.testing.assert_allclose(large.weights, [1, 1e-120, 1])


@pytest.mark.parametrize(("loss", "y", "count"), [
  ("auto", [1.0, 2, 10.1], 2), ("auto", [1.0, 2, 10], 1), ("auto", [-1.0, -2, -11], 2), ("auto", [1.0, 2, -11], 1),
  ("auto", [-11.0, 2, 1], 1), ("auto", [0.0, 2, 11], 1), ("auto", [0.0, -2, -11], 1), ("auto", [0.5, 2, 5.1], 2),
  ("auto", [0.5, 2, 4.9], 1), ("auto", [-0.5, -2, 0.3], 1), ("auto", [2.0, 3, 21], 2), ("auto", [2.0, 3, 19], 1),
  ("log", [1.0, 2, 11], 1), ("huber", [1.0, 2, 11], 1)])
def test_a_second_look_where_one_sided_targets_span_a_decade(loss, y, count):
  rows = rows_of(np.arange(3.0), y, [1.0, 3, 2])
  found = losses.starts(loss, rows)
  assert len(found) == count
  np.testing.assert_array_equal(found[0], losses.weigh_first(loss, rows).weights)
  if count == 2:
    np.testing.assert_array_equal(found[1], losses.weigh_first("relative", rows).weights)


# --- where rows are far from their neighbours ------------------------------------------------------------------------


def test_neighbours_are_those_by_rank_in_every_column():
  rows = rows_of([0.0, 1, 2, 100, 101], [1.0, 2, 30, 4, 5])
  found = losses._neighbour_weights(rows, dataclasses.replace(CONFIG, huber_neighbours=2))
  np.testing.assert_array_equal(found.squares, (rows.y - [2, 2, 4, 5, 5]) ** 2)
  # About their medians these lie 1, 1, 2, 1, 1 off at the median.
  sigma = 1.4826
  share = min(1, CONFIG.huber_errors * sigma / 26) * min(1, CONFIG.huber_gross * sigma / 26)
  np.testing.assert_allclose(found.weights, [1, 1, share, 1, 1])
  all_others = losses._neighbour_weights(rows, dataclasses.replace(CONFIG, huber_neighbours=99))
  np.testing.assert_array_equal(all_others.squares, (rows.y - 4) ** 2)
  # Of two columns in different units: two groups that the first alone tells apart.
  x = np.array([[0.0, 0], [0, 1e6], [0, 2e6], [1, 0], [1, 1e6], [1, 2e6]])
  two = Rows(x, np.array([1.0, 2, 3, 11, 12, 13]), np.ones(6))
  one = losses._neighbour_weights(two, dataclasses.replace(CONFIG, huber_neighbours=1))
  assert np.max(one.squares) <= 1
  same = losses._neighbour_weights(Rows(np.zeros((5, 1)), np.arange(5.0), np.ones(5)), CONFIG)
  np.testing.assert_array_equal(same.squares, (np.arange(5.0) - 2) ** 2)


def test_a_look_begins_around_neighbours_only_where_some_rows_are_far_from_theirs(rng):
  x = np.linspace(0, 5, 50)
  for noise in (0.0, 0.1):
    y = x + noise * rng.normal(size=50)
    clean = rows_of(x, y)
    # Of a slope without errors each row is its own median, but for those at the ends: they are no outliers.
    assert losses.starts("huber", clean)[0] is clean.weights
    y[[7, 30]] += 20
    rows = rows_of(x, y)
    [found] = losses.starts("huber", rows)
    assert np.max(found[[7, 30]]) < 1e-2 and np.mean(found == 1) > 0.7
    np.testing.assert_array_equal(found, losses._neighbour_weights(rows, CONFIG).weights)
  [trusting] = losses.starts("huber", rows, config=dataclasses.replace(CONFIG, misled=1e9))
  assert trusting is rows.weights
  assert losses.starts("huber", rows, config=dataclasses.replace(CONFIG, min_rows=51))[0] is rows.weights
  assert losses.starts("huber", rows, config=dataclasses.replace(CONFIG, min_rows=50))[0][7] < 1


@pytest.mark.parametrize(("misled", "expected"), [(1.99, True), (2.0, False), (2.01, False)])
def test_a_look_was_misled_by_rows_that_count_for_less_than_it_supposed(misled, expected):
  config = dataclasses.replace(CONFIG, misled=misled)
  found = losses.Weighing(np.array([1.0, 1, 0.25]), squares=np.array([1.0, 1, 8]))
  assert losses.is_misled(np.array([1.0, 1, 0.75]), found, config=config) is expected
  assert not losses.is_misled(np.full(3, 1e9), losses.Weighing(np.ones(3)), config=config)


def test_errors_of_student_have_the_most_likely_scale(rng):
  errors = rng.normal(size=200)
  errors[:40] = 1e3
  weights = rng.uniform(0.5, 2, 200)
  rows = rows_of(np.arange(200.0), errors / np.sqrt(weights), weights)

  def minus_log(scale):
    # Up to what is the same for all formulas and scales.
    return -np.sum(stats.t.logpdf(errors, 2, scale=scale) - stats.t.logpdf(0, 2))

  least = optimize.minimize_scalar(lambda log: minus_log(np.exp(log)), bounds=(-5, 9), method="bounded",
                                   options={"xatol": 1e-9}).fun
  assert losses._student(np.zeros(200), rows, CONFIG) == pytest.approx(least, abs=1e-3)
  exact = losses._student(rows.y, rows, CONFIG)
  assert exact == pytest.approx(200 * math.log(1e-7 * np.std(rows.y)), rel=1e-9)


def test_gross_errors_do_not_hide_what_the_others_are(rng):
  x = np.linspace(0, 5, 40)
  law = 8 / (x + 1.6)
  y = law + 0.02 * rng.normal(size=40)
  y[::5] += 10
  rows = rows_of(x, y)
  found = losses.weigh("huber", [parse("7.9/(x + 1.55)"), parse("4.6*exp(-0.33*x)")], rows, text=text_of)
  assert "/(" in found.text.split("first look: ")[1] and "exp" not in found.text
  assert math.isclose(losses._cost(parse("x"), rows=rows, reweigh=None, config=CONFIG, is_robust=True),
                      losses._student(x, rows, CONFIG) + CONFIG.nats_per_node)


# --- around fitted values --------------------------------------------------------------------------------------------


def test_sizes_are_relative_to_the_largest_and_the_smallest_twentieth_is_raised():
  values = np.concatenate([[-8.0], np.arange(1.0, 21) / 5])
  expected = np.maximum(np.abs(values), np.quantile(np.abs(values), 0.05)) / 8
  np.testing.assert_allclose(losses._sizes(values, CONFIG), expected)
  assert np.min(expected) > 0.2 / 8
  np.testing.assert_array_equal(losses._sizes(np.zeros(4), CONFIG), np.ones(4))
  np.testing.assert_allclose(losses._sizes(np.array([0.0, 0, 0, 0.5]), CONFIG), np.ones(4))
  np.testing.assert_allclose(losses._sizes(np.array([0.0, 0, 0, 4]), CONFIG), [0.25, 0.25, 0.25, 1])


def test_weights_of_logarithms_are_those_of_their_definition():
  y = np.array([2.0, 2, 2, 2, 2, 2, 2, -2])
  values = y * np.array([3.0, 0.2, 29.9, 1 / 29.9, 31, 1 / 31, -4, 1.5])
  rows = rows_of(np.arange(8.0), y, np.arange(1.0, 9))
  found = losses._log_weights(values, rows, CONFIG)
  ratio = np.array([3.0, 0.2, 29.9, 1 / 29.9, 30, 1 / 30, 1 / 30, 1.5])
  np.testing.assert_allclose(found.weights, rows.weights * np.log(ratio) / (ratio - 1) / ratio, rtol=1e-9)
  assert (found.text, found.exponent) == ("log|y| is fitted", 1.0)


@pytest.mark.parametrize(("off", "error"), [
  (0.0, 0.0), (0.5e-4, 1e-9), (-0.5e-4, 1e-9), (1.5e-4, 1e-11), (-1.5e-4, 1e-11)])
def test_near_one_the_logarithm_keeps_its_digits(off, error):
  """A series of two terms below a ten-thousandth: it leaves a third of the square."""
  rows = rows_of([1.0], [1.0])
  [found] = losses._log_weights(np.array([1 + off]), rows, CONFIG).weights
  expected = (math.log1p(off) / off if off else 1.0) / (1 + off)
  assert abs(found / expected - 1) <= error + 4e-16
  tiny = losses._log_weights(np.array([1 + 4e-16]), rows, CONFIG).weights
  np.testing.assert_allclose(tiny, 1.0, rtol=1e-14)


def test_hubers_weights_fall_with_the_error_and_beyond_gross_ones_with_its_square():
  errors = np.array([0.1, -0.2, 0.3, 1.0, 1.0, 2.0, 9.0])
  user = np.array([1.0, 1, 1, 1, 4, 1, 1])
  rows = rows_of(np.arange(7.0), errors, user)
  found = losses._huber_weights(np.zeros(7), rows, CONFIG)
  size = np.sqrt(user) * np.abs(errors)
  sigma = 1.4826 * np.median(size)
  far, gross = 1.345 * sigma, 3 * sigma
  expected = user * np.minimum(1, far / size) * np.minimum(1, gross / size)
  np.testing.assert_allclose(found.weights, expected)
  light = int(np.sum(size > far))
  assert 0 < light < 7 and found.num_light == light and found.exponent == 0.0
  assert found.text == f"{light} of 7 rows lie beyond {far:.3g} and count less"
  assert np.any((size > far) & (size < gross)) and np.any(size > gross)


def test_an_error_of_just_so_many_standard_errors_counts_whole():
  sigma = 1.4826
  rows = rows_of(np.arange(3.0), [-1.0, 1.0, CONFIG.huber_errors * sigma])
  found = losses._huber_weights(np.zeros(3), rows, CONFIG)
  assert found.num_light == 0 and found.weights.tolist() == [1, 1, 1]


def test_where_half_of_the_rows_are_met_rounding_is_the_standard_error():
  y = np.array([0.0, 1, 2, 3, 4])
  rows, off = rows_of(np.arange(5.0), y), 3e-7 * np.std(y)
  found = losses._huber_weights(y + np.array([0, 0, 0, 0, off]), rows, CONFIG)
  np.testing.assert_allclose(found.weights[:4], 1)
  far, gross = 1.345e-7 * np.std(y), 3e-7 * np.std(y)
  assert found.num_light == 1 and found.weights[4] == pytest.approx(far / off * min(1, gross / off), rel=1e-6)


def test_the_likelihood_is_that_of_laplace(rng):
  values, y, weights = rng.uniform(1, 9, 30), rng.uniform(1, 9, 30), rng.uniform(0.5, 2, 30)
  rows = rows_of(np.arange(30.0), y, weights)
  for exponent in (0.0, 0.5, 1.0):
    size = losses._sizes(values, CONFIG)
    errors = np.sqrt(weights) * np.abs(y - values)
    # Errors of density exp(-|e|/(a*s))/(2*a*s), a by likelihood; 1 + log 2 a row are the same for all.
    a = np.mean(errors / size**exponent)
    expected = np.sum(np.log(2 * a * size**exponent) + errors / (a * size**exponent)) - 30 * (1 + math.log(2))
    assert losses._laplace(values, rows, exponent, CONFIG) == pytest.approx(expected, rel=1e-12)
  exact = losses._laplace(y, rows, 1.0, CONFIG)
  size = losses._sizes(y, CONFIG)
  floor = 30 * math.log(1e-7 * np.std(y) / np.mean(size)) + np.sum(np.log(size))
  assert exact == pytest.approx(floor, rel=1e-12)


# --- growth ----------------------------------------------------------------------------------------------------------


def growth_of(monkeypatch, costs, *, num_rows=20, error=1.0, **changes):
  """What is found where a power costs so many nats, any other 99."""
  monkeypatch.setattr(losses, "_laplace", lambda values, rows, exponent, config: costs.get(exponent, 99.0))
  y = np.arange(float(num_rows))
  return losses.find_growth(y + error, rows_of(y, y), config=dataclasses.replace(CONFIG, **changes))


@pytest.mark.parametrize(("costs", "expected"), [
  ({0.0: 10.0, 1.35: 7.0}, 1.35), ({0.0: 9.99, 1.35: 7.0}, 0.0), ({0.0: 5.0}, 0.0),
  ({0.0: 20.0, 1.35: 7.0, 1.0: 7.99}, 1.0), ({0.0: 20.0, 1.35: 7.0, 1.0: 8.0}, 1.35),
  ({0.0: 20.0, 1.35: 7.0, 0.5: 7.99}, 0.5), ({0.0: 20.0, 1.35: 7.0, 0.5: 7.1, 1.0: 7.9}, 1.0),
  ({0.0: 20.0, 2.0: 7.0}, 2.0), ({0.0: 20.0, 0.05: 7.0}, 0.05), ({0.0: 20.0, 2.05: 7.0, 1.5: 8.0}, 1.5)])
def test_growth_is_what_evidence_says_and_simple_where_that_is_as_good(costs, expected, monkeypatch):
  assert growth_of(monkeypatch, costs) == expected


def test_growth_needs_rows_and_errors(monkeypatch):
  costs = {0.0: 20.0, 1.0: 7.0}
  assert growth_of(monkeypatch, costs, num_rows=20) == 1.0 and growth_of(monkeypatch, costs, num_rows=19) == 0.0
  spread = np.std(np.arange(20.0))
  assert growth_of(monkeypatch, costs, error=1.001e-7 * spread) == 1.0
  assert growth_of(monkeypatch, costs, error=0.999e-7 * spread) == 0.0
  assert growth_of(monkeypatch, {0.0: 20.0, 1.5: 7.0, 1.0: 9.0}, max_growth=1.0) == 1.0
  assert losses.find_growth(np.zeros(30), rows_of(np.arange(30.0), np.zeros(30))) == 0.0


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_rows_count_by_the_size_that_errors_grow_with(exponent, monkeypatch):
  monkeypatch.setattr(losses, "find_growth", lambda values, rows, *, config: exponent if config is CONFIG else 9.0)
  values, weights = np.arange(1.0, 31), np.linspace(1, 2, 30)
  found = losses._grown_weights(values, rows_of(np.arange(30.0), values, weights), CONFIG)
  if exponent:
    np.testing.assert_allclose(found.weights, weights * losses._sizes(values, CONFIG) ** (-2 * exponent))
    assert found.text == f"errors grow as |y|**{exponent:g}, rows count as 1/|y|**{2 * exponent:g}"
  else:
    np.testing.assert_array_equal(found.weights, weights)
    assert found.text == "errors do not grow with |y|, squares are fitted"
  assert found.exponent == exponent


# --- the best formula of a look --------------------------------------------------------------------------------------


def test_a_formula_costs_its_nodes_and_what_it_leaves_under_its_own_weights(rng):
  x = rng.uniform(1, 4, 25)
  rows = rows_of(x, 2 * x + 0.1 * rng.normal(size=25))
  asked = []

  def reweigh(values, rows):
    asked.append(values)
    return losses.Weighing(rows.weights, "", exponents.pop())

  node = parse("2.1*x")
  exponents = [1.0]
  found = losses._cost(node, rows=rows, reweigh=reweigh, config=CONFIG)
  np.testing.assert_allclose(asked[0], 2.1 * x)
  assert found == pytest.approx(losses._laplace(2.1 * x, rows, 1.0, CONFIG) + 2.0 * 3)
  exponents = [None]
  found = losses._cost(node, rows=rows, reweigh=reweigh, config=CONFIG)
  assert found == pytest.approx(losses._laplace(2.1 * x, rows, 0.0, CONFIG) + 2.0 * 3)
  with np.errstate(invalid="ignore"):
    assert losses._cost(parse("log(x - 2)"), rows=rows, reweigh=reweigh, config=CONFIG) == math.inf


def test_constants_and_weights_agree_after_some_turns(monkeypatch):
  rows, asked = rows_of(np.arange(1.0, 6), np.arange(1.0, 6)), []

  def refit(node, x, y, weights):
    asked.append(weights)
    return parse(f"{len(asked)}.5*x")

  monkeypatch.setattr(rounding, "refit_constants", refit)
  found = losses._fit(parse("0.5*x"), rows, lambda values, rows: losses.Weighing(values), 3)
  assert found == parse("3.5*x") and len(asked) == 3
  np.testing.assert_allclose(asked, np.outer([0.5, 1.5, 2.5], rows.x[:, 0]))
  undefined = parse("1.5*log(x - 3)")
  with np.errstate(all="ignore"):
    assert losses._fit(undefined, rows, lambda values, rows: losses.Weighing(values), 3) is undefined


def test_what_is_said_has_constants_of_four_digits():
  rows = rows_of(np.arange(1.0, 6), np.arange(1.0, 6))
  assert losses._short(parse("2.345678*x + 12345.67")) == programs.replace_values(
    parse("2.345678*x + 12345.67"), [float(f"{value:.4g}") for value in programs.fitted_values(
      parse("2.345678*x + 12345.67"))])
  assert text_of(losses._short(parse("2.345678*x"))) == "2.346*x"
  found = losses._described("huber", parse("2.345678*x"), rows, lambda values, rows: losses.Weighing(
    values, "so", None, 3), text_of)
  np.testing.assert_allclose(found.weights, 2.345678 * rows.x[:, 0])
  assert (found.text, found.exponent, found.num_light) == ("loss huber: so; first look: 2.346*x", None, 3)
  for bad in (0.0, -1.0, math.nan, math.inf):
    weights = np.array([1.0, bad, 1, 1, 1])
    found = losses._described("auto", parse("2.5*x"), rows, lambda values, rows, weights=weights: losses.Weighing(
      weights), text_of)
    assert found.text == "loss auto: a first look says nothing of all rows, squared"
    assert found.weights is rows.weights and found.exponent == 0.0


def weighed(monkeypatch, costs, *, faulty=(), fitted=None, loss="huber", y=None, **config):
  """`weigh` where formulas cost so many nats; what was fitted."""
  asked = []

  def fit(node, rows, reweigh, num_turns):
    asked.append((text_of(node), num_turns))
    return parse(fitted.get(text_of(node), text_of(node))) if fitted else node

  monkeypatch.setattr(losses, "_cost", lambda node, **given: costs[text_of(node)])
  monkeypatch.setattr(losses, "_fit", fit)
  monkeypatch.setattr(soundness, "find_fault", lambda node, segments: "pole" if text_of(node) in faulty else "")
  rows = rows_of(np.arange(1.0, 9), np.arange(1.0, 9) if y is None else y)
  found = losses.weigh(loss, [parse(text) for text in costs] * 2, rows, text=text_of,
                       config=dataclasses.replace(CONFIG, **config))
  return found, asked


def test_the_shortest_descriptions_without_a_fault_are_fitted_and_the_best_of_these_is_taken(monkeypatch):
  costs = {"x": 3.0, "5*x": 1.0, "2*x": 2.0, "4*x": 0.0, "3*x": 2.5}
  found, asked = weighed(monkeypatch, costs, faulty={"4*x"}, num_fitted=3, num_turns=7)
  assert asked == [("5*x", 7), ("2*x", 7), ("3*x", 7)] and found.text.endswith("; first look: 5*x")
  found, _ = weighed(monkeypatch, costs | {"6*x": -1.0}, fitted={"3*x": "6*x", "6*x": "x"})
  assert found.text.endswith("; first look: 6*x")


@pytest.mark.parametrize(("loss", "instead"), [
  ("huber", "squared"), ("auto", "squared"), ("log", "rows count as 1/y**2")])
def test_where_no_formula_is_defined_the_first_weights_stay(loss, instead, monkeypatch):
  for costs, faulty in (({"x": math.inf}, ()), ({"x": 1.0}, ("x",))):
    found, _ = weighed(monkeypatch, costs, faulty=faulty, loss=loss)
    assert found.text == f"loss {loss}: no formula of a first look is defined on all rows, {instead}"
    rows = rows_of(np.arange(1.0, 9), np.arange(1.0, 9))
    np.testing.assert_array_equal(found.weights, losses.weigh_first(loss, rows).weights)


def test_formulas_are_fitted_to_some_rows_that_the_seed_draws(monkeypatch):
  asked = []

  class Many(Rows):
    def sample(self, num_rows, *, seed):
      asked.append((num_rows, seed))
      return self

  rows = Many(np.arange(1.0, 9)[:, None], np.arange(1.0, 9), np.ones(8))
  for options in ({}, {"num_rows": 99, "seed": 7}):
    losses.weigh("huber", [parse("2.5*x")], rows, text=text_of, **options)
  assert asked == [(4096, 0), (99, 7)]


def test_formulas_that_are_undefined_on_a_row_are_left_out_in_silence(monkeypatch):
  monkeypatch.setattr(losses, "_fit", lambda node, *given: node)
  rows = rows_of(np.arange(1.0, 9), np.arange(1.0, 9))
  found = losses.weigh("huber", [parse("log(x - 3)"), parse("1.1*x")], rows, text=text_of)
  assert found.text.endswith("; first look: 1.1*x")


def test_formulas_whose_errors_no_double_holds_are_left_out_in_silence(monkeypatch):
  monkeypatch.setattr(losses, "_fit", lambda node, *given: node)
  x = np.array([600.0, 620, 640, 660, 680, 700, 709.5, 709.7])
  found = losses.weigh("huber", [parse("exp(x)"), parse("0.1*x")], rows_of(x, 0.1 * x), text=text_of)
  assert found.text.endswith("; first look: 0.1*x")


def test_each_loss_has_the_weights_of_its_name(monkeypatch):
  rows = rows_of(np.arange(1.0, 31), np.arange(1.0, 31) * (1 + 0.1 * np.sin(np.arange(30.0))))
  for loss, weights in (("log", losses._log_weights), ("huber", losses._huber_weights),
                        ("auto", losses._grown_weights)):
    monkeypatch.setattr(losses, "_fit", lambda node, *given: node)
    found = losses.weigh(loss, [parse("1.1*x")], rows, text=text_of)
    np.testing.assert_allclose(found.weights, weights(1.1 * rows.x[:, 0], rows, CONFIG).weights)


# --- first looks -----------------------------------------------------------------------------------------------------


def test_before_any_formula_the_standard_error_is_that_of_neighbours_about_their_median():
  rng = np.random.default_rng(0)
  y = rng.normal(size=40) * np.where(np.arange(40) < 25, 1.0, 9.0)
  rows = rows_of(np.arange(40.0), y)
  near = np.clip(np.arange(40)[:, None] - 3, 0, 33) + np.arange(7)  # the next three on either side
  medians = np.median(y[near], axis=1)
  deviation = np.median(np.median(np.abs(y[near] - medians[:, None]), axis=1))
  expected = losses._bounded(medians, rows, float(deviation), CONFIG)
  found = losses._neighbour_weights(rows, CONFIG)
  np.testing.assert_allclose(found.weights, expected.weights)
  assert found.text == expected.text


@pytest.mark.parametrize(("loss", "is_robust"), [("huber", True), ("log", False), ("auto", False)])
def test_formulas_of_a_first_look_are_compared_by_students_distribution_under_huber(loss, is_robust, monkeypatch):
  asked, cost = set(), losses._cost

  def watched(node, *, is_robust=False, **given):
    asked.add(is_robust)
    return cost(node, is_robust=is_robust, **given)

  monkeypatch.setattr(losses, "_cost", watched)
  x = np.linspace(1, 3, 40)
  losses.weigh(loss, [parse("1.5*x")], rows_of(x, 1.5 * x + 0.1 * np.sin(40 * x)), text=str)
  assert asked == {is_robust}


def test_formulas_that_are_undefined_on_a_row_are_passed_over_without_a_warning():
  x = np.linspace(1, 3, 40)
  rows = rows_of(x, 1.5 * x + 0.1 * np.sin(40 * x))
  for loss in ("log", "huber", "auto"):
    assert "1.5" in losses.weigh(loss, [parse("log(x - 2)"), parse("1.5*x")], rows, text=text_of).text
    node, weights = losses.settle(loss, parse("log(x - 2)"), rows)
    assert node == parse("log(x - 2)") and len(weights) == 40
