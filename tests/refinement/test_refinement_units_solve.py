"""The driver of the fits and each method's single step, without a compiled fit: made up methods, losses by hand."""

import concurrent.futures
import functools
import math
import threading
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import (
  bfgs,
  gradient_descent,
  levenberg_marquardt as lm,
  problem as problem_lib,
  solve,
  trace,
)
from symformer_jax.refinement.problem import Evaluation, Status

VOCAB = Vocabulary(1)


def problem_of(num_points=1, *, y=None, weights=None, is_exponent=(False,), scale=1.0, is_used=(True,)):
  y = np.ones(num_points, np.float32) if y is None else np.asarray(y, np.float32)
  weights = np.full(len(y), 1 / len(y), np.float32) if weights is None else np.asarray(weights, np.float32)
  return problem_lib.Problem(
    None, None, jnp.asarray(y), jnp.asarray(weights), jnp.float32(scale), jnp.asarray(is_used),
    jnp.asarray(is_exponent), None, jnp.float32(jnp.inf))


def evaluation(loss, *, gradient=(0.0,), gram=None, mask=(True,), common=None):
  gram = np.eye(len(gradient), dtype=np.float32) if gram is None else np.asarray(gram, np.float32)
  return Evaluation(jnp.float32(loss), jnp.float32(loss if common is None else common),
                    jnp.asarray(gradient, jnp.float32), jnp.asarray(gram), jnp.asarray(mask))


@pytest.fixture
def eager():
  """Loops in Python: what is made up here is not worth a compilation."""
  with jax.disable_jit():
    yield


# --- what is asked of the compiled fit -------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
  """What `_fit` is called with, the calls in threads among them."""
  found, lock = [], threading.Lock()

  def fit(per_candidate, shared, num, **options):
    with lock:
      found.append((per_candidate, shared, {"num": num, **options}))
    return per_candidate[1], solve.Fit(*[np.asarray(per_candidate[0])[:, 0]] * 5)

  monkeypatch.setattr(solve, "_fit", fit)
  monkeypatch.setattr(solve, "_compiled", set())
  return found


def candidates(num, length=4):
  return np.arange(num * length, dtype=np.int32).reshape(num, length), np.ones((num, length), np.float32)


def points(num=6):
  return np.ones((num, 1), np.float32), np.arange(num, dtype=np.float32), np.ones(num, np.float32)


def test_one_data_set_is_one_of_several_and_defaults_go_by_the_method(asked):
  for method, steps in (("lm", 50), ("bfgs", 200), ("gd", 300), ("none", 1)):
    solve.fit_candidates(*candidates(3), *points(), vocab=VOCAB, method=method)
    (ids, values, is_free, dataset), (x, y, weights), options = asked.pop()
    assert x.shape == (1, 6, 1) and y.shape == weights.shape == (1, 6) and is_free is None
    assert dataset.tolist() == [0, 0, 0] and dataset.dtype == np.int32 and ids.shape == values.shape == (3, 4)
    assert options == {"num": 3, "vocab": VOCAB, "method": method, "max_steps": steps, "max_constants": 16,
                       "plan": "loop", "is_persistent": False}
    assert options["max_steps"].dtype == np.int32
  solve.fit_candidates(*candidates(3), *points(), vocab=VOCAB)
  assert asked.pop()[2]["method"] == "lm"
  several = tuple(np.stack([array, array]) for array in points())
  solve.fit_candidates(*candidates(3), *several, vocab=VOCAB, max_steps=7, max_constants=4, plan="vmap",
                       is_persistent=True, dataset=np.array([0, 1, 1]), is_free=np.ones((3, 4), bool))
  (_, _, is_free, dataset), (x, _, _), options = asked.pop()
  assert x.shape == (2, 6, 1) and dataset.tolist() == [0, 1, 1] and is_free.all()
  assert (options["max_steps"], options["max_constants"], options["plan"], options["is_persistent"]) == (
    7, 4, "vmap", True)
  with pytest.raises(ValueError, match="unknown plan 'map': expected 'loop' or 'vmap'"):
    solve.fit_candidates(*candidates(3), *points(), vocab=VOCAB, plan="map")


@pytest.mark.parametrize(("num", "cores", "options", "num_parts"), [
  (63, 4, {}, 1), (64, 4, {}, 2), (95, 4, {}, 2), (96, 4, {}, 3), (500, 4, {}, 4), (500, 2, {}, 2), (500, 1, {}, 1),
  (500, None, {}, 1), (64, 4, {"plan": "vmap"}, 1)])
