"""Fractions of waves: told from others by an equation without poles, their frequencies fitted, written as tangents."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing, programs
from symformer_jax.language.expression import Node, variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.waves import wave_forms, wave_fractions
from symformer_jax.sources.waves.wave_equations import Equation
from symformer_jax.sources.waves.wave_forms import Part, Phase
from symformer_jax.sources.waves.wave_fractions import WaveFractions, fractions_of

OPTIONS = SearchOptions()


def task_of(text, x, options=OPTIONS):
  names = tuple("xyzw"[: x.shape[1]])
  return make_task((x, expression.evaluate(parser.parse(text, names), x)), names, options)


def ask(task, turn=0):
  source = WaveFractions(DEFAULT)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=turn, num=source.turns[turn], clock=Clock())[0].nodes


def least(task, nodes):
  nodes = [node for node in nodes if programs.size(node) <= programs.MAX_TOKENS]
  return min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=40)[0]) / task.variance


def rows_of(text, x):
  names = tuple("xyzw"[: x.shape[1]])
  return Rows(x, expression.evaluate(parser.parse(text, names), x), np.ones(len(x)))


@pytest.fixture
def x(rng):
  return rng.uniform(0.3, 5, (100, 1))


@pytest.mark.parametrize("text", [
  "3*x*tan(7.3*x)", "x - 2/tan(1.7*x**2)", "log(x)/tan(x) + 0.9*log(x)", "4/(2.3 + cos(2.9*x)) - 0.3*x",
  "tan(1.3*x + 0.4)**2", "exp(x)*tan(2*x) + 1", "cos(x)/(x*tan(x**2)) - 1", "2/cos(3.1*x + 0.3)", "tan(6.1/x)",
  "sqrt(x)*cos(9.7*x) + sin(9.7*x)", "tan(3.3*log(x))", "2*x*tan(60.1*x - 3)",
  "cos(3.1*sin(x) + 1) + 0.7*x"])
def test_laws_of_one_column_are_found(text, x):
  task = task_of(text, x)
  assert least(task, ask(task)) < 1e-18


@pytest.mark.parametrize("text", [
  "y*tan(x*y) + 2", "x/tan(2.1*y) - 2*x", "z*tan(3*x/y)", "1/(1.4 + sin(x*z))*w", "4.6*sin(0.8*x*y*z*w)"])
def test_laws_of_several_columns_are_found(text, rng):
  num_columns = 1 + max("xyzw".index(letter) for letter in "xyzw" if letter in text)
  task = task_of(text, rng.uniform(0.5, 4, (200, num_columns)))
  assert least(task, ask(task)) < 1e-18


@pytest.mark.parametrize("text", [
  "2*tan(x**2 - 0.7*x) + 1", "3*cos(x**2 - 1.9*x) + 2", "1/sin(x**2 + x) + 3", "tan(2*x + 3*y)", "tan(x*y + 1.3*x)"])
def test_phases_that_are_sums_have_their_turn(text, rng):
  task = task_of(text, rng.uniform(-3, 3, (200, 2 if "y" in text else 1)))
  assert least(task, ask(task, turn=1)) < 1e-18


def test_phases_of_sums_of_any_two_of_many_columns(rng):
  task = task_of("2*tan(1.4*y - 2*w)", rng.uniform(-3, 3, (200, 4)))
  assert least(task, ask(task, turn=1)) < 1e-18


def test_a_tangent_of_half_a_phase_is_written_as_one(x):
  """sin(2*x)/(1 - cos(2*x)) and (1 + cos(2*x))/sin(2*x) are the same, and so is any mixture of them."""
  rows = rows_of("log(x)/tan(x) + 0.9*log(x)", x)
  near = [node for node in fractions_of(rows, [0], Rule(1))
          if np.allclose(expression.evaluate(node, x), rows.y, rtol=1e-6)]
  assert min(map(expression.complexity, near)) <= 15 and any(part.token == "tan" for part in expression.walk(near[0]))


def test_what_is_tried(monkeypatch, rng):
  tried = {}
  monkeypatch.setattr(wave_fractions, "_minima", lambda equation, part, factors, num_phases, config: tried.update(
    {printing.to_text(part.node, "xyzw"): (len(factors), num_phases)}) or [])
  for num_columns in (1, 4):
    x = rng.uniform(1, 2, (200, num_columns))
    list(fractions_of(Rows(x, np.sin(x[:, 0]), np.ones(200)), range(num_columns), Rule(num_columns)))
    if num_columns == 1:
      assert tried.pop("x") == (16, 768) and tried["log(x)"] == tried["x**2"] == tried["1/x**3"] == (16, 128)
      assert len(tried) == 13 and "cos(x)" in tried  # of fourteen one is popped
      tried.clear()
  assert tried["x"] == tried["w"] == (8, 768) and tried["x**2"] == tried["x/w"] == tried["x*y"] == (8, 128)
  assert tried["x*y*z"] == tried["x*y*z*w"] == (0, 128) and len(tried) == 12 + 24 + 32 + 16


def test_units_do_not_matter(x):
  y = 3 * x[:, 0] * np.tan(7.3 * x[:, 0])
  for size, units in ((1e6, 1e-6), (1e-6, 1e6)):
    task = make_task((size * x, units * y), ("x",), OPTIONS)
    assert least(task, ask(task)) < 1e-16


def test_under_noise_the_tangent_is_found_as_well(x, rng):
  clean = 3 * np.tan(7.3 * x[:, 0])
  noisy = clean + 0.05 * rng.normal(size=100)
  near = min(fractions_of(Rows(x, noisy, np.ones(100)), [0], Rule(1)),
             key=lambda node: np.median(np.abs(expression.evaluate(node, x) - clean)))
  assert np.median(np.abs(expression.evaluate(near, x) - clean)) < 0.05


def test_sums_that_hardly_turn_are_no_waves(rng):
  """`1/(cos(1e-3*(x - 1.3)**2) + 5)` and a constant come as near to a quartic as one likes."""
  x = rng.uniform(-5, 5, (100, 1))
  made = list(fractions_of(Rows(x, (x[:, 0] - 1.3464) ** 4, np.ones(100)), [0], Rule(1), is_of_sums=True))
  phases = [part.args[0] for node in made for part in expression.walk(node) if part.token in ("cos", "tan")]
  assert all(np.subtract(*np.quantile(expression.evaluate(phase, x), (0.75, 0.25))) > 0.2 for phase in phases)


def test_nothing_is_made_of_noise(x, rng):
  for is_of_sums in (False, True):
    assert not list(fractions_of(Rows(x, rng.normal(size=100), np.ones(100)), [0], Rule(1), is_of_sums=is_of_sums))


def test_few_rows_are_not_asked_of_and_some_not_for_factors(x):
  assert not WaveFractions(DEFAULT).supports(task_of("3*x*tan(7.3*x)", x[:27]))
  few = task_of("3*tan(7.3*x)", x[:28])
  assert WaveFractions(DEFAULT).supports(few) and least(few, ask(few)) < 1e-18
  for num_rows, is_met in ((39, False), (40, True)):
    rows = rows_of("3*x*tan(7.3*x)", x[:num_rows])
    errors = [np.max(np.abs(expression.evaluate(node, rows.x) - rows.y)) for node in fractions_of(rows, [0], Rule(1))]
    assert bool(min(errors, default=np.inf) < 1e-3) is is_met


def test_no_formula_has_an_operator_that_is_forbidden(x):
  task = task_of("3*log(x)*tan(7.3*x)", x, SearchOptions(restrictions=Restrictions(forbidden=("ln",))))
  nodes = ask(task)
  assert all(part.token != "ln" for node in nodes for part in expression.walk(node))
  without_sums = SearchOptions(restrictions=Restrictions(forbidden=("+",)))
  assert not WaveFractions(DEFAULT).supports(task_of("x", x, without_sums))
  assert WaveFractions(DEFAULT).supports(task)


def test_constant_columns_are_left_out(x, rng):
  wide = np.hstack([np.ones((100, 1)), x])
  rows = rows_of("2*tan(3.1*y) + x", wide)
  found = list(fractions_of(rows, [0, 1], Rule(2)))
  assert found and all(part.value == 1 for node in found for part in expression.walk(node) if part.token == "x")
  assert not list(fractions_of(rows, [0], Rule(2)))


@pytest.mark.parametrize(
  "column", [np.full(60, -3.0), np.linspace(-1e300, 1e300, 60), 1e-300 * np.arange(60), np.arange(60) % 2.0,
             np.r_[np.zeros(59), 1.0]])
@pytest.mark.parametrize("y", [np.arange(60.0), np.r_[np.zeros(59), 1e60], 1e-60 * np.sin(np.arange(60))])
@pytest.mark.parametrize("is_of_sums", [False, True])
def test_odd_rows_raise_nothing(column, y, is_of_sums):
  for node in fractions_of(Rows(column[:, None], y, np.ones(60)), [0], Rule(1), is_of_sums=is_of_sums):
    assert np.all(np.isfinite([part.value for part in expression.walk(node) if part.is_number]))


@pytest.mark.parametrize("is_of_sums", [False, True])
def test_a_target_that_is_the_same_in_the_rows_that_are_looked_at_tells_nothing(rng, is_of_sums):
  y = np.zeros(5000)
  y[:3] = 1.0  # none of them is among the rows
  rows = Rows(rng.uniform(1, 2, (5000, 2)), y, np.ones(5000))
  assert np.ptp(rows.sample(DEFAULT.wave_fractions.num_rows, seed=0).y) == 0
  assert not list(fractions_of(rows, [0, 1], Rule(2), is_of_sums=is_of_sums))


# --- the equation --------------------------------------------------------------------------------------------------


@pytest.fixture
def rows(x, rng):
  return Rows(x, np.tan(3 * x[:, 0]) + 0.1 * rng.normal(size=100), rng.uniform(0.5, 2, 100))


def test_shares_by_products_are_those_by_columns(rows, rng):
  equation = Equation(rows)
  phases, factors = rng.uniform(0.5, 4, (6, 1)) * rows.x[:, 0], np.stack([rows.x[:, 0], np.log(rows.x[:, 0])])
  shares = equation.shares(phases, factors)
  assert shares.shape == (6, 3)
  for k, phase in enumerate(phases):
    for m, some in enumerate(([], factors[:1], factors[1:])):
      assert shares[k, m] == pytest.approx(equation.left(phase, some)[0], rel=1e-6)


def test_the_share_is_the_least_of_all_denominators(rows, rng):
  """Beside least squares for each of many denominators."""
  equation, phase = Equation(rows), 1.7 * rows.x[:, 0]
  waves = np.stack([np.ones(100), np.cos(phase), np.sin(phase)], axis=1)
  y = (rows.y - np.median(rows.y)) / np.median(np.abs(rows.y - np.median(rows.y)))
  root = np.sqrt(rows.weights / (1 + y**2))[:, None]

  def share(below):
    left, right = root[:, 0] * y * (waves @ below), root * waves
    return np.sum((left - right @ np.linalg.lstsq(right, left, rcond=None)[0]) ** 2) / np.sum(left**2)

  least_of_many = min(share(below) for below in rng.normal(size=(4000, 3)))
  found = equation.left(phase, [])
  assert found[0] <= least_of_many < 1.05 * found[0] and np.all(np.diff(found) >= 0)
  assert share(equation.solve(phase, [])[0]) == pytest.approx(found[0], rel=1e-9)


def test_nothing_is_left_to_say_of_a_phase_that_is_none(rows):
  assert Equation(rows).left(np.zeros(100), []).tolist() == [np.inf] * 3


def test_coefficients_are_those_of_the_fraction(x):
  phase = 2.3 * x[:, 0]
  below, above = np.array([1.7, 0.4, -0.9]), np.array([[2.0, -1.0, 0.3], [0.7, 0.0, 1.1]])
  waves = np.stack([np.ones(100), np.cos(phase), np.sin(phase)])
  y = (above[0] @ waves + x[:, 0] * (above[1] @ waves)) / (below @ waves)
  found_below, found_above = Equation(Rows(x, y, np.ones(100))).solve(phase, [x[:, 0]])
  np.testing.assert_allclose(found_below / found_below[0], below / below[0], rtol=1e-8)
  np.testing.assert_allclose(found_above / found_below[0], above / below[0], rtol=1e-8, atol=1e-9)


# --- forms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("below, above, has", [
  ([0.0, 0.6, 0.8], [[0.3, 0.5, 1.1], [0.0, -0.4, 0.9]], "tan"),  # a cosine below the line
  ([1.0, 0.6, 0.8], [[0.3, 0.5, 1.1], [0.2, -0.4, 0.9]], "tan"),  # of half the phase
  ([-1.0, 0.6, 0.8], [[0.3, 0.5, 1.1], [0.2, -0.4, 0.9]], "tan"),
  ([2.0, 0.6, 0.8], [[0.3, 0.5, 1.1], [0.2, -0.4, 0.9]], "inv"),
  ([0.5, 0.6, 0.8], [[0.3, 0.5, 1.1], [0.2, -0.4, 0.9]], "inv"),  # with poles
  ([-3.0, 0.0, 0.0], [[0.3, 0.5, 1.1], [0.2, -0.4, 0.9]], "cos"),  # nothing but a wave
  ([1.0, -1.0, 0.0], [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]], "tan"),  # a cotangent
])
def test_each_form_is_the_fraction(below, above, has, x):
  below, above, phase = np.array(below), np.array(above), 1.3 * x[:, 0]
  parts = Phase((Part(variable(0), x[:, 0]),), np.array([1.3]))
  factors = [Part(Node("ln", (variable(0),)), np.log(x[:, 0]))]
  whole, *_ = wave_forms.written(parts, factors, below, above, nearly=0.05)
  waves = np.stack([np.ones(100), np.cos(phase), np.sin(phase)])
  y = (above[0] @ waves + factors[0].values * (above[1] @ waves)) / (below @ waves)
  np.testing.assert_allclose(expression.evaluate(whole, x), y, rtol=1e-9, atol=1e-9)
  assert has in {part.token for part in expression.walk(whole)}


def test_what_is_small_is_left_out_of_the_second_form(x):
  parts = Phase((Part(variable(0), x[:, 0]),), np.array([1.0]))
  below, above = np.array([0.0, 1.0, 0.0]), np.array([[0.0, 1e-3, 2.0]])
  whole, short = wave_forms.written(parts, [], below, above, nearly=0.05)
  assert printing.to_text(whole, ["x"]) == "2*tan(x) + 0.001" and printing.to_text(short, ["x"]) == "2*tan(x)"


def test_a_cotangent_is_written_as_one(x):
  parts = Phase((Part(variable(0), x[:, 0]),), np.array([1.0]))
  whole, *_ = wave_forms.written(parts, [], np.array([1.0, -1.0, 0.0]), np.array([[0.0, 0.0, 3.0]]), nearly=0.05)
  assert printing.to_text(whole, ["x"]) == "3/tan(0.5*x)"  # 3*sin(x)/(1 - cos(x))


def test_the_config_says_how_many_of_what_are_tried(x):
  config = dataclasses.replace(DEFAULT.wave_fractions, num_fitted=(0, 0))
  assert not list(fractions_of(rows_of("3*tan(7.3*x)", x), [0], Rule(1), config))
  with pytest.raises(ValueError, match="num_rows: expected a whole number"):
    dataclasses.replace(DEFAULT.wave_fractions, num_rows=0)
  with pytest.raises(ValueError, match="waves: unknown name 'cosine'"):
    dataclasses.replace(DEFAULT.wave_fractions, waves=("cosine",))
  config = dataclasses.replace(DEFAULT.wave_fractions, max_arguments=1)
  assert list(fractions_of(rows_of("3*tan(7.3*x)", x), [0], Rule(1), config))
  made = fractions_of(rows_of("3*tan(6.1/x)", x), [0], Rule(1), config)
  assert all("/x" not in printing.to_text(part, ["x"]) for node in made for part in expression.walk(node)
             if part.token in ("tan", "cos"))
