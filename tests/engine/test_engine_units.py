"""Parts of the engine by themselves: rows, bags, scalings, criteria, the pool, noise, what ends a search."""

import dataclasses
import math
import statistics

import jax
import numpy as np
import pytest

from symformer_jax import inference, results, testing
from symformer_jax.engine import bags, clock, criteria, loop, noise, rescale
from symformer_jax.engine.config import DEFAULT, loop as loop_config
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import LARGEST, SMALLEST, Rows, check_dataset, check_weights, with_weights
from symformer_jax.engine.source import Proposal
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError, ModelError
from symformer_jax.language import expression, parser


def candidate(text, mse):
  return Candidate(parser.parse(text, ("x", "z")), mse)


# --- rows ------------------------------------------------------------------------------------------------------------


def test_rows_are_drawn_by_the_seed_in_their_order():
  rows = Rows(np.arange(20.0)[:, None], np.arange(20.0) ** 2, np.arange(1.0, 21))
  first, again, other = (rows.sample(8, seed=seed) for seed in (1, 1, 2))
  assert np.array_equal(first.y, again.y) and not np.array_equal(first.y, other.y)
  assert len(set(first.y)) == 8 and np.all(np.diff(first.y) > 0)
  np.testing.assert_array_equal(first.x[:, 0] ** 2, first.y)
  np.testing.assert_array_equal(first.x[:, 0] + 1, first.weights)
  assert rows.sample(20, seed=0) is rows and len(set(rows.sample(19, seed=0).y)) == 19


def test_padding_repeats_the_last_row_at_no_weight():
  padded = Rows(np.array([[1.0, 2], [3, 4]]), np.array([5.0, 6]), np.ones(2)).padded(4)
  np.testing.assert_array_equal(padded.x, [[1, 2], [3, 4], [3, 4], [3, 4]])
  assert padded.y.tolist() == [5, 6, 6, 6] and padded.weights.tolist() == [1, 1, 0, 0]


def test_data_come_as_arrays_or_as_one_and_lose_rows_without_weight():
  x, y, weights = np.arange(7.0), np.arange(7.0) ** 2, np.array([0.0, 1, 1, 2, 2, 3, 3])
  rows = check_dataset((x, y, weights))
  assert rows.x.shape == (6, 1) and rows.y.tolist() == y[1:].tolist()
  np.testing.assert_allclose(rows.weights, weights[1:] / 2)
  whole = check_dataset(np.column_stack([x, x + 1, y]))
  assert whole.x.shape == (7, 2) and whole.y.tolist() == y.tolist() and whole.weights.tolist() == [1.0] * 7
  points = check_dataset(tuple((float(i), float(i**2)) for i in range(7)))  # of two or three parts no table is
  assert points.x[:, 0].tolist() == x.tolist() and points.y.tolist() == y.tolist()
  changed = with_weights((x, y, weights), np.arange(6.0) + 5)
  assert changed[2].tolist() == [0, 5, 6, 7, 8, 9, 10] and changed[0].shape == (7, 1)


@pytest.mark.parametrize(("data", "message"), [
  ((np.arange(4.0), np.arange(4.0)), "too few points: expected at least 5, got 4"),
  ((np.arange(6.0), np.arange(6.0), [1, 1, 1, 1, 0, 0]), "too few points: expected at least 5, got 4"),
  ((np.arange(6.0), np.arange(5.0)), "rows differ: X has 6, y has 5, weights have 5"),
  ((np.arange(5.0), np.arange(5.0), np.ones(4)), "rows differ: X has 5, y has 5, weights have 4"),
  ((np.arange(5.0), np.arange(5.0), [1, 1, 1, 1, -0.5]), "weights: expected at least 0, got -0.5"),
  ((np.arange(5.0), [1, 2, 3, 4, np.nan]), "NaN or infinity"),
  (([1, 2, 3, 4, np.inf], np.arange(5.0)), "NaN or infinity"),
  ((np.arange(5.0), np.arange(5.0), [1, 1, 1, 1, np.inf]), "NaN or infinity"),
  ((np.arange(5.0), np.full(5, 3.5)), "the target is constant: every value is 3.5"),
  ((np.arange(5.0), np.arange(5.0) * 0.2 * SMALLEST), "y: expected a spread of at least 1e-60"),
  ((np.arange(5.0), -np.arange(5.0) * LARGEST), "y: expected numbers up to 1e.60 in size"),
  ((np.arange(5.0) * LARGEST, np.arange(5.0)), "X: expected numbers up to 1e.60 in size"),
  ((np.column_stack([np.arange(5.0), -np.arange(5.0) * 0.2 * SMALLEST]), np.arange(5.0)),
   "X: expected numbers of at least 1e-60 in size in each column, got at most 8e-61 in column 1; take a smaller unit"),
  (np.arange(5.0), r"expected points \[N, D\+1\]"), (np.ones((5, 1)), r"expected points \[N, D\+1\]"),
  (np.ones((5, 2, 2)), r"expected points \[N, D\+1\]"),
  ((np.ones((5, 2, 2)), np.arange(5.0)), r"expected X \[N, D\] and y \[N\]"),
  ((np.arange(5.0), np.ones((5, 1))), r"expected X \[N, D\] and y \[N\]"),
  ((np.ones((5, 0)), np.arange(5.0)), r"expected X \[N, D\] and y \[N\]")])
def test_unusable_data_say_why(data, message):
  with pytest.raises(InputError, match=message):
    check_dataset(data)


