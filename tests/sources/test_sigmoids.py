"""Sigmoids of several columns: logistic, Gompertz and Weibull curves, met by straight lines alone."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SigmoidsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, names_of
from symformer_jax.sources import closed_forms, sigmoids
from symformer_jax.sources.sigmoids import CURVES

CONFIG = DEFAULT.closed_forms
NAMES = ("x", "y", "z", "w")


def rows_of(text, box, *, noise=0.0, num=200, seed=0):
  rng = np.random.default_rng(seed)
  x = np.column_stack([rng.uniform(*each, num) for each in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return Rows(x, y + noise * np.std(y) * rng.normal(size=num), np.ones(num))


def left(node, rows):
  return np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) / np.var(rows.y)


LAWS = [
  ("1/(1 + exp(3.1 - 0.02*x - 0.5*y + 1.2*z - 0.7*w))", ((20, 80), (0, 5), (0, 2), (-1, 3)), 1.0),
  ("1 - exp(-0.00032*x**1.7*y**0.4/z**0.8)", ((1, 50), (1, 9), (1, 5)), 1.0),
  ("exp(-8.2*exp(-0.3*x - 0.8*y + 0.1*z))", ((0, 10), (0, 4), (-5, 5)), 1.0),
  ("exp(-1e7*exp(-0.3*x*(1 + y/10)))", ((20, 80), (1, 9)), 1.0),
  ("100/(1 + exp(0.4*x - 0.05*y)*z**1.2)", ((0, 9), (1, 60), (0.2, 5)), 100.0),
  ("0.04*(1 - exp(-0.00031*x**1.2*y**0.7/z))", ((1, 50), (1, 90), (1, 9)), 0.04),
  ("5.5*exp(-3*exp(-0.2*x)*y)", ((0, 20), (0.1, 2)), 5.5),
  ("1/(1 + (x/3.2)**(-2.5))", ((0.1, 20),), 1.0)]


@pytest.mark.parametrize(("text", "box", "largest"), LAWS)
def test_exact_curves_are_met_without_a_fit(text, box, largest):
  rows = rows_of(text, box)
  told = sigmoids.told_lines(rows, range(len(box)), CONFIG.sigmoids)[0]
  assert told.left < 1e-12 and told.largest == pytest.approx(largest, rel=1e-5)
  assert min(left(node, rows) for node in closed_forms.sigmoid_curves(rows, range(len(box)), CONFIG)) < 1e-12


@pytest.mark.parametrize(("text", "box", "largest"), LAWS[:3])
def test_under_noise_they_come_near(text, box, largest):
  rows = rows_of(text, box, noise=0.05)
  assert min(left(node, rows) for node in closed_forms.sigmoid_curves(rows, range(len(box)), CONFIG)) < 0.02


def test_exponents_near_whole_numbers_are_tried_as_these_and_fractions_are_single_ones():
  """Of powers of -.98 or so no fit makes `2*x/(x + 0.5)`."""
  rows = rows_of("2*x/(x + 0.5)", ((0.1, 9),), noise=0.03)

  def fractions(config):
    return [node for node in closed_forms.sigmoid_curves(rows, (0,), config)
            if not {"pow", "exp"} & {part.token for part in expression.walk(node)}]

  [node, *_] = fractions(CONFIG)
  assert left(node, rows) < 0.01 and node.token == "*" and expression.complexity(node) <= 8
  assert fractions(dataclasses.replace(CONFIG, sigmoids=SigmoidsConfig(nearly_whole=0.0))) == []


def test_terms_of_two_kinds_are_of_exact_data_alone():
  text, box = "100/(1 + exp(0.4*x - 0.05*y)*z**1.2)", ((0, 9), (1, 60), (0.2, 5))
  for noise, num_terms in ((0.0, 6), (0.01, 3)):
    told = sigmoids.told_lines(rows_of(text, box, noise=noise), range(3), CONFIG.sigmoids)
    assert max(len(each.terms) for each in told) == num_terms
  told = sigmoids.told_lines(rows_of(text, box, noise=0.01), range(3), SigmoidsConfig(exact=0.3))
  assert max(len(each.terms) for each in told) == 6


@pytest.mark.parametrize("curve", CURVES)
def test_inverses_and_slopes_are_those_of_the_curves(curve):
  exponential = np.geomspace(0.01, 5, 30)
  node = curve.of(variable(0))

  def values(e):
    return expression.evaluate(node, e[:, None])

  np.testing.assert_allclose(curve.inverse(values(exponential)), exponential, rtol=1e-9)
  steps = (values(exponential * np.exp(1e-6)) - values(exponential * np.exp(-1e-6))) / 2e-6
  np.testing.assert_allclose(curve.slope(exponential), np.abs(steps), rtol=1e-6)


def test_rows_count_by_what_an_error_of_y_is_there():
  rows = rows_of("1/(1 + exp(5*x))", ((-9, 9),))
  usable, target, weights = sigmoids.line_of(CURVES[0], 1.0, rows, CONFIG.sigmoids)
  assert 0 < np.sum(usable) < len(rows.y)  # at the ends y tells nothing
  np.testing.assert_allclose(target, 5 * rows.x[usable, 0], rtol=1e-6)
  # An error of y makes one of the logarithm that is larger by the root of the weights' inverse.
  less = dataclasses.replace(rows, y=rows.y * (1 - 1e-9))
  moved = sigmoids.line_of(CURVES[0], 1.0, less, CONFIG.sigmoids)[1]
  ratio = np.abs(moved - target) * np.sqrt(weights) / rows.y[usable]
  middle = np.abs(target) < 3
  assert np.ptp(ratio[middle]) < 1e-3 * np.mean(ratio[middle])


def test_a_steep_end_is_followed_to_where_it_is():
  rows = rows_of("7*(1 - exp(-0.3*x**0.7))", ((0.1, 9),))
  coarse = SigmoidsConfig(num_steps=1)
  assert sigmoids.told_lines(rows, (0,), CONFIG.sigmoids)[0].left < 1e-12
  assert sigmoids.told_lines(rows, (0,), coarse)[0].left > 1e-10
  assert sigmoids.told_lines(rows, (0,), SigmoidsConfig(followed=0.0))[0].left > 1e-8
  # The end of the curve may lie far beyond the rows.
  far = rows_of("7/(1 + exp(3 - 0.2*x))", ((0.1, 9),))
  assert sigmoids.told_lines(far, (0,), CONFIG.sigmoids)[0].largest == pytest.approx(7, rel=1e-4)


def test_what_is_no_curve_gives_none():
  both = rows_of("sin(x)*y", ((-3, 3), (0, 2)))
  assert sigmoids.told_lines(both, (0, 1), CONFIG.sigmoids) == []
  rows = rows_of("1/(1 + exp(x + y))", ((-1, 1),) * 2)
  few = Rows(rows.x[:11], rows.y[:11], rows.weights[:11])
  assert sigmoids.told_lines(few, (0, 1), CONFIG.sigmoids) == []
  assert sigmoids.told_lines(Rows(rows.x, -rows.y, rows.weights), (0, 1), CONFIG.sigmoids) == []
  assert sigmoids.told_lines(Rows(rows.x, np.ones(200), rows.weights), (0, 1), CONFIG.sigmoids) == []
  noise = Rows(rows.x, np.random.default_rng(1).uniform(0.1, 0.9, 200), rows.weights)
  assert sigmoids.told_lines(noise, (0, 1), CONFIG.sigmoids) == []
  assert sigmoids.told_lines(rows, (0, 1), SigmoidsConfig(max_terms=1)) == []
  # A twentieth of the rows may have come below 0.
  y = np.where(np.arange(200) % 20 == 0, -0.01, rows.y)
  assert sigmoids.told_lines(Rows(rows.x, y, rows.weights), (0, 1), CONFIG.sigmoids)
  assert sigmoids.told_lines(Rows(rows.x, y, rows.weights), (0, 1), SigmoidsConfig(below=0.04)) == []


def test_columns_that_do_not_vary_and_terms_for_which_there_are_no_rows_are_left_out():
  rows = rows_of("1/(1 + exp(x + y))", ((-1, 1),) * 2, num=15)
  kinds = list(sigmoids._kinds(rows, (0, 1), CONFIG.sigmoids))
  both = [variable(0), variable(1)]
  assert kinds == [(both, False), ([expression.Node("*", tuple(both)), *both], True)]
  fewer = Rows(rows.x[:14], rows.y[:14], rows.weights[:14])
  assert list(sigmoids._kinds(fewer, (0, 1), CONFIG.sigmoids)) == kinds[:1]
  still = Rows(np.column_stack([np.ones(15), rows.x[:, 1]]), rows.y, rows.weights)
  assert list(sigmoids._kinds(still, (0, 1), CONFIG.sigmoids)) == [([variable(1)], False)]
  assert list(sigmoids._kinds(still, (0,), CONFIG.sigmoids)) == []
  above = Rows(np.abs(rows.x), rows.y, rows.weights)
  kinds = sigmoids._kinds(above, (0, 1), SigmoidsConfig(rows_per_term=1))
  assert [(len(terms), is_mixed) for terms, is_mixed in kinds] == [(2, False), (2, False), (4, True), (3, True)]


@pytest.mark.parametrize("left_out", ["exp", "/", "**", "+", None])
def test_they_are_asked_for_where_all_their_operators_are_allowed(left_out, monkeypatch):
  rows = rows_of("1/(1 + exp(x + y))", ((-1, 1),) * 2)
  operators = frozenset({"exp", "/", "**", "*", "+", "log"} - {left_out})
  options = SearchOptions(restrictions=Restrictions(operators=names_of(operators, "operators")))
  task, asked = make_task((rows.x, rows.y), None, options), []
  monkeypatch.setattr(closed_forms, "sigmoid_curves", lambda *given: asked.append(given) or [])
  closed_forms.ClosedForms(DEFAULT).propose([SimpleNamespace(task=task)], turn=0, num=1, clock=Clock())
  assert bool(asked) is (left_out is None)


@pytest.mark.parametrize("name", ["max_terms", "rows_per_term", "num_tops", "num_steps"])
def test_counts_are_checked(name):
  with pytest.raises(InputError, match=name):
    SigmoidsConfig(**{name: 0})