def test_many_candidates_are_dealt_to_the_cores(num, cores, options, num_parts, asked, monkeypatch):
  monkeypatch.setattr(solve.os, "cpu_count", lambda: cores)
  ids, values = candidates(num)
  dataset = np.arange(num, dtype=np.int32)
  found, fit = solve.fit_candidates(ids, values, *points(), vocab=VOCAB, dataset=dataset, **options)
  assert len(asked) == num_parts and {len(part[0]) for part, _, _ in asked} == {-(-num // num_parts)}
  np.testing.assert_array_equal(fit.loss, ids[:, 0])  # in the order that they came in
  assert len(found) == num and fit.steps.shape == (num,)
  dealt = sorted(part[3][:3].tolist() for part, _, _ in asked)
  assert dealt == [[i, i + num_parts, i + 2 * num_parts] for i in range(num_parts)]
  assert sum(options["num"] for _, _, options in asked) == num
  if num == 95:
    assert sorted(int(part[3][-1]) for part, _, _ in asked) == [94, 94]  # the last again


@pytest.mark.parametrize(("num", "nums"), [
  (1, [2]), (7, [8]), (8, [5, 4]), (94, [48, 47]), (95, [48, 48]), (96, [48, 48])])
def test_what_fills_a_block_up_is_fitted_once_and_few_by_one_thread(num, nums, asked, monkeypatch):
  monkeypatch.setattr(solve.os, "cpu_count", lambda: 2)
  ids, values = candidates(96)
  ids[num:], dataset = 0, np.zeros(96, np.int32)
  ids[0] = 7  # as the padding is not
  _, fit = solve.fit_candidates(ids, values, *points(), vocab=VOCAB, dataset=dataset)
  assert sorted((int(options["num"]) for _, _, options in asked), reverse=True) == nums
  assert {len(part[0]) for part, _, _ in asked} == {48}
  np.testing.assert_array_equal(fit.loss, ids[:, 0])


def test_elsewhere_than_on_a_cpu_and_inside_jit_there_are_no_threads(asked, monkeypatch):
  monkeypatch.setattr(solve.os, "cpu_count", lambda: 4)
  monkeypatch.setattr(solve.jax, "default_backend", lambda: "gpu")
  solve.fit_candidates(*candidates(500), *points(), vocab=VOCAB)
  monkeypatch.undo()
  assert len(asked) == 1
  traced = []

  def fit(per_candidate, shared, num, **options):
    traced.append(len(per_candidate[0]))
    return shared[0]
  monkeypatch.setattr(solve, "_fit", fit)
  monkeypatch.setattr(solve.os, "cpu_count", lambda: 4)
  jax.jit(lambda x: solve.fit_candidates(*candidates(500), x, *points()[1:], vocab=VOCAB))(points()[0])
  assert traced == [500]


def test_what_is_new_is_compiled_by_one_thread_first(asked, monkeypatch):
  monkeypatch.setattr(solve.os, "cpu_count", lambda: 3)
  pools = []

  class Pool(concurrent.futures.ThreadPoolExecutor):
    def map(self, function, some):
      pools.append(len(some))
      return super().map(function, some)

  monkeypatch.setattr(solve.concurrent.futures, "ThreadPoolExecutor", Pool)
  every = {"vocab": VOCAB, "max_steps": 5}
  for options, waits in (({}, True), ({}, False), ({"max_steps": 6}, False), ({"method": "gd"}, True),
                         ({"max_constants": 4}, True), ({"is_free": np.ones((96, 4), bool)}, True)):
    solve.fit_candidates(*candidates(96), *points(), **{**every, **options})
    assert pools.pop() == (2 if waits else 3)
  solve.fit_candidates(*candidates(96), *points(7), **every)
  assert pools.pop() == 2
  with jax.enable_x64(True):
    solve.fit_candidates(*candidates(96), *points(), **every)
  assert pools.pop() == 2


def test_threads_compute_in_the_precision_of_whoever_asks(monkeypatch):
  monkeypatch.setattr(solve.os, "cpu_count", lambda: 2)
  monkeypatch.setattr(solve, "_compiled", set())
  kinds = []

  def fit(per_candidate, shared, num, **options):
    kinds.append(jnp.zeros(1).dtype)
    return per_candidate[1], solve.Fit(*[np.asarray(per_candidate[0])[:, 0]] * 5)

  monkeypatch.setattr(solve, "_fit", fit)
  for wide in (True, False):
    kinds.clear()
    with jax.enable_x64(wide):
      solve.fit_candidates(*candidates(64), *points(), vocab=VOCAB)
    assert set(kinds) == {np.dtype(np.float64 if wide else np.float32)}


def test_finalists_are_fitted_in_double_precision_by_a_hundred_steps(monkeypatch):
  asked = []

  def fit_candidates(ids, *arrays, **options):
    asked.append(([a.dtype for a in arrays], jnp.zeros(1).dtype, options))
    return jnp.zeros(3), solve.Fit(*[jnp.zeros(3)] * 5)

  monkeypatch.setattr(solve, "fit_candidates", fit_candidates)
  found, fit = solve.polish(*candidates(3), *points(), vocab=VOCAB, method="gd")
  (kinds, kind, options), = asked
  assert set(kinds) == {np.dtype(np.float64)} and kind == np.float64
  assert options == {"vocab": VOCAB, "max_steps": 100, "method": "gd"}
  assert isinstance(found, np.ndarray) and isinstance(fit.loss, np.ndarray) and found.dtype == np.float64


# --- inside of it ----------------------------------------------------------------------------------------------------


class Translated(NamedTuple):
  """Programs as far as the driver looks at them."""

  slots: Any
  numbers: Any
  length: Any


@pytest.fixture
def translated(monkeypatch):
  """Programs by hand: of the constant tokens the first have slots."""
  def translate(ids, values, *, vocab, is_free, num_slots):
    is_constant = np.asarray(vocab.is_constant)[ids]
    slots = np.where(is_constant, np.cumsum(is_constant, axis=1) - 1, -1)
    assert is_free is None
    return Translated(jnp.asarray(np.where(slots < num_slots, slots, -1)), values, jnp.asarray(np.sum(ids > 0, axis=1)))
  monkeypatch.setattr(solve.interpreter, "translate", translate)


def test_points_are_padded_to_sixteen_and_candidates_go_in_as_many_as_memory_holds(monkeypatch, translated):
  asked = []

  def one(program, x, y, weights, num_tokens, *, method, max_steps, is_persistent, num_slots):
    asked.append((x, y, weights, num_tokens, num_slots, method, max_steps, is_persistent))
    return jnp.zeros(num_slots), jnp.zeros(()), jnp.int32(0), jnp.int32(1), jnp.int32(0)

  sizes, mapped = [], jax.lax.map

  def lax_map(function, some, *, batch_size=None):
    sizes.append(batch_size)
    return mapped(function, some)

  monkeypatch.setattr(solve, "_fit_one", one)
  monkeypatch.setattr(solve.jax.lax, "map", lax_map)
  ids = np.zeros((5, 6), np.int32)
  ids[:, 0] = VOCAB.first_variable_id
  ids[0, 0] = VOCAB.first_constant_id
  values = np.full((5, 6), 2.5, np.float32)
  x, y, weights = np.arange(19, dtype=np.float32)[None, :, None], np.ones((1, 19), np.float32), np.ones((1, 19))
  fit = functools.partial(
    solve._fit.__wrapped__, (ids, values, None, np.zeros(5, np.int32)), (x, y, weights), np.int32(5), vocab=VOCAB,
    method="gd", max_steps=9, max_constants=3, is_persistent=True)
  found, _ = fit(plan="loop")
  # One constant of three slots, which the made up fit puts at 0; other tokens have no number.
  np.testing.assert_array_equal(found, np.zeros((5, 6)))
  (x_, y_, weights_, _, num_slots, method, max_steps, is_persistent), = asked
  assert x_.shape == (32, 1) and y_.shape == weights_.shape == (32,) and (num_slots, method) == (3, "gd")
  assert (max_steps, is_persistent) == (9, True) and weights_.dtype == np.float32 and not sizes
  asked.clear()
  per_candidate = (6 // 2 + 2) * (1 + 3) * 32 * 4  # stacks of values and derivatives
  for most, size in ((3 * per_candidate, 3), (4 * per_candidate - 1, 3), (99 * per_candidate, 5), (1, 1)):
    monkeypatch.setattr(solve, "MAX_STACK_BYTES", most)
    fit(plan="vmap")
    assert sizes.pop() == size
  (*_, num_slots, method, max_steps, is_persistent) = asked[0]
  assert (num_slots, method, max_steps, is_persistent) == (3, "gd", 9, True)


def test_padding_repeats_the_last_point_without_weight(monkeypatch, translated):
  seen = []

  def one(program, x, y, weights, num_tokens, *, num_slots, **rest):
    seen.append(x)
    return x[-3:, 0], y[-1], jnp.int32(0), jnp.int32(0), jnp.int32(jnp.sum(weights > 0))

  monkeypatch.setattr(solve, "_fit_one", one)
  ids = np.full((1, 2), VOCAB.first_variable_id, np.int32)
  x, y, weights = np.arange(14, dtype=np.float32)[None, :, None] + 1, np.ones((1, 14), np.float32), np.ones((1, 14))
  _, fit = solve._fit.__wrapped__(
    (ids, np.zeros((1, 2), np.float32), None, np.zeros(1, np.int32)), (x, y, weights), np.int32(1), vocab=VOCAB,
    method="lm", max_steps=9, max_constants=3, plan="loop", is_persistent=False)
  assert fit.values.tolist() == [[14, 14, 14]] and fit.loss.tolist() == [0] and fit.num_undefined.tolist() == [14]
  assert seen[0].shape == (16, 1)


def test_points_are_padded_within_each_data_set_and_columns_stay(monkeypatch, translated):
  found, pad = [], jnp.pad
  monkeypatch.setattr(jnp, "pad", lambda *given, **named: found.append(pad(*given, **named)) or found[-1])
  monkeypatch.setattr(solve, "_fit_one", lambda program, x, y, weights, num_tokens, *, num_slots, **rest: (
    jnp.zeros(num_slots), y[0], jnp.int32(0), jnp.int32(0), jnp.int32(0)))
  x = np.arange(84, dtype=np.float32).reshape(2, 14, 3)
  y, weights = x[..., 0] + 1, np.ones((2, 14))
  ids = np.full((1, 2), VOCAB.first_variable_id, np.int32)
  _, fit = solve._fit.__wrapped__(
    (ids, np.zeros((1, 2), np.float32), None, np.ones(1, np.int32)), (x, y, weights), np.int32(1), vocab=VOCAB,
    method="lm", max_steps=9, max_constants=3, plan="loop", is_persistent=False)
  np.testing.assert_array_equal(found[0], np.concatenate([x, np.repeat(x[:, -1:], 2, axis=1)], axis=1))
  for padded, own in zip(found[1:3], (y, weights), strict=True):
    np.testing.assert_array_equal(padded, np.concatenate([own, np.zeros((2, 2))], axis=1))
  assert fit.loss.tolist() == [y[1, 0]]


def test_numbers_stand_where_they_were_fitted_and_others_stay(monkeypatch, translated):
  def one(program, x, y, weights, num_tokens, *, num_slots, **rest):
    return 10.0 + jnp.arange(num_slots, dtype=jnp.float32), jnp.zeros(()), *[jnp.int32(0)] * 3

  monkeypatch.setattr(solve, "_fit_one", one)
  constant, times = VOCAB.first_constant_id, VOCAB.ids["*"]
  ids = np.array([[times, constant, times, constant, times, constant, VOCAB.first_variable_id, 0]], np.int32)
  values = np.array([[7.0, 2.5, 7, 3.5, 7, 4.5, 7, 7]], np.float32)
  x, y, weights = (array[None] for array in points(16))
  for plan in ("loop", "vmap"):
    found, _ = solve._fit.__wrapped__(
      (ids, values, None, np.zeros(1, np.int32)), (x, y, weights), np.int32(1), vocab=VOCAB, method="lm",
      max_steps=9, max_constants=2, plan=plan, is_persistent=False)
    assert found.tolist() == [[0, 10, 0, 11, 0, 4.5, 0, 0]]  # of three constants two have slots


@pytest.mark.parametrize(("slots", "max_constants", "width"), [
  ([0, 1, 2, 3], 9, 4), ([0, 1, 2, 3, 4], 9, 9), ([-1, -1], 9, 4), ([0, 1], 4, 4), ([0, 1], 3, 3)])
def test_few_constants_are_fitted_in_narrow_rows(slots, max_constants, width):
  asked = []

  def fit(*, num_slots):
    asked.append(num_slots)
    return jnp.full(num_slots, float(num_slots)), *[jnp.float32(num_slots)] * 4

  found = solve._by_size(fit, SimpleNamespace(slots=jnp.array(slots)), max_constants)
  assert [float(each) for each in found[1:]] == [width] * 4
  assert found[0].tolist() == [width] * width + [0] * (max_constants - width)
  assert max_constants > 4 or asked == [max_constants]


class Drawn(NamedTuple):
  """The state of a made up method."""

  constants: jax.Array
  evaluation: Evaluation
  num_steps: jax.Array


def fitted_one(monkeypatch, problem, found, *, method="lm", is_persistent=False, status=Status.CONVERGED, start=None):
  asked = []

  def minimize(solver, given, begin, limit):
    asked.append((solver, int(limit), begin, is_persistent))
    return (jnp.array([5.0]), found), jnp.int32(status), jnp.int32(7)

  monkeypatch.setattr(solve, "_minimize_persistently" if is_persistent else "_minimize", minimize)
  monkeypatch.setattr(problem_lib, "make_problem", lambda *given, **named: problem)
  monkeypatch.setattr(problem_lib, "initial_constants", lambda program, num_slots: "drawn by the program")
  constants, loss, status, steps, num_undefined = solve._fit_one(
    None, *[None] * 4, method=method, max_steps=9, num_slots=1, start=start, is_persistent=is_persistent)
  assert constants.tolist() == [5.0] and int(steps) == 7 and status.dtype == num_undefined.dtype == np.int32
  return float(loss), Status(int(status)), int(num_undefined), asked[0]


def test_what_a_fit_reports(monkeypatch):
  problem = problem_of(3, weights=[0.5, 0.5, 0.0], scale=4.0)
  loss, status, num, (solver, limit, begin, _) = fitted_one(
    monkeypatch, problem, evaluation(0.25, mask=(True, True, False)))
  assert (loss, status, num, limit, begin) == (0.25 * 16, Status.CONVERGED, 0, 9, "drawn by the program")
  assert solver.decrease == pytest.approx(1 / 30)
  loss, status, num, _ = fitted_one(monkeypatch, problem, evaluation(0.25, mask=(True, False, False)))
  assert (loss, status, num) == (math.inf, Status.UNDEFINED, 1)
  _, status, _, (_, limit, _, _) = fitted_one(
    monkeypatch, problem._replace(is_used=jnp.array([False])), evaluation(0.25, mask=(True, True, True)))
  assert (status, limit) == (Status.NO_CONSTANTS, 1)
  loss, _, _, (solver, limit, _, _) = fitted_one(
    monkeypatch, problem, evaluation(0.25, mask=(True, True, True)), method="none")
  assert limit == 1 and isinstance(solver, lm.LevenbergMarquardt)
  for method, kind in (("bfgs", bfgs.BFGS), ("gd", gradient_descent.GradientDescent)):
    assert isinstance(fitted_one(monkeypatch, problem, evaluation(1.0), method=method)[3][0], kind)
  *_, (solver, _, begin, was_persistent) = fitted_one(
    monkeypatch, problem, evaluation(1.0), is_persistent=True, start="given")
  assert solver.decrease == pytest.approx(1 / 3) and begin == "given" and was_persistent


class Walk:
  """A made up method: each step adds one to the constant (of a chordal problem ten), what it sees is given."""

  def __init__(self, seen, end=lambda constant: False):
    self.seen, self.end = seen, end

  def init(self, problem, constants):
    return Drawn(constants, problem_lib.no_evaluation(problem), jnp.int32(0))

  def step(self, problem, state):
    constants = state.constants + jnp.where(jnp.isfinite(problem.knee), 10.0, 1.0)
    return Drawn(constants, self.seen(constants[0]), state.num_steps + 1)

  def terminate(self, problem, state):
    return self.end(state.constants[0]) | jnp.asarray(False), jnp.int32(Status.DIVERGED)


def seen_of(loss, is_defined=lambda constant: jnp.asarray(True)):
  def seen(constant):
    each = evaluation(1.0)
    return each._replace(loss=jnp.float32(loss(constant)), mask=is_defined(constant)[None])
  return seen


def test_a_fit_ends_where_its_method_says_so_or_with_its_steps(eager):
  for end, limit, expected in ((3.0, 9, (3.0, 3, Status.DIVERGED)), (99.0, 4, (4.0, 4, Status.DIVERGED)),
                               (1.0, 9, (1.0, 1, Status.DIVERGED)), (1.0, 0, (0.0, 0, Status.STEP_LIMIT))):
    (constants, found), status, steps = solve._minimize(
      Walk(seen_of(lambda c: 10 - c), lambda c, end=end: c >= end), problem_of(), jnp.zeros(1), jnp.int32(limit))
    assert (float(constants[0]), int(steps), int(status)) == expected
    assert not int(steps) or float(found.loss) == 10 - float(constants[0])


def persistently(walk, *, start=0.25, limit=2, is_exponent=False, y=(1.0,)):
  (constants, found), status, steps = solve._minimize_persistently(
    walk, problem_of(y=y, is_exponent=(is_exponent,)), jnp.array([start], jnp.float32), jnp.int32(limit))
  return float(constants[0]), float(found.loss), int(status), int(steps)


def test_attempts_follow_one_another_until_one_is_exact(eager):
  # Directly to 2.25, by chords to 20.25, from there to 22.25; of these the last has the least loss.
  assert persistently(Walk(seen_of(lambda c: 100 - c))) == (22.25, 77.75, Status.DIVERGED, 6)
  # ... the first.
  assert persistently(Walk(seen_of(lambda c: c))) == (2.25, 2.25, Status.DIVERGED, 6)
  # Exact at once, and one step: no more.
  assert persistently(Walk(seen_of(lambda c: 0.0))) == (2.25, 0.0, Status.DIVERGED, 2)
  assert persistently(Walk(seen_of(lambda c: 5.0)), limit=1) == (1.25, 5.0, Status.DIVERGED, 1)
  # What chords alone meet counts where it is met plainly as well: the loss of the second attempt is another one.
  best, loss, _, steps = persistently(Walk(seen_of(lambda c: jnp.where(c == 20.25, 0.0, 5.0))))
  assert (best, loss, steps) == (2.25, 5.0, 6)
  # An attempt that the method ends takes fewer steps.
  *_, steps = persistently(Walk(seen_of(lambda c: 5.0), lambda c: c == 1.25), limit=4)
  assert steps == 1 + 4 + 4


def test_exponents_take_the_other_parity_where_the_start_is_undefined(eager):
  def is_defined_from(least):
    return lambda constant: constant >= least

  # 0.25 is beside 1 - 0.25 = 0.75 of the other parity: from there two steps.
  every = seen_of(lambda c: 100 - c)
  assert persistently(Walk(every), is_exponent=True)[3] == 6  # defined at once: no other parity
  undefined = seen_of(lambda c: jnp.abs(c - 2.75) + 1, is_defined_from(2.5))
  assert persistently(Walk(undefined))[3] == 6  # no exponent: none
  constant, loss, _, steps = persistently(Walk(undefined), is_exponent=True)
  assert (constant, loss, steps) == (2.75, 1.0, 8)
  # What was better stays for what follows: chords begin at 0.75, and end at 20.75 + 2.
  later = seen_of(lambda c: jnp.where(c == 22.75, 0.5, 3.0), is_defined_from(2.5))
  assert persistently(Walk(later), is_exponent=True)[:2] == (22.75, 0.5)
  # Where the other parity was no better, at 0.25, and end at 20.25 + 2.
  worse = seen_of(lambda c: jnp.where(c == 22.25, 0.5, jnp.where(c == 2.25, 1.0, 3.0)), lambda c: c != 1.25)
  assert persistently(Walk(worse), is_exponent=True)[:2] == (22.25, 0.5)
  # Whether it is defined is seen at the start alone.
  lost = seen_of(lambda c: 5.0, lambda c: c != 2.25)
  assert persistently(Walk(lost), is_exponent=True)[3] == 6


def test_every_start_of_every_data_set_has_its_fit(monkeypatch, eager):
  asked = []

  def one(program, x, y, weights, num_tokens, *, method, max_steps, num_slots, start, is_persistent):
    asked.append((method, max_steps, num_slots, is_persistent, num_tokens))
    return start, y[0], x[0, 0].astype(int), jnp.int32(weights[0]), jnp.int32(0)

  monkeypatch.setattr(solve, "_fit_one", one)
  starts = np.arange(12.0).reshape(2, 3, 2)
  x, y, weights = np.array([[[5.0]], [[6.0]]]), np.array([[7.0], [8.0]]), np.array([[3.0], [4.0]])
  fit = solve.fit_starts.__wrapped__(SimpleNamespace(length=9), jnp.asarray(starts), jnp.asarray(x), jnp.asarray(y),
                                     jnp.asarray(weights))
  np.testing.assert_array_equal(fit.values, starts)
  assert fit.loss.tolist() == [[7] * 3, [8] * 3] and fit.status.tolist() == [[5] * 3, [6] * 3]
  assert fit.steps.tolist() == [[3] * 3, [4] * 3] and set(asked) == {("lm", 200, 2, True, 9)}


# --- single steps ----------------------------------------------------------------------------------------------------


def parabola(monkeypatch, curvature, centre):
  """Loss sum of a*(c - m)**2, halves of whose slopes are a*(c - m); its Gauss-Newton matrix."""
  a, m = jnp.asarray(curvature, jnp.float32), jnp.asarray(centre, jnp.float32)

  def evaluate(problem, constants, mask):
    loss = jnp.sum(a * (constants - m) ** 2)
    return Evaluation(loss, loss, a * (constants - m), jnp.diag(a), jnp.asarray([True]))
  monkeypatch.setattr(problem_lib, "evaluate", evaluate)
  monkeypatch.setattr(problem_lib, "look", lambda *given: (evaluate(*given), jnp.zeros((1 + len(curvature), 1))))
  return lambda c: float(np.sum(np.asarray(curvature) * (np.asarray(c) - np.asarray(centre)) ** 2))


def test_gradient_descent_measures_constants_by_their_size_and_adapts_its_rate(monkeypatch):
  loss = parabola(monkeypatch, [2.0, 0.5], [1.0, -1.0])
  method, problem = gradient_descent.GradientDescent(), problem_of(is_used=(True, True))
  state = method.init(problem, jnp.array([-4.0, 0.0], jnp.float32))
  assert state.sizes.tolist() == [4, 1] and float(state.rate) == 0 and float(state.reduction) == math.inf
  assert int(state.num_steps) == 0
  first = method.step(problem, state)
  rate = 1 / (16 * 2.0 + 1 * 0.5)
  assert first.constants.tolist() == [-4, 0] and float(first.rate) == pytest.approx(rate) and int(first.num_steps) == 1
  assert float(first.reduction) == math.inf and float(first.evaluation.loss) == loss([-4, 0])
  second = method.step(problem, first)
  moved = np.array([-4, 0]) - rate * np.array([16, 1]) * np.array([2 * -5, 0.5 * 1])
  np.testing.assert_allclose(second.constants, moved, rtol=1e-6)
  assert float(second.rate) == pytest.approx(1.3 * rate) and second.sizes.tolist() == [4, 1]
  assert float(second.reduction) == pytest.approx(loss([-4, 0]) - loss(moved))
  far = method.step(problem, first._replace(rate=jnp.float32(10 * rate)))
  assert far.constants.tolist() == [-4, 0] and float(far.rate) == pytest.approx(4 * rate)
  assert float(far.reduction) == math.inf and int(far.num_steps) == 2
  # Twice as far as the best is as good as before: no gain.
  even = gradient_descent.State(jnp.array([0.0, -1.0]), evaluation(2.0, gradient=(-2.0, 0.0)), jnp.ones(2),
                                jnp.float32(1.0), jnp.float32(1.0), jnp.int32(3))
  assert method.step(problem, even).constants.tolist() == [0, -1]


def test_gradient_descent_ends_as_a_method_of_slopes_does(monkeypatch):
  asked = []
  monkeypatch.setattr(gradient_descent, "descent_status", lambda *given: asked.append(given))
  state = gradient_descent.State(jnp.array([2.0]), evaluation(3.0, gradient=(0.5,)), jnp.array([4.0]),
                                 jnp.float32(0.1), jnp.float32(7.0), jnp.int32(3))
  gradient_descent.GradientDescent().terminate("problem", state)
  (problem, found, reduction, step, constants), = asked
  assert problem == "problem" and found is state.evaluation and float(reduction) == 7 and constants.tolist() == [2]
  assert step.tolist() == pytest.approx([-0.1 * 16 * 0.5])


def test_bfgs_begins_with_the_diagonal_and_ends_a_parabola_in_two_looks(monkeypatch):
  loss = parabola(monkeypatch, [2.0, 0.5], [1.0, -1.0])
  method, problem = bfgs.BFGS(), problem_of(is_used=(True, True), is_exponent=(False, False))
  state = method.init(problem, jnp.array([-4.0, 0.0], jnp.float32))
  assert state.inverse.tolist() == [[1, 0], [0, 1]] and float(state.length) == 1 and int(state.num_steps) == 0
  assert float(state.reduction) == math.inf and state.direction.tolist() == [0, 0]
  first = method.step(problem, state)
  np.testing.assert_allclose(first.inverse, [[0.5, 0], [0, 2]])
  np.testing.assert_allclose(first.direction, [5, -1])
  assert first.constants.tolist() == [-4, 0] and float(first.reduction) == math.inf and int(first.num_steps) == 1
  second = method.step(problem, first)
  np.testing.assert_allclose(second.constants, [1, -1], atol=1e-6)
  assert float(second.reduction) == pytest.approx(loss([-4, 0])) and float(second.length) == 1
  far = method.step(problem, first._replace(length=jnp.float32(2.5)))
  assert far.constants.tolist() == [-4, 0] and float(far.length) == pytest.approx(0.75)
  np.testing.assert_array_equal(far.inverse, first.inverse)
  np.testing.assert_array_equal(far.direction, first.direction)
  assert float(far.reduction) == math.inf
  near = method.step(problem, first._replace(length=jnp.float32(0.5)))
  np.testing.assert_allclose(near.constants, [-1.5, -0.5])
  assert float(near.length) == 1 and float(near.reduction) == pytest.approx(loss([-4, 0]) - loss([-1.5, -0.5]))
  flat = parabola(monkeypatch, [2.0, 0.0], [1.0, 0.0])
  np.testing.assert_allclose(method.step(problem, state).inverse, [[0.5, 0], [0, 1]])
  assert flat([1, 5]) == 0


@pytest.mark.parametrize(("decrease", "is_taken"), [(2.2e-4, True), (1.8e-4, False), (-1.0, False)])
def test_a_step_of_bfgs_must_come_to_a_ten_thousandth_of_what_its_slope_promises(decrease, is_taken, monkeypatch):
  monkeypatch.setattr(problem_lib, "evaluate", lambda problem, constants, mask: evaluation(1.0 - decrease))
  state = bfgs.BFGS().init(problem_of(), jnp.zeros(1))._replace(
    evaluation=evaluation(1.0, gradient=(-2.0,)), direction=jnp.array([1.0]), length=jnp.float32(0.5),
    num_steps=jnp.int32(1))
  # Twice half the slope times the length: a decrease of 2 is promised.
  assert (bfgs.BFGS().step(problem_of(), state).constants.tolist() == [0.5]) is is_taken


@pytest.mark.parametrize(("direction", "length", "is_done"), [
  (1e-4, 1e-4, True), (1e-3, 1e-3, False), (1e6, 1e-2, False)])
def test_bfgs_is_stuck_where_its_next_step_is_a_rounding_however_long_its_direction(direction, length, is_done):
  state = bfgs.BFGS().init(problem_of(), jnp.ones(1))._replace(
    evaluation=evaluation(1.0, gradient=(0.5,)), direction=jnp.array([direction]), length=jnp.float32(length))
  found = bfgs.BFGS().terminate(problem_of(), state)
  assert (bool(found[0]), int(found[1])) == (is_done, Status.DIVERGED if is_done else Status.STEP_LIMIT)


def test_bfgs_takes_no_step_along_which_nothing_falls_even_where_its_slope_promises_nothing(monkeypatch):
  same = evaluation(1.0, gradient=(0.5,))
  monkeypatch.setattr(problem_lib, "evaluate", lambda problem, constants, mask: same)
  state = bfgs.BFGS().init(problem_of(), jnp.zeros(1))._replace(
    evaluation=same, direction=jnp.array([0.5]), num_steps=jnp.int32(1))
  found = bfgs.BFGS().step(problem_of(), state)
  assert found.constants.tolist() == [0] and float(found.length) == pytest.approx(0.3)


def test_bfgs_is_told_the_step_it_took_and_by_how_much_the_slope_changed(monkeypatch):
  asked = []
  monkeypatch.setattr(bfgs, "_update", lambda inverse, step, change: asked.append((step, change)) or inverse)
  monkeypatch.setattr(problem_lib, "evaluate", lambda problem, constants, mask: evaluation(0.5, gradient=(0.25,)))
  state = bfgs.BFGS().init(problem_of(), jnp.zeros(1))._replace(
    evaluation=evaluation(1.0, gradient=(-2.0,)), direction=jnp.array([4.0]), length=jnp.float32(0.5),
    num_steps=jnp.int32(1))
  bfgs.BFGS().step(problem_of(), state)
  assert [[each.tolist() for each in given] for given in asked] == [[[2.0], [2.25]]]


def test_bfgs_keeps_the_precision_of_its_data():
  with jax.enable_x64(True):
    assert bfgs.BFGS().init(problem_of(), jnp.zeros(1, jnp.float32)).inverse.dtype == np.float32


def test_bfgs_leaves_what_has_no_curvature_and_updates_what_has():
  eps = float(np.finfo(np.float32).eps)
  inverse = jnp.eye(2, dtype=jnp.float32)
  step = jnp.array([1.0, 0.0], jnp.float32)
  for share, is_used in ((0.9 * eps, False), (1.2 * eps, True)):
    change = jnp.array([share, 1.0], jnp.float32)
    found = bfgs._update(inverse, step, change)
    assert bool(np.any(np.asarray(found) != np.eye(2))) is is_used
  step, change = np.array([1.0, 2.0]), np.array([3.0, 1.0])
  left = np.eye(2) - np.outer(step, change) / (step @ change)
  expected = left @ np.diag([2.0, 5]) @ left.T + np.outer(step, step) / (step @ change)
  found = bfgs._update(jnp.diag(jnp.array([2.0, 5])), jnp.asarray(step), jnp.asarray(change))
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_step_of_levenberg_and_marquardt_is_looked_at_taken_and_followed(monkeypatch):
  loss = parabola(monkeypatch, [2.0, 0.5], [1.0, -1.0])
  method = lm.LevenbergMarquardt(most_bent=0.0)
  problem = problem_of(is_used=(True, True), is_exponent=(False, False))
  state = method.init(problem, jnp.array([-4.0, 0.0], jnp.float32))
  assert float(state.damping) == pytest.approx(1e-3) and float(state.growth) == 2 and float(state.predicted) == 1
  assert float(state.reduction) == math.inf and state.trial.tolist() == [-4, 0] and not state.is_held.any()
  assert state.scale.tolist() == [0, 0] and int(state.num_steps) == 0
  first = method.step(problem, state)
  slopes = np.array([2 * -5, 0.5])
  # The look at the start counts as a step that came as promised: damped by a third of a thousandth of each diagonal.
  damped = (1 + 1e-3 / 3) * np.array([2, 0.5])
  np.testing.assert_allclose(first.trial, np.array([-4, 0]) - slopes / damped, rtol=1e-5)
  assert float(first.damping) == pytest.approx(1e-3) and float(first.growth) == 2 and float(first.reduction) == math.inf
  assert first.scale.tolist() == [2, 0.5] and first.constants.tolist() == [-4, 0] and int(first.num_steps) == 1
  second = method.step(problem, first)
  np.testing.assert_allclose(second.constants, first.trial)
  assert float(second.damping) == pytest.approx(1e-3 / 3, rel=1e-3) and float(second.growth) == 2
  assert float(second.reduction) == pytest.approx(loss([-4, 0]) - loss(first.trial), rel=1e-5)
  worse = method.step(problem, first._replace(trial=jnp.array([9.0, 9.0])))
  assert worse.constants.tolist() == [-4, 0] and float(worse.reduction) == math.inf
  assert float(worse.damping) == pytest.approx(2e-3) and float(worse.growth) == 4
  same = method.step(problem, first._replace(trial=first.constants))
  assert float(same.reduction) == math.inf and float(same.growth) == 4  # as good is no gain
  kept = method.step(problem, first._replace(scale=jnp.array([8.0, 0.1])))
  assert kept.scale.tolist() == pytest.approx([8, 0.5])  # the largest diagonal so far


def stepped(monkeypatch, seen, *, state=None, is_exponent=(True, False), constants=(2.4, 0.3)):
  monkeypatch.setattr(problem_lib, "look", lambda problem, constants, mask: (seen, jnp.zeros((3, 3))))
  monkeypatch.setattr(lm, "_bend", lambda problem, rows, constants, step, *rest: jnp.zeros_like(step))
  problem = problem_of(3, is_exponent=is_exponent, is_used=(True, True))
  state = state or lm.LevenbergMarquardt().init(problem, jnp.array(constants, jnp.float32))
  return lm.LevenbergMarquardt().step(problem, state)


def pair(loss, mask):
  return evaluation(loss, gradient=(1.0, 1.0), mask=mask)


def test_exponents_are_rounded_once_where_the_start_is_undefined(monkeypatch):
  defined, undefined = pair(1.0, (True, True, True)), pair(1.0, (True, False, True))
  first = stepped(monkeypatch, undefined)
  assert first.trial.tolist() == pytest.approx([2.0, 0.3]) and first.is_held.tolist() == [True, False]
  plain = stepped(monkeypatch, defined)
  assert not plain.is_held.any() and plain.trial.tolist() != pytest.approx([2.0, 0.3])
  assert not stepped(monkeypatch, undefined, is_exponent=(False, False)).is_held.any()
  # More points are worth a larger loss, once; then the damping begins anew and the exponent stays.
  wider = stepped(monkeypatch, pair(9.0, (True, True, True)), state=first._replace(scale=jnp.array([50.0, 60.0])))
  assert wider.constants.tolist() == pytest.approx([2.0, 0.3]) and wider.is_held.tolist() == [True, False]
  assert wider.scale.tolist() == [1, 1] and float(wider.reduction) == math.inf and float(wider.growth) == 2
  assert float(wider.damping) == pytest.approx(1e-3) and float(wider.trial[0]) == 2.0
  # No more points and a larger loss: the exponent is let go.
  lost = stepped(monkeypatch, pair(9.0, (True, False, True)), state=first)
  assert lost.constants.tolist() == pytest.approx([2.4, 0.3]) and not lost.is_held.any()
  late = stepped(monkeypatch, pair(9.0, (True, True, True)), state=first._replace(num_steps=jnp.int32(2)))
  assert late.constants.tolist() == pytest.approx([2.4, 0.3]) and late.is_held.tolist() == [True, False]


@pytest.mark.parametrize(("curvature", "bend"), [(0.74, -0.37), (-0.74, 0.37), (0.76, 0.0), (-0.76, 0.0)])
def test_by_default_a_step_bends_by_three_eighths_of_itself_at_most(curvature, bend, monkeypatch):
  """Of a residual 1 + c + curvature/2*c**2 at c = 0, by a step of 1."""
  monkeypatch.setattr(problem_lib, "weighted_residuals", lambda problem, c: 1 + c + curvature / 2 * c**2)
  one, method = jnp.ones(1), lm.LevenbergMarquardt()
  found = lm._bend(problem_of(), jnp.ones((2, 1)), jnp.zeros(1), one, jnp.negative, one, method.most_bent)
  assert found.tolist() == pytest.approx([bend], rel=1e-3)


def ended(**changes):
  problem = problem_of()
  state = lm.LevenbergMarquardt().init(problem, jnp.ones(1, jnp.float32))._replace(
    evaluation=evaluation(1.0, gradient=(0.5,)), trial=jnp.array([2.0]), num_steps=jnp.int32(5),
    scale=jnp.ones(1))._replace(**changes)
  is_done, status = lm.LevenbergMarquardt().terminate(problem, state)
  assert status.dtype == np.int32
  return bool(is_done), Status(int(status))


EPS = float(np.finfo(np.float32).eps)


def test_when_levenberg_and_marquardt_are_done():
  f32 = jnp.float32
  goes_on = (False, Status.STEP_LIMIT)
  assert ended() == goes_on
  assert ended(evaluation=evaluation(0.0, gradient=(0.5,))) == (True, Status.CONVERGED)
  assert ended(evaluation=evaluation(math.inf)) == (True, Status.DIVERGED)
  for cosine, expected in ((0.9e-1 * math.sqrt(EPS), (True, Status.CONVERGED)), (1.1e-1 * math.sqrt(EPS), goes_on)):
    assert ended(evaluation=evaluation(1.0, gradient=(cosine,))) == expected
    assert ended(evaluation=evaluation(4.0, gradient=(2 * cosine,))) == expected
    assert ended(evaluation=evaluation(1.0, gradient=(2 * cosine,), gram=[[4.0]])) == expected
  # Decreases of four roundings, both the last and the next.
  small, large = f32(3.9 * EPS), f32(4.1 * EPS)
  assert ended(reduction=small, predicted=small) == (True, Status.CONVERGED)
  assert ended(reduction=large, predicted=small) == goes_on == ended(reduction=small, predicted=large)
  # Stuck: a step below rounding, or damped beyond all steps; flat or not.
  assert ended(trial=jnp.array([1 + 0.9 * EPS])) == (True, Status.DIVERGED) == ended(damping=f32(1.01e8))
  assert ended(damping=f32(1e8)) == goes_on and ended(trial=jnp.array([1 + 2 * EPS])) == goes_on
  flat = evaluation(1.0, gradient=(0.9e-2,))
  assert ended(damping=f32(1.01e8), evaluation=flat) == (True, Status.CONVERGED)
  assert ended(damping=f32(1.01e8), evaluation=evaluation(1.0, gradient=(1.1e-2,))) == (True, Status.DIVERGED)
  assert ended(evaluation=evaluation(1.0, gradient=(0.5,), gram=[[0.0]])) == (True, Status.CONVERGED)
  # What is held has no slope; a look at rounded exponents is waited for.
  held = jnp.array([True])
  assert ended(is_held=held) == (True, Status.CONVERGED)
  assert ended(is_held=held, num_steps=jnp.int32(1))[0] is False
  assert ended(num_steps=jnp.int32(1), evaluation=evaluation(0.0))[0] is True


def test_damping_falls_no_further_than_a_few_roundings():
  state = lm.LevenbergMarquardt().init(problem_of(), jnp.zeros(1))._replace(
    damping=jnp.float32(5 * EPS), predicted=jnp.float32(1.0))
  for gain in (1.0, 5.0):
    damping, growth = lm._update_damping(state, jnp.float32(gain), jnp.asarray(True), 1 / 3)
    assert float(damping) == pytest.approx(4 * EPS) and float(growth) == 2
  for decrease in (1 / 30, 1 / 3):
    damping, _ = lm._update_damping(
      state._replace(damping=jnp.float32(1.0)), jnp.float32(1.0), jnp.asarray(True), decrease)
    assert float(damping) == pytest.approx(decrease)


def test_slots_without_influence_stay_where_they_are():
  found = evaluation(1.0, gradient=(1.0, 1.0, 1.0), gram=np.diag([2.0, 0.0, 4.0]))
  step, predicted, _ = lm._solve(found, jnp.array([2.0, 0.0, 8.0]), jnp.float32(0.5), jnp.array([False] * 3))
  np.testing.assert_allclose(step, [-1 / (2 + 0.5 * 2), 0, -1 / (4 + 0.5 * 8)], rtol=1e-5)
  h = np.asarray(step, np.float64)
  # -2 g.h - h.G.h of the undamped model.
  promised = -2 * (h[0] + h[2]) - 2 * h[0] ** 2 - 4 * h[2] ** 2
  assert float(predicted) == pytest.approx(promised, rel=1e-4)


# --- residuals -------------------------------------------------------------------------------------------------------


def test_residuals_are_differences_or_chords():
  values, y = jnp.array([1.0, -3.0, 50.0]), jnp.array([0.5, 2.0, -4.0])
  plain, slope = problem_lib.residuals(values, y, jnp.asarray(jnp.inf))
  np.testing.assert_allclose(plain, values - y)
  assert slope.tolist() == [1, 1, 1]
  k = 2.0
  chord, slope = problem_lib.residuals(values, y, jnp.asarray(k))
  f, t = np.asarray(values, float), np.asarray(y, float)
  expected = k * k * (f - t) / np.sqrt(k * k + f * f) / np.sqrt(k * k + t * t)
  np.testing.assert_allclose(chord, expected, rtol=1e-5)
  h = 1e-5
  of = [k * k * (f + d - t) / np.sqrt(k * k + (f + d) ** 2) / np.sqrt(k * k + t * t) for d in (-h, h)]
  np.testing.assert_allclose(slope, (of[1] - of[0]) / (2 * h), rtol=1e-3)


def test_residuals_of_poles_stay_finite():
  chord, slope = problem_lib.residuals(jnp.array([3e38, -3e38], jnp.float32), jnp.zeros(2, jnp.float32),
                                       jnp.float32(0.5))
  np.testing.assert_allclose(chord, [0.5, -0.5], rtol=1e-6)
  assert np.all(np.isfinite(slope))


class Program(NamedTuple):
  slots: Any
  numbers: Any


def test_constants_begin_with_the_numbers_at_their_slots():
  program = Program(jnp.array([-1, 1, -1, 0]), jnp.array([9.0, 2.0, 8.0, 3.0]))
  assert problem_lib.initial_constants(program, 4).tolist() == [3, 2, 0, 0]
  found = problem_lib.no_evaluation(problem_of(3, is_used=(True, False)))
  assert float(found.loss) == float(found.common_loss) == math.inf and not found.mask.any()
  assert found.gradient.tolist() == [0, 0] and found.gram.tolist() == [[0, 0], [0, 0]] and found.mask.shape == (3,)


def seen_at(monkeypatch, rows, mask, *, weights=(0.5, 0.25, 0.25), y=(1.0, 1.0, 1.0), scale=1.0, knee=math.inf):
  monkeypatch.setattr(problem_lib.interpreter, "run", lambda *given, **named: jnp.asarray(rows, jnp.float32))
  problem = problem_of(y=y, weights=weights, scale=scale)._replace(knee=jnp.float32(knee))
  return problem_lib.evaluate(problem, jnp.zeros(1), jnp.asarray(mask))


def test_an_evaluation_is_that_of_weighted_squares(monkeypatch):
  rows, every = [[6.0, 2.0, 4.0], [1.0, 2.0, 3.0]], (True, True, True)
  found = seen_at(monkeypatch, rows, every, scale=2.0)
  residual, slope, w = np.array([2.0, 0, 1]), np.array([0.5, 1, 1.5]), np.array([0.5, 0.25, 0.25])
  assert float(found.loss) == pytest.approx(np.sum(w * residual**2)) == float(found.common_loss)
  np.testing.assert_allclose(found.gradient, [np.sum(w * residual * slope)])
  np.testing.assert_allclose(found.gram, [[np.sum(w * slope**2)]])
  assert found.mask.tolist() == [True] * 3
  chordal = seen_at(monkeypatch, rows, every, scale=2.0, knee=1.5)
  chord, derivative = problem_lib.residuals(jnp.array([3.0, 1, 2]), jnp.ones(3), jnp.float32(1.5))
  np.testing.assert_allclose(chordal.loss, np.sum(w * np.asarray(chord) ** 2), rtol=1e-6)
  expected = np.sum(w * np.asarray(chord) * np.asarray(derivative) * slope)
  np.testing.assert_allclose(chordal.gradient, [expected], rtol=1e-6)


def test_points_without_a_value_are_left_out_and_missed_where_they_were_asked_for(monkeypatch):
  rows = [[3.0, np.nan, 2.0], [1.0, 2.0, np.inf]]
  lost = seen_at(monkeypatch, rows, (True, True, True))
  assert float(lost.loss) == pytest.approx(0.5 * 4 + 0.25) and float(lost.common_loss) == math.inf
  assert lost.mask.tolist() == [True, False, True]
  # An infinite slope says nothing; its point counts.
  np.testing.assert_allclose([float(lost.gradient[0]), float(lost.gram[0, 0])], [0.5 * 2 * 1, 0.5])
  common = seen_at(monkeypatch, rows, (True, False, False))
  assert float(common.common_loss) == pytest.approx(0.5 * 4) and float(common.loss) == pytest.approx(2.25)
  nowhere = seen_at(monkeypatch, [[np.nan] * 3, [1.0] * 3], (False, False, False))
  assert float(nowhere.loss) == math.inf and float(nowhere.common_loss) == 0
  masked = seen_at(monkeypatch, rows, (True, False, True), weights=(0.5, 0.0, 0.5))
  assert masked.mask.tolist() == [True, False, True] and math.isfinite(float(masked.common_loss))
  weightless = seen_at(monkeypatch, [[3.0, 2.0, 2.0], [1.0] * 3], (False,) * 3, weights=(0.5, 0.5, 0.0))
  assert weightless.mask.tolist() == [True, True, False]
  huge = seen_at(monkeypatch, [[3e38, 1.0, 1.0], [1.0] * 3], (True,) * 3)
  assert float(huge.loss) == float(huge.common_loss) == math.inf


# --- every iterate ---------------------------------------------------------------------------------------------------


def test_a_trace_shows_the_start_each_step_and_then_the_end(monkeypatch):
  looks = []

  class Halving:
    """Halves the constant; done below one."""

    def init(self, problem, constants):
      looks.append(constants.shape)
      return Drawn(constants, problem_lib.no_evaluation(problem), jnp.int32(0))

    def step(self, problem, state):
      constants = jnp.where(state.num_steps == 0, state.constants, state.constants / 2)
      found = problem_lib.no_evaluation(problem)._replace(loss=jnp.sum(jnp.abs(constants)))
      return Drawn(constants, found, state.num_steps + 1)

    def terminate(self, problem, state):
      return jnp.max(jnp.abs(state.constants)) < 1, jnp.int32(0)

  monkeypatch.setitem(solve.METHODS, "lm", Halving())
  times, constant, x0 = VOCAB.ids["*"], VOCAB.first_constant_id, VOCAB.first_variable_id
  ids = np.array([[times, constant, x0], [times, x0, x0]], np.int32)
  values = np.array([[7.0, 6.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
  x, y, weights = np.arange(1, 5, dtype=np.float32)[:, None], np.array([1, 3, 1, 3], np.float32), np.ones(4, np.float32)
  found, loss = trace.trace(ids, values, x, y * 3, weights, vocab=VOCAB, max_steps=6)
  assert found.shape == (2, 6, 3) and found[0, :, 1].tolist() == [6, 3, 1.5, 0.75, 0.75, 0.75]
  assert loss[0].tolist() == [6 * 9, 3 * 9, 1.5 * 9, *[0.75 * 9] * 3]  # in squared units of y, whose spread is 3
  assert not found[0, :, [0, 2]].any() and loss[1].tolist() == [0] * 6 and looks[0] == (16,)
  assert isinstance(found, np.ndarray) and isinstance(loss, np.ndarray)
  assert trace.trace(ids, values, x, y * 2, weights, vocab=VOCAB)[1].shape == (2, 50)