@pytest.mark.parametrize("size", [1e308, 1e-320, 2.0**-1000, 1.0])
def test_weights_of_any_size_are_told_by_their_ratios(size):
  x, ratios = np.arange(6.0), np.array([1.0, 1, 0.5, 0.25, 1, 0])
  rows = check_dataset((x, x**2, ratios * size))
  np.testing.assert_allclose(rows.weights, ratios[:5] / 0.75, rtol=1e-3 if size < 1e-300 else 0)
  assert len(check_dataset((x, x**2, [1e308, 1e308, 1e-308, 1e-308, 1e-308, 1e-320])).weights) == 6
  with pytest.raises(InputError, match="weights: the rows that have nearly all the weight have one value of the"):
    check_dataset((x, x**2, [1e308, *[1e-308] * 5]))


def test_weights_under_which_a_few_rows_decide_alone_are_refused():
  x = np.arange(1.0, 15)
  rows = check_dataset((x, 2 * x + x % 3, 10.0 ** (20 * x)))
  with pytest.raises(InputError, match="weights: beside 2 of the 14 rows the others count nothing; expected at least"):
    check_weights(rows)


def test_weights_of_squares_and_those_over_some_decades_are_usable():
  order = np.arange(15.0)
  check_weights(check_dataset((order, 10**order, 10 ** (-2 * order))))  # of 28 decades
  check_weights(check_dataset((order, 10**-order, 10 ** (2 * order))))
  check_weights(check_dataset((order, order % 2, 10 ** (2 * order))))


def test_the_limits_themselves_are_usable():
  x = np.arange(5.0)
  check_dataset((x / 4 * LARGEST, x / 4 * LARGEST))
  check_dataset((x, np.array([0, 0, 0, 0, 1.0]) * SMALLEST))
  check_dataset((np.column_stack([x / 4 * SMALLEST, np.zeros(5)]), x))  # a column of zeros is no small one

  class Model:
    name = "two"
    vocab = type("Vocabulary", (), {"num_variables": 2})

  assert len(check_dataset((np.ones((5, 2)), x), Model)) == 5
  with pytest.raises(InputError, match="'two' knows 2, the data have 3"):
    check_dataset((np.ones((5, 3)), x), Model)


# --- bags ------------------------------------------------------------------------------------------------------------


def test_bags_show_the_range_of_y_and_of_very_many_rows_that_of_the_first_column_too():
  config = dataclasses.replace(DEFAULT.scaling, many_rows=60)
  rng = np.random.default_rng(0)
  for num, count in ((8, 1), (9, 2), (59, 2), (60, 4)):
    rows = Rows(rng.normal(size=(num, 2)), rng.normal(size=num), np.arange(1.0, num + 1))
    fit_rows = rows.sample(8, seed=5)
    found = bags.draw_bags(rows, fit_rows, seed=5, config=config)
    assert len(found) == count and found[0] is fit_rows and all(len(bag) == 8 for bag in found)
    for bag, column in zip(found[1:3], (rows.y, rows.x[:, 0]), strict=False):
      ranks = np.sort(np.argsort(np.argsort(column))[bag.weights.astype(int) - 1])
      np.testing.assert_array_equal(ranks, np.linspace(0, num - 1, 8).astype(int))
      np.testing.assert_array_equal(bag.y, rows.y[bag.weights.astype(int) - 1])
      assert np.all(np.diff(bag.weights) > 0)
  assert found[3].y.tolist() == rows.sample(8, seed=6).y.tolist()


# --- clock -----------------------------------------------------------------------------------------------------------


def test_time_is_told_by_part_and_without_what_was_compiled(monkeypatch):
  now = iter([100.0, 101.0, 103.5, 110.0, 110.5, 112.0, 113.0, 114.0, 120.0])
  monkeypatch.setattr(clock.time, "perf_counter", lambda: next(now))
  monkeypatch.setattr(clock.Clock, "_compiling", compiling := clock._Union())
  monkeypatch.setattr(clock.Clock, "_first", 0.0)
  compiling.add(90.0, 97.0)  # of another search
  watch = clock.Clock()
  for _ in range(2):
    with watch.measure("refine"):
      pass
  clock.Clock._on_event("/jax/core/compile/jaxpr_trace_duration", 0.5)
  clock.Clock._on_event("/jax/core/compile/jaxpr_trace_duration", 3.0)  # what it was traced inside of
  clock.Clock._on_event("/jax/core/compile/backend_compile_duration", 1.0)
  clock.Clock._on_event("/jax/other", 99.0)
  seconds = watch.seconds()
  assert (seconds.refine, seconds.compile, seconds.search, seconds.total) == (3.0, 4.0, 16.0, 20.0)
  monkeypatch.setattr(clock.time, "perf_counter", lambda: 101.0)
  assert watch.seconds().search == 0.0  # no less, whatever JAX tells


@pytest.mark.parametrize(("duration", "compiled"), [(-3600.0, 0.0), (3600.0, 10.0), (4.0, 4.0)])
def test_a_clock_that_is_set_while_something_is_compiled_takes_and_gives_no_time(monkeypatch, duration, compiled):
  """Time to compile is not counted against `max_time`: an hour more of it would make a search an hour longer."""
  monkeypatch.setattr(clock.Clock, "_compiling", clock._Union())
  monkeypatch.setattr(clock.Clock, "_first", 100.0)
  watch = clock.Clock()
  monkeypatch.setattr(clock.time, "perf_counter", lambda: 110.0)
  clock.Clock._on_event("/jax/core/compile/backend_compile_duration", duration)
  assert watch.compiled() == compiled


# --- criteria --------------------------------------------------------------------------------------------------------


