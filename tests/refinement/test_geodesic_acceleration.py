"""Steps that bend as the residuals do, against their second derivatives and where straight ones take too many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language import interpreter, parser, programs
from symformer_jax.refinement import levenberg_marquardt as lm, problem as problem_lib


@pytest.fixture(autouse=True)
def double():
  with jax.enable_x64(True):
    yield


def problem_of(text, x, y, weights=None):
  """Of the formula of x whose constants begin at those of the text, and these [C]."""
  node, vocab = parser.parse(text, ("x",)), programs.base_vocabulary(1)
  ids, values = programs.encode_programs([node], vocab, num_programs=1, length=24)
  num_slots = len(programs.fitted_values(node))
  program = interpreter.translate(jnp.asarray(ids[0]), jnp.asarray(values[0]), vocab=vocab, num_slots=num_slots)
  weights = np.ones(len(x)) if weights is None else weights
  made = problem_lib.make_problem(program, jnp.asarray(x)[:, None], jnp.asarray(y), jnp.asarray(weights),
                                  num_slots=num_slots)
  return made, problem_lib.initial_constants(program, num_slots)


def step_of(made, constants, *, damping=1e3, most_bent=1e9):
  """The straight step, what is to be added to it, and the matrix that both are solved with."""
  seen, rows = problem_lib.look(made, constants, jnp.ones(made.y.shape, bool))
  scale = jnp.diagonal(seen.gram)
  step, _, solve = lm._solve(seen, scale, jnp.asarray(damping), jnp.zeros(len(constants), bool))
  bend = lm._bend(made, rows, constants, step, solve, scale, most_bent)
  return np.asarray(step), np.asarray(bend), np.asarray(seen.gram) + damping * np.diag(np.asarray(scale))


@pytest.mark.slow
def test_the_bend_is_that_of_the_second_derivative(rng):
  x, weights = rng.uniform(-1, 2, 40), rng.uniform(0.2, 1, 40)
  made, constants = problem_of("2.5*exp(0.7*x)", x, rng.normal(size=40), weights)
  step, bend, matrix = step_of(made, constants)
  values = np.asarray(constants)
  factor, rate = (0, 1) if values[0] == 2.5 else (1, 0)
  growth, scale = np.exp(0.7 * x), float(made.scale)
  slopes = np.empty((2, 40))
  slopes[factor], slopes[rate] = growth / scale, 2.5 * x * growth / scale
  second = (2.5 * x**2 * growth * step[rate] ** 2 + 2 * x * growth * step[rate] * step[factor]) / scale
  expected = -0.5 * np.linalg.solve(matrix, slopes @ (weights / weights.sum() * second))
  np.testing.assert_allclose(bend, expected, rtol=0.01)


def test_of_what_is_linear_no_step_bends(rng):
  x = rng.uniform(-1, 2, 30)
  step, bend, _ = step_of(*problem_of("2.5*x + 0.7", x, rng.normal(size=30)), damping=1e-3)
  assert np.all(step != 0) and np.all(bend == 0)


def test_a_bend_is_followed_up_to_its_limit(rng):
  made, constants = problem_of("2.5*exp(0.7*x)", x := rng.uniform(-1, 2, 40), np.exp(0.9 * x))
  seen, _ = problem_lib.look(made, constants, jnp.ones(40, bool))
  step, bend, _ = step_of(made, constants, damping=0.1)
  scale = np.diag(np.asarray(seen.gram))
  share = 2 * np.sqrt(np.sum(scale * bend**2) / np.sum(scale * step**2))
  assert np.any(step_of(made, constants, damping=0.1, most_bent=share * 1.001)[1] != 0)
  assert np.all(step_of(made, constants, damping=0.1, most_bent=share * 0.999)[1] == 0)


def test_rows_without_a_value_beyond_say_nothing(rng):
  """A tenth of the step takes the logarithm of the first row below 0: the bend is that of the others."""
  x = np.append(0.01, rng.uniform(1, 3, 30))
  made, constants = problem_of("2.5*log(x + 0.002)", x, 2.5 * np.log(x))
  place = int(np.flatnonzero(np.asarray(constants) == 0.002)[0])
  down = jnp.zeros(2).at[place].set(-0.02 / lm.PROBE)
  assert not np.isfinite(problem_lib.weighted_residuals(made, constants + lm.PROBE * down)[0])
  seen, rows = problem_lib.look(made, constants, jnp.ones(31, bool))
  _, _, solve = lm._solve(seen, jnp.diagonal(seen.gram), jnp.asarray(1e-3), jnp.zeros(2, bool))
  bends = [np.asarray(lm._bend(made, some, constants, down, solve, jnp.ones(2), 1e9))
           for some in (rows, rows.at[1:, 0].set(0.0))]
  assert np.all(np.isfinite(bends[0])) and np.any(bends[0] != 0)
  np.testing.assert_allclose(*bends, rtol=1e-9)


@pytest.mark.parametrize(("num_steps", "loss_share", "is_taken", "bends"), [
  (8, 0.9, True, True), (7, 0.9, True, False), (8, 1.1, True, False), (8, 0.9, False, False)])
def test_only_late_steps_near_the_data_bend(num_steps, loss_share, is_taken, bends, rng):
  x = rng.uniform(-1, 2, 40)
  made, constants = problem_of("2.5*exp(0.7*x)", x, 2.51 * np.exp(0.69 * x))
  seen, _ = problem_lib.look(made, constants, jnp.ones(40, bool))
  found = []
  for most_bent in (9.0, 0.0):
    method = lm.LevenbergMarquardt(most_bent=most_bent, bent_below=float(seen.loss) / loss_share)
    state = method.init(made, constants)._replace(
      num_steps=jnp.int32(num_steps), scale=jnp.diagonal(seen.gram),
      evaluation=seen._replace(loss=seen.loss * (2.0 if is_taken else 1 - 1e-9)))
    found.append(np.asarray(method.step(made, state).trial))
  assert np.any(found[0] != found[1]) == bends


def test_residuals_alone_are_the_first_row_of_all(rng):
  x, weights = rng.uniform(0.1, 2, 30), rng.uniform(0.2, 1, 30)
  made, constants = problem_of("2.5*exp(0.7*x) - 1.1*log(x)", x, rng.normal(size=30), weights)
  moved = constants + 0.3
  np.testing.assert_allclose(
    problem_lib.weighted_residuals(made, moved), problem_lib.look(made, moved, jnp.ones(30, bool))[1][0], rtol=1e-12)


@pytest.mark.parametrize(("changes", "is_met"), [
  ({}, True), ({"most_bent": 0.0}, False), ({"decrease": 1 / 30}, True),
  ({"decrease": 1 / 30, "most_bent": 0.0}, False)])
def test_the_end_of_a_curved_valley_is_reached(changes, is_met, rng):
  """Vapour pressure less a constant, from half of the offset: straight ones are far from it after as many."""
  x = rng.uniform(5, 28, 100)
  y = np.exp(21.0557 - 5417.753 / (x + 273.15)) - 5.555
  made, constants = problem_of("exp(12.84 - 1563.9/(x + 131.17)) - 4.57", x, y)
  method = lm.LevenbergMarquardt(**changes)
  step, state = jax.jit(method.step), method.init(made, constants)
  for _ in range(110):
    state = step(made, state)
  assert (float(state.evaluation.loss) < 1e-20) is is_met
  assert is_met or float(state.evaluation.loss) > 1e-9


def test_bold_steps_are_those_before_the_ninth(rng):
  x = rng.uniform(0, 2, 30)
  made, constants = problem_of("2.5*x + 0.7", x, 3 * x)
  method = lm.LevenbergMarquardt(decrease=1 / 30)
  first = method.step(made, method.init(made, constants))
  for num_steps, factor in ((7, 30), (8, 3)):
    after = method.step(made, first._replace(num_steps=jnp.int32(num_steps)))
    assert float(first.damping / after.damping) == pytest.approx(factor, rel=1e-2)