def test_criteria_are_those_of_their_definitions():
  floor = (2.0**-23) ** 2
  fit = criteria.Fit(0.3, 7, 2, None, 1.5)
  residual = 0.3 * 20 / 18 / 4 + floor
  expected = 10 * math.log(residual) + 3 * 7 + 1.5 + math.log(20)
  assert criteria.mdl(fit, num_points=20, variance=4.0, nats_per_node=3.0) == pytest.approx(expected, rel=1e-12)
  rounded = criteria.mdl(dataclasses.replace(fit, num_digits=6), num_points=20, variance=4.0, nats_per_node=3.0)
  assert rounded == pytest.approx(expected - math.log(20) + 4 * math.log(10), rel=1e-12)
  bic = criteria.bic(fit, num_points=20, variance=4.0)
  assert bic == pytest.approx(10 * math.log(0.3 / 4 + floor) + 1.5 * math.log(20), rel=1e-12)
  assert criteria.accuracy(fit, num_points=20, variance=4.0) == pytest.approx(math.log(0.3 / 4 + floor), rel=1e-12)
  one = criteria.Fit(0.3, 7, 19)
  assert math.isfinite(criteria.mdl(one, num_points=20, variance=4.0))
  assert criteria.mdl(one, num_points=19.9, variance=4.0) == math.inf
  plain = criteria.mdl(criteria.Fit(0.3, 0, 0), num_points=20, variance=4.0)
  assert criteria.mdl(criteria.Fit(0.3, 1, 0), num_points=20, variance=4.0) - plain == pytest.approx(
    DEFAULT.selection.nats_per_node)


# --- the pool --------------------------------------------------------------------------------------------------------


def test_exact_and_nearly_exact_at_their_limits():
  config = DEFAULT.pool
  pool = Pool(2.0, 8)
  pool.insert([candidate("1.5*x", 2 * config.met)])
  assert pool.exact() is not None and not pool.nearly_exact()
  pool.insert([candidate("1.5*x + 2.5", config.met), candidate("1.5*x + 2.5*sin(1.5*z)", 0.0)])
  assert pool.exact().mse == 2 * config.met  # the simplest; eight points tell of two constants
  more = Pool(2.0, 7)
  more.insert([candidate("1.5*x + 2.5", 0.0)])
  assert more.exact() is None
  few = Pool(2.0, 100)
  few.insert([candidate("1.5*x", 2 * config.near), candidate("2.5*z", np.nextafter(2 * config.near, 0)),
              candidate("2.5*z", 5.0), candidate("3.5*x*z", np.nextafter(2 * config.met, 1))])
  assert few.nearly_exact() == [parser.parse("2.5*z", ("x", "z")), parser.parse("3.5*x*z", ("x", "z"))]
  few.insert([candidate(f"{k}.5*sin({k}.5*x)", 2e-15) for k in range(30)])
  assert len(few.nearly_exact()) == config.num_sharpened


def test_of_one_complexity_the_nearer_exact_one():
  pool = Pool(1.0, 100)
  pool.insert([candidate("1.5*x", 1e-23), candidate("1.5*z", 1e-24), candidate("1.5*x*z", 0.0)])
  assert pool.exact().mse == 1e-24


def test_of_a_skeleton_few_go_on_and_of_errors_below_single_precision_the_simple_come_first():
  config = loop_config.PoolConfig(num_best=2, num_per_complexity=1, fits_per_skeleton=2)
  pool = Pool(1.0, 100, config)
  pool.insert([candidate("1.5*x*z", 1e-13), candidate("1.5*x", 1e-12), candidate("2.5*x", 1e-5),
               candidate("3.5*x", 1e-4), candidate("4.5*x*x*z", 1e-3)])
  assert [c.mse for c in pool.shortlist()] == [1e-12, 1e-13, 1e-3]
  wide = Pool(1.0, 100, dataclasses.replace(config, num_best=9, num_per_complexity=9))
  wide.insert(pool.in_order())
  assert [c.mse for c in wide.shortlist()] == [1e-12, 1e-13, 1e-5, 1e-3]
  few = Pool(1.0, 100, dataclasses.replace(config, num_finalists=1))
  few.insert(pool.in_order())
  assert [c.mse for c in few.shortlist()] == [1e-12]


# --- scalings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("largest", "factor"), [(5.0, 1.0), (5.1, 1.02), (1.0, 1.0), (0.99, 0.198), (0.0, 1.0)])
def test_factors_of_columns_at_the_border_of_the_box(largest, factor):
  x = np.linspace(-largest, largest, 9)[:, None]
  assert rescale._scaling(x, np.linspace(-2, 2, 9), DEFAULT.scaling).x_factors == pytest.approx((factor,))


@pytest.mark.parametrize(("rms", "factor"), [
  (0.05, 1.0), (0.049, 0.0098), (1000.0, 1.0), (1001.0, 200.2), (2.0, 1.0), (0.0, 1.0)])
def test_factors_of_targets_at_the_border_of_what_was_trained_on(rms, factor):
  y = rms * np.tile([1.0, -1.0], 5)
  assert rescale._scaling(np.linspace(1, 4, 10)[:, None], y, DEFAULT.scaling).y_factor == pytest.approx(factor)


def test_the_identity_moves_and_stretches_nothing():
  assert rescale.Scaling((1.0, 1.0)).is_identity
  for other in (rescale.Scaling((1.0, 2.0)), rescale.Scaling((1.0,), 2.0), rescale.Scaling((1.0,), 1.0, (3.0,)),
                rescale.Scaling((1.0,), 1.0, (0.0,), 2.0)):
    assert not other.is_identity
  assert not rescale.Scaling((2.0,), 3.0, (0.0,)).is_moved and rescale.Scaling((2.0,), 3.0, (0.0, 1.0)).is_moved


@pytest.mark.parametrize(("low", "high", "is_far"), [
  (5.1, 10.0, True), (3.1, 10.0, True), (2.9, 10.0, False),  # spans of .49, .69 and .71 of the largest
  (3.5, 5.0, False), (4.1, 5.0, True), (6.0, 6.0, False), (-10.0, -6.0, True), (-10.0, 1.0, False)])
def test_columns_off_to_one_side(low, high, is_far):
  assert rescale._is_far(np.linspace(low, high, 9)[:, None], DEFAULT.scaling)[0] == is_far


def test_a_target_that_hardly_varies_alone_moves_no_column():
  x, y = np.linspace(-4, 4, 9)[:, None], 10 + np.linspace(0, 1.9, 9)
  moved, plain = rescale.propose_scalings(x, y)
  assert moved.x_offsets == (0.0,) and moved.y_offset == pytest.approx(y.mean()) and plain.y_offset == 0
  assert len(rescale.propose_scalings(x, 10 + np.linspace(0, 2.6, 9))) == 1  # a fifth of the largest


def test_both_columns_and_targets_may_be_off():
  x, y = np.column_stack([np.linspace(100, 110, 9), np.linspace(-4, 4, 9)]), 300 + np.linspace(0, 1, 9)
  centred, begun, plain = rescale.propose_scalings(x, y)
  assert centred.x_offsets == (105.0, 0.0) and begun.x_offsets == (100.0, 0.0)
  assert centred.y_offset == begun.y_offset == pytest.approx(300.5) and not plain.is_moved


def test_each_column_that_is_off_is_moved_by_its_own_range():
  x = np.column_stack([np.linspace(100, 110, 9), np.linspace(1000, 1004, 9)])
  centred, begun, _ = rescale.propose_scalings(x, np.linspace(1, 2, 9))
  assert centred.x_offsets == (105.0, 1002.0) and begun.x_offsets == (100.0, 1000.0)


def test_powers_of_factors_beyond_all_numbers_stay_as_they_are_written():
  x = np.array([[3e200], [2e200]])
  for factor, at in ((1e200, x), (1e-200, x / 1e200 / 1e200)):
    node = rescale.Scaling((factor,)).restore(parser.parse("x**2", ("x",)))
    np.testing.assert_allclose(expression.evaluate(node, at), [9, 4], rtol=1e-12)


def test_what_fits_but_is_small_is_tried_raw_only_where_all_of_it_fits():
  small, large = np.linspace(0, 0.5, 9), np.linspace(0, 50, 9)
  y = np.linspace(1, 2, 9)
  assert [s.is_identity for s in rescale.propose_scalings(small[:, None], y)] == [False, True]
  assert len(rescale.propose_scalings(np.column_stack([small, large]), y)) == 1
  assert len(rescale.propose_scalings(small[:, None], 1e5 * y)) == 1
  edge = np.column_stack([small, 10 * small])  # up to the border itself
  assert len(rescale.propose_scalings(edge, y)) == 2


# --- noise -----------------------------------------------------------------------------------------------------------


def test_the_statistic_is_that_of_its_definition():
  x, errors = np.array([[3.0], [1], [2], [5], [4]]), np.array([0.1, -2.0, 0.1, 9.0, 3.0])
  ranks = np.array([1.0, 0, 1, 3, 2]) - 1.4
  order = [1, 2, 0, 4, 3]
  products = np.array([ranks[a] * ranks[b] for a, b in zip(order, order[1:], strict=False)])
  expected = products.sum() / math.sqrt(np.sum(products**2))
  assert noise.smoothness(errors, x) == pytest.approx([expected])
  more = 2 * 4 / 5 * np.mean(ranks**2) / math.sqrt(np.sum(products**2))
  assert noise.smoothness(errors, x, num_constants=2) == pytest.approx([expected + more])


def test_the_chance_is_shared_by_the_orders(monkeypatch):
  for count in (1, 3):
    limit = statistics.NormalDist().inv_cdf(1 - 0.1 / count)
    for found, expected in ((limit - 1e-9, True), (limit + 1e-9, False)):
      statistic = [-9.0] * (count - 1) + [found]
      monkeypatch.setattr(noise, "smoothness", lambda *rest, statistic=statistic, **named: statistic)
      assert noise.looks_like_noise(np.ones(4), np.ones((4, 1)), [0], chance=0.1) is expected


def test_errors_that_are_looked_at_are_those_of_the_best_times_the_roots_of_the_weights(monkeypatch):
  rng = np.random.default_rng(0)
  x, y, weights = rng.uniform(1, 4, 50), rng.normal(size=50), rng.uniform(0.2, 3, 50)
  asked = []
  monkeypatch.setattr(noise, "looks_like_noise", lambda *given, **named: asked.append((given, named)) or True)
  task = make_task((x, y, weights), ("x",), SearchOptions())
  watch = noise.NoiseWatch(task)
  assert not watch.leaves_noise()  # nothing has been found
  watch.best = candidate("1.5*x + 0.25", 1.0)
  assert watch.leaves_noise()
  [((errors, points, columns), named)] = asked
  np.testing.assert_allclose(errors, np.sqrt(weights / weights.mean()) * (1.5 * x + 0.25 - y))
  assert points.shape == (50, 1) and columns == (0,) and named == {"num_constants": 2, "chance": DEFAULT.noise.chance}


# --- the task --------------------------------------------------------------------------------------------------------


def test_a_task_knows_its_columns_rows_and_variance():
  rng = np.random.default_rng(0)
  x, y, weights = rng.normal(size=(70, 3)), rng.normal(size=70), rng.uniform(0.5, 2, 70)
  task = make_task((x, y, weights), None, SearchOptions())
  assert task.names == ("x0", "x1", "x2") and task.columns == (0, 1, 2) and not task.is_chosen and task.num_rows == 128
  mean = np.average(y, weights=weights)
  assert task.variance == pytest.approx(np.average((y - mean) ** 2, weights=weights), rel=1e-12)
  points, target, padded = task.padded_points([2, 0], 4)
  np.testing.assert_array_equal(points[:70], np.column_stack([x[:, 2], x[:, 0], np.zeros((70, 2))]))
  assert points.shape == (128, 4) and target[70:].tolist() == [y[69]] * 58 and not padded[70:].any()
  assert padded[:70] == pytest.approx(weights / weights.mean())
  with pytest.raises(InputError, match="names: expected 3 of them, one for each column, got 2"):
    make_task((x, y), ["a", "b"], SearchOptions())
  wide = make_task((rng.normal(size=(30, 60)), np.arange(30.0)), None, SearchOptions())
  assert wide.is_chosen and len(wide.columns) == DEFAULT.library.max_columns and wide.num_rows == 64


def test_the_seed_draws_the_rows_and_is_the_key_of_all_sources(monkeypatch):
  """Two seeds differ; a search that ignored its seed would always answer the same, and no other test would mind."""
  class Enough(Exception):
    pass

  asked = []

  def search(task, sources, options, key):
    asked.append((task.fit_rows.y, jax.random.key_data(key), options.seed))
    raise Enough
  monkeypatch.setattr(inference, "Search", search)
  x = np.linspace(1, 9, 1000)
  for seed in (7, 7, 8):
    with pytest.raises(Enough):
      inference.search(testing.FixedProposer(["x0"]), [(x, x**2)], seed=seed)
  (rows, key, said), (same_rows, same_key, _), (other_rows, other_key, _) = asked
  assert said == 7 and np.array_equal(rows, same_rows) and np.array_equal(key, same_key)
  assert len(rows) < 1000 and not np.array_equal(rows, other_rows) and not np.array_equal(key, other_key)


# --- the end of a search ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mute:
  """A source that is only named."""

  name: str
  turns: tuple[int, ...] = (1,)

  def init(self, task, key):
    return None


def search_of(names, *, noise_of=None, **options):
  x = np.linspace(0.5, 3, 40)
  options = SearchOptions(**options)
  task = make_task((x, 2 * x), ("x",), options)
  search = loop.Search(task, [Mute(name) for name in names], options, jax.random.key(0))
  if noise_of is not None:
    search._noise = noise_of
  return search


def close(search, name, *found, seconds=1.0):
  search.close_turn(Mute(name), Proposal(candidates=tuple(found)), [], seconds)
  return search.ended_by


def test_accuracy_is_met_where_it_is_reached():
  for r2, expected in ((0.75, results.ACCURACY), (0.7499, "")):
    search = search_of(["said"], accuracy=0.75)
    assert not search.has_found and not search.ended_by
    assert close(search, "said", candidate("1.5*x", (1 - r2) * search.task.variance)) == expected


def test_a_turn_that_makes_nothing_does_not_say_that_nothing_simpler_is_found():
  search = search_of(["said"])
  assert close(search, "said", candidate("2*x + 0.5*sin(x)", 0.0)) == ""
  assert close(search, "said") == ""
  assert close(search, "said", candidate("2*x", 0.0)) == ""  # simpler
  assert close(search, "said", candidate("3*x", 1.0)) == results.EXACT


def test_time_is_over_when_it_is_passed(monkeypatch):
  end = SearchOptions(max_time=2.0).search_seconds
  for seconds, expected in ((end, results.BUDGET), (end + 1e-6, results.TIME)):
    monkeypatch.setattr(clock.Clock, "elapsed", lambda _, seconds=seconds: seconds)
    searches = {0: search_of(["said"], max_time=2.0)}
    assert not list(loop.run(searches, [], SearchOptions(max_time=2.0), clock=clock.Clock()))
    assert searches[0].ended_by == expected


def test_what_has_ended_stays_so():
  ended = search_of(["said"])
  loop.end({0: ended}, results.STOPPED)
  loop.end({0: ended}, results.BUDGET)
  assert ended.ended_by == results.STOPPED and not ended.takes_part(Mute("said"))


class Watch:
  """A watch whose best is given, and that has always come to the noise."""

  is_in_doubt = False

  def __init__(self, text, *, may_be_clear=False):
    self.best, self.may_be_clear = candidate(text, 1.0), may_be_clear

  def best_leaves_noise(self):
    return True

  def has_stalled(self, pool):
    return True

  def look(self, pool):
    return 0.0

  def leaves_noise(self):
    return True


def test_before_the_noise_ends_it_the_first_sources_have_their_turns():
  """Those that take part; with a short formula fewer turns of the library, with a long one those of the ridges too."""
  names = ["closed_forms", "rationals", "library"]
  long = " + ".join(["x"] * 9)
  for text, turns in (("1.5*x", 1), (long, 3)):
    search = search_of(names, noise_of=Watch(text))
    found = [close(search, name, candidate("1.5*x", 1.0)) for name in [*names, *["library"] * (turns - 1)]]
    assert found == [""] * (len(found) - 1) + [results.NOISE]
  longest = " + ".join(["x"] * 11)
  search = search_of([*names, "ridges"], noise_of=Watch(longest))
  asked = [*names, "library", "library", "ridges", "ridges"]
  found = [close(search, name, candidate("1.5*x", 1.0)) for name in asked]
  assert found == [""] * 6 + [results.NOISE]
  search = search_of(names, noise_of=Watch("1.5*x"))
  assert [close(search, name, candidate("1.5*x", 1.0)) for name in ("closed_forms", "library")] == ["", ""]
  search = search_of(["library"], noise_of=Watch("1.5*x"))
  assert close(search, "library") == "" and close(search, "library", candidate("x", 1.0)) == results.NOISE


def test_where_a_formula_is_clear_the_cheapest_sources_are_waited_for():
  names = ["closed_forms", "enumeration", "quadratics", "library"]
  for may_be_clear, expected in ((True, ["", "", results.NOISE]), (False, ["", "", ""])):
    search = search_of(names, noise_of=Watch("1.5*x", may_be_clear=may_be_clear))
    assert [close(search, name) for name in names[:3]] == expected  # a turn that made nothing is one, too
  watch = Watch("1.5*x", may_be_clear=True)
  watch.has_stalled = lambda pool: False
  search = search_of(names, noise_of=watch)
  assert [close(search, name) for name in names[:3]] == [""] * 3
  watch = Watch("1.5*x", may_be_clear=True)
  watch.best_leaves_noise, watch.others = (lambda: False), ()
  search = search_of([*names, "rationals"], noise_of=watch)
  assert [close(search, name) for name in names[:3]] == [""] * 3


def test_formulas_of_just_so_many_nodes_are_short():
  config = DEFAULT.noise
  for extra, expected in ((0, results.NOISE), (1, "")):
    node = parser.parse("+".join(["x"] * 8), ("x",))
    node = node if not extra else expression.Node("sin", (node,))
    assert expression.complexity(node) == config.short + extra
    watch = Watch("x")
    watch.best = Candidate(node, 1.0)
    assert close(search_of(["library"], noise_of=watch), "library", candidate("x", 1.0)) == expected


def test_no_end_at_the_noise_where_more_was_asked_for():
  for options, ends in (({}, True), ({"effort": "quick"}, True), ({"effort": "thorough"}, False),
                        ({"max_time": 5.0}, False)):
    search = search_of(["library"], **options)
    search._noise = search._noise and Watch("1.5*x")
    assert (close(search, "library", candidate("1.5*x", 1.0)) == results.NOISE) is ends


def hurrying(watch, names, *, waits_for, config=DEFAULT.noise, **options):
  """The order of turns where a search may hurry once those of `waits_for` have been taken."""
  config = dataclasses.replace(DEFAULT, noise=dataclasses.replace(config, asked_before_hurry=waits_for))
  sources = [Maker(name, (1, 2, 3) if name == "library" else (1,)) for name in names]
  search = search_of(names, noise_of=watch, config=config, **options)
  search.sources = tuple(sources)
  order = [name for _, name in told({0: search}, sources)[0]]
  return order, {source.name: [number for _, number, _ in source.asked] for source in sources}


def test_turns_that_the_end_at_the_noise_waits_for_come_before_their_place():
  names = ("closed_forms", "enumeration", "oscillations", "rationals", "curves", "library", "pairs")
  first, waits_for = ["closed_forms", "enumeration"], (("closed_forms", 1), ("enumeration", 1))

  def order(watch, **options):
    return hurrying(watch, names, waits_for=waits_for, **options)[0]

  short, long = Watch("1.5*x"), Watch(" + ".join(["x"] * 9))
  assert order(short) == [*first, "rationals", "library"]  # and there it ends
  assert order(long) == [*first, "rationals", "library", "library", "library"]
  rest = ["oscillations", "curves", "library", "library", "pairs"]
  found, numbers = hurrying(short, names, waits_for=waits_for, max_time=9.0)
  assert found == [*first, "rationals", "library", *rest] and numbers["library"] == [0, 1, 2]  # each turn once
  smooth = Watch("1.5*x")
  smooth.leaves_noise = smooth.nearest_leaves_noise = lambda: False
  smooth.others, plain = (), ["oscillations", "rationals", "curves", *["library"] * 3, "pairs"]
  assert order(smooth, max_time=9.0) == order(None, max_time=9.0) == [*first, *plain]
  later, _ = hurrying(short, names, waits_for=(*waits_for, ("curves", 1)), max_time=9.0)
  assert later == [*first, "oscillations", "rationals", "curves", "library", "library", "library", "pairs"]


def test_before_a_search_hurries_it_looks_for_products_and_curves():
  assert dict(DEFAULT.noise.asked_before_hurry) == {**dict(DEFAULT.noise.asked_if_clear), "oscillations": 1,
                                                   "curve_fits": 1, "product_units": 3}


def test_in_doubt_no_fewer_turns_are_hurried_to():
  watch = Watch(" + ".join(["x"] * 9))
  watch.is_in_doubt = True
  config = dataclasses.replace(DEFAULT.noise, asked_if_in_doubt=(("library", 1),))
  found, _ = hurrying(watch, ("closed_forms", "curves", "library"), waits_for=(("closed_forms", 1),), config=config,
                      max_time=9.0)
  assert found == ["closed_forms", "library", "library", "library", "curves"]


def test_whether_to_hurry_is_asked_once_a_turn_and_not_beside_what_meets_the_data():
  looks = []
  watch = Watch("1.5*x")
  watch.leaves_noise = lambda: looks.append(0) or False
  search = search_of(["closed_forms", "library"], noise_of=watch, max_time=9.0)
  assert search.hurried() is None and not looks  # no turn has been taken
  close(search, "closed_forms")
  assert [search.hurried() for _ in range(3)] == [None] * 3 and len(looks) == 1
  close(search, "closed_forms", candidate("2*x", 0.0))
  assert search.hurried() is None and len(looks) == 1


def test_a_turn_that_is_refused_may_be_taken_later():
  search = search_of(["library"])
  turn, takes_part = loop.Turn(Mute("library"), 0, 1), search.takes_part
  search.takes_part = lambda source: False
  assert not search.begins(turn)
  search.takes_part = takes_part
  assert [search.begins(turn) for _ in range(2)] == [True, False]
  assert [search.begins(turn._replace(is_again=True)) for _ in range(2)] == [True, True]


def test_data_sets_that_hurry_to_other_turns_have_them_after_each_other():
  sources = [Maker(name) for name in ("closed_forms", "enumeration", "curves", "rationals", "library", "pairs")]
  config = dataclasses.replace(DEFAULT, noise=dataclasses.replace(
    DEFAULT.noise, asked_before_hurry=(("enumeration", 1),)))
  searches = {i: search_of([source.name for source in sources], config=config) for i in range(3)}
  for i, watch in enumerate((Watch("1.5*x"), None, Watch("1.5*x"))):
    searches[i]._noise, searches[i].sources = watch, tuple(sources)
  del searches[2].states["rationals"]
  found = told(searches, sources)[0]
  assert [name for i, name in found if i == 0] == ["closed_forms", "enumeration", "rationals", "library"]
  assert [name for i, name in found if i == 1] == [source.name for source in sources]
  assert [name for i, name in found if i == 2] == ["closed_forms", "enumeration", "library"]


def test_what_goes_on_after_the_first_steps():
  options = SearchOptions(config=dataclasses.replace(DEFAULT, pool=dataclasses.replace(
    DEFAULT.pool, num_screened=2, num_screened_per_complexity=1)))
  found = loop._nearest([candidate("1.5*x", 0.5), candidate("2.5*x", 0.1), candidate("1.5*x*z", 0.2),
                         candidate("x", 0.9), candidate("z", 0.95), candidate("sin(x*z)", math.inf)], options)
  assert found == [parser.parse(text, ("x", "z")) for text in ("2.5*x", "1.5*x*z", "x")]


# --- turns -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Maker(Mute):
  """A source that makes one formula a turn."""

  asked: list = dataclasses.field(default_factory=list, hash=False, compare=False)
  mse: float = 1.0

  def propose(self, questions, *, turn, num, clock):
    self.asked.append((len(questions), turn, num))
    made = dataclasses.replace(candidate("1.5*x", self.mse), source=self.name)
    return [Proposal(candidates=(made,)) for _ in questions]


def searches_of(*names):
  """Searches of data sets with sources of these names."""
  return {3 + i: search_of(some) for i, some in enumerate(names)}


# Of tables of one column too.
IN_THEIR_ORDER = dataclasses.replace(DEFAULT, budget=dataclasses.replace(DEFAULT.budget, first_of_one=()))


def told(searches, sources, **options):
  """What a run tells, and what it returns."""
  found, run = [], loop.run(searches, sources, SearchOptions(config=IN_THEIR_ORDER), clock=clock.Clock(), **options)
  while True:
    try:
      number, progress = next(run)
    except StopIteration as stop:
      return found, stop.value
    found.append((number, progress.source))


def test_every_source_has_its_turns_for_the_data_sets_that_it_supports():
  first, second, third = Maker("first", (5, 6)), Maker("second"), Maker("third")
  searches = searches_of(("first", "second"), ("first",), ("second",))
  found, is_stopped = told(searches, [first, second, third])
  assert found == [(3, "first"), (4, "first")] * 2 + [(3, "second"), (5, "second")] and is_stopped is False
  assert first.asked == [(2, 0, 5), (2, 1, 6)] and second.asked == [(2, 0, 1)] and third.asked == []
  assert {search.ended_by for search in searches.values()} == {results.BUDGET}
  assert searches[3].takes_part(first) is False and search_of(("first",)).takes_part(first)
  assert not search_of(("first",)).takes_part(second)


def test_what_has_ended_is_asked_no_more_and_where_all_have_nothing_is():
  first, second = Maker("first", (1, 1)), Maker("second")
  searches = searches_of(("first", "second"), ("first", "second"))
  searches[3].ended_by = results.EXACT
  assert told(searches, [first, second])[0] == [(4, "first"), (4, "first"), (4, "second")]
  assert searches[3].ended_by == results.EXACT
  for search in searches.values():
    search.ended_by = results.EXACT
  assert told(searches, [first, second]) == ([], False)


@pytest.mark.parametrize(("num_looks", "turns"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_a_wish_to_stop_ends_it_after_the_turn(num_looks, turns):
  looks = iter([False] * num_looks + [True] * 99)
  searches = searches_of(("first", "second", "third"))
  found, is_stopped = told(searches, [Maker(name) for name in ("first", "second", "third")],
                           should_stop=lambda: next(looks))
  assert len(found) <= turns + 1 and is_stopped is True and searches[3].ended_by == results.STOPPED


def test_time_ends_turns_but_the_first_and_those_that_are_always_asked(monkeypatch):
  options = SearchOptions(max_time=5.0)
  monkeypatch.setattr(clock.Clock, "elapsed", lambda self: options.search_seconds + 0.1)
  monkeypatch.setattr(clock.Clock, "compiled", lambda self: 0.0)
  for names, expected in ((("first", "second"), ["first"]), (("closed_forms", "guesses", "second"), [
    "closed_forms", "guesses"])):
    task_options = {"max_time": 5.0}
    searches = {3: search_of(names, **task_options)}
    found = [progress.source for _, progress in loop.run(
      searches, [Maker(name) for name in names], options, clock=clock.Clock())]
    assert found == expected and searches[3].ended_by == results.TIME


def test_compiling_takes_no_time_until_something_is_found(monkeypatch):
  monkeypatch.setattr(clock.Clock, "elapsed", lambda self: 99.0)
  monkeypatch.setattr(clock.Clock, "compiled", lambda self: 98.0)
  searches = {3: search_of(("closed_forms", "second", "third"), max_time=5.0)}
  found = [progress.source for _, progress in loop.run(
    searches, [Maker("closed_forms"), Maker("second", mse=0.5), Maker("third")], SearchOptions(max_time=5.0),
    clock=clock.Clock())]
  assert found == ["closed_forms", "second"]  # then there is more than yardsticks


def test_a_turn_counts_what_it_took_and_says_what_it_found():
  search = search_of(["said"])
  progress = search.close_turn(Mute("said"), Proposal(
    candidates=(candidate("2*x", 0.25 * search.task.variance),), state="next"), [candidate("x", 9.0)], 1.23456)
  assert (progress.source, progress.seconds, search.states) == ("said", 1.2346, {"said": "next"})
  assert progress.r2 == pytest.approx(0.75) and progress.best == "2*x" and len(search.pool) == 2
  assert search.has_found and progress is search.progress[-1]
  none = search_of(["said"])
  empty = none.close_turn(Mute("said"), Proposal(), [], 0.0)
  assert (empty.r2, empty.best) == (None, "") and not none.has_found
  yard = search_of(["closed_forms"])
  close(yard, "closed_forms", dataclasses.replace(candidate("x", 1.0), source="closed_forms"))
  assert not yard.has_found


def test_what_comes_before_the_sources_that_are_waited_for_does_not_count_as_found():
  search = search_of(["rationals", "library"])
  close(search, "rationals", dataclasses.replace(candidate("x", 1.0), source="rationals"))
  assert not search.has_found
  close(search, "library", dataclasses.replace(candidate("2*x", 2.0), source="library"))
  assert search.has_found


@dataclasses.dataclass(frozen=True)
class Broken(Maker):
  """Fails at the data sets of some states."""

  error: Exception = ValueError()
  broken_by: tuple = (None,)

  def propose(self, questions, *, turn, num, clock):
    if any(question.state in self.broken_by for question in questions):
      raise self.error
    return super().propose(questions, turn=turn, num=num, clock=clock)


@dataclasses.dataclass(frozen=True)
class BrokenBy(Maker):
  """Fails at one data set."""

  task: object = None

  def propose(self, questions, *, turn, num, clock):
    if any(question.task is self.task for question in questions):
      raise IndexError("empty")
    return super().propose(questions, turn=turn, num=num, clock=clock)


@pytest.mark.parametrize(("error", "said"), [
  (np.linalg.LinAlgError("singular"), "singular"), (ValueError("attempt to get argmin"), "attempt to get argmin"),
  (ZeroDivisionError(), "ZeroDivisionError")])
def test_a_source_that_odd_data_break_is_left_out_of_a_turn(error, said):
  searches = searches_of(("first",))
  with pytest.warns(RuntimeWarning, match=f"the source 'first' is left out of a turn: {said}"):
    assert told(searches, [Broken("first", error=error)])[0] == [(3, "first")]
  assert searches[3].states == {"first": None} and not len(searches[3].pool)


def test_data_that_break_a_source_cost_no_other_data_set_its_turn():
  searches = {number: search_of(["first"]) for number in (1, 2, 3)}
  fails_at = searches[2].task
  turn = loop.Turn(BrokenBy("first", task=fails_at), 0, 1)
  with pytest.warns(RuntimeWarning, match="'first' is left out of a turn: empty"):
    made = loop.take_turn(turn, list(searches.values()), SearchOptions(), clock.Clock())
  assert [len(proposal.candidates) for proposal, _ in made] == [1, 0, 1]


@pytest.mark.parametrize("error", [
  InputError("no such thing"), ModelError("no such thing"), MemoryError("no such thing"), TypeError("no such thing")])
def test_what_no_data_are_to_blame_for_is_raised(error):
  with pytest.raises(type(error), match="no such thing"):
    told(searches_of(("first",)), [Broken("first", error=error)])


def test_a_source_that_keeps_something_is_asked_once():
  searches = {number: search_of(["first"]) for number in (1, 2)}
  searches[1].states["first"], searches[2].states["first"] = "kept", "odd"
  turn = loop.Turn(Broken("first", error=IndexError("empty"), broken_by=("odd",)), 0, 1)
  with pytest.warns(RuntimeWarning, match="'first' is left out of a turn: empty"):
    made = loop.take_turn(turn, list(searches.values()), SearchOptions(), clock.Clock())
  assert [(proposal.state, proposal.candidates) for proposal, _ in made] == [("kept", ()), ("odd", ())]


def test_the_length_that_the_watch_sees_names_each_column():
  x = np.random.default_rng(0).uniform(1, 3, (40, 2))
  task = make_task((x, x[:, 0] * x[:, 1]), ("x", "z"), SearchOptions())
  found = noise.NoiseWatch(task)._length(candidate("1.5*x*z + 0.25", 0.3))
  fit = criteria.Fit(0.3, 7, 2, names=2 * math.log(2))
  assert found == pytest.approx(criteria.mdl(fit, num_points=40, variance=task.variance, nats_per_node=4.0))
