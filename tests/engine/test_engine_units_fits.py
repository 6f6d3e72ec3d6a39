"""Fits of formulas in blocks, with a made up fit, and what may be asked of a search: limits and messages."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine import noise, refine
from symformer_jax.engine.options import SearchOptions
from symformer_jax.errors import InputError
from symformer_jax.language import parser, programs
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve

NAMES = tuple(f"x{i}" for i in range(30))


def parse(text):
  return parser.parse(text, NAMES)


class Task:
  """A data set as far as fits look at it."""

  def __init__(self, num_columns, num_rows=64, value=1.0):
    self.names, self.num_rows, self.value = NAMES[:num_columns], num_rows, value

  def padded_points(self, columns, num_columns):
    x = np.zeros((self.num_rows, num_columns))
    x[:, : len(columns)] = columns
    return x, np.full(self.num_rows, self.value), np.ones(self.num_rows)


@pytest.fixture
def blocks(monkeypatch):
  """What is asked of blocks; constants come out as their data set's number, errors as the block's."""
  asked = []

  def fit_block(block, shared, num_columns, num_programs, method, max_steps, max_constants):
    asked.append(SimpleNamespace(block=block, shared=shared, num_columns=num_columns, num_programs=num_programs,
                                 options=(method, max_steps, max_constants)))
    return [([10.5 + i] * len(programs.fitted_values(node)), float(len(asked))) for i, node in block]

  monkeypatch.setattr(refine, "_fit_block", fit_block)
  monkeypatch.setattr(refine.compilation, "dataset_buckets", lambda: (1, 4, 16))
  return asked


def test_data_sets_of_one_shape_are_fitted_in_one_call(blocks):
  tasks = [Task(2, value=1.0), Task(3, value=2.0), Task(2, value=3.0), Task(2, num_rows=128), Task(1)]
  nodes = [parse("1.5*x0"), parse("2.5*x1 + 3.5")]
  found = refine.fit_constants(
    [(tasks[0], nodes), (tasks[1], nodes[:1]), (tasks[2], nodes[1:]), (tasks[3], nodes[:1]), (tasks[4], [])],
    method="gd", max_steps=7, max_constants=5)
  # Two columns of 64 rows; three columns, of four; two of 128 rows; the last has nothing to fit.
  assert [call.num_columns for call in blocks] == [2, 4, 2] and {call.options for call in blocks} == {("gd", 7, 5)}
  assert [i for i, _ in blocks[0].block] == [0, 0, 1] and {call.num_programs for call in blocks} == {128}
  x, y, weights = blocks[0].shared
  assert x.shape == (4, 64, 2) and y[:, 0].tolist() == [1, 3, 3, 3] and weights.shape == (4, 64)  # the last again
  assert [array.shape[0] for array in blocks[1].shared] == [1, 1, 1]
  assert found[4] == [] and [len(some) for some in found] == [2, 1, 1, 1, 0]
  assert found[0][1] == (parse("10.5*x1 + 10.5"), 1.0) and found[2] == [(parse("11.5*x1 + 11.5"), 1.0)]
  assert found[1] == [(parse("10.5*x0"), 2.0)] and found[3] == [(parse("10.5*x0"), 3.0)]


@pytest.mark.parametrize(("num", "sizes"), [(1, [1]), (128, [128]), (129, [128, 1]), (256, [128, 128])])
def test_programs_go_in_blocks_of_128(num, sizes, blocks, monkeypatch):
  checks = []
  monkeypatch.setattr(refine.interruption, "check", lambda: checks.append(len(blocks)))
  found = refine.fit_constants([(Task(1), [parse(f"{k}.5*x0") for k in range(num)])], method="lm", max_steps=9)
  assert [len(call.block) for call in blocks] == sizes and len(found[0]) == num
  assert checks == list(range(len(sizes))) and blocks[0].options == ("lm", 9, 16)
  assert [mse for _, mse in found[0]] == [i + 1.0 for i, size in enumerate(sizes) for _ in range(size)]


def test_of_many_columns_those_are_fitted_over_that_are_read(blocks):
  nodes = [parse("1.5*x20 + x3"), parse("2.5*x7")]
  assert refine.columns_read(Task(18), nodes) == list(range(18))
  assert refine.columns_read(Task(19), nodes) == [3, 7, 20]
  found = refine.fit_constants([(Task(25), nodes)], method="lm", max_steps=9)
  assert blocks[0].num_columns == 4 and blocks[0].shared[0][0, 0].tolist() == [3, 7, 20, 0]
  assert [node for _, node in blocks[0].block] == [parse("1.5*x2 + x0"), parse("2.5*x1")]
  assert found[0][0][0] == parse("10.5*x20 + x3")


def test_elsewhere_than_on_a_cpu_blocks_are_of_few_sizes(monkeypatch):
  assert refine._num_programs(5) == 128 == refine._num_programs(500)
  monkeypatch.setattr(refine.jax, "default_backend", lambda: "gpu")
  monkeypatch.setattr(refine.compilation, "candidate_buckets", lambda: (8, 32))
  assert [refine._num_programs(num) for num in (5, 8, 9, 32)] == [8, 8, 32, 32]


@pytest.fixture
def polished(monkeypatch):
  """Calls of the compiled fit; numbers come out negative, of every second program the error is infinite."""
  asked = []

  def polish(ids, values, x, y, weights, *, vocab, **options):
    asked.append(SimpleNamespace(ids=ids, values=values, x=x, y=y, weights=weights, vocab=vocab, **options))
    loss = np.where(np.arange(len(ids)) % 2, np.inf, np.arange(len(ids)) + 0.5)
    return -values, SimpleNamespace(loss=loss)

  monkeypatch.setattr(solve, "polish", polish)
  return asked


def test_constants_of_an_undefined_formula_are_as_they_came(polished):
  block = [(0, parse("1.5*x0 + 2.5")), (3, parse("3.5*x1")), (3, parse("x0 + x1"))]
  found = refine._fit_block(block, ["x", "y", "weights"], 2, 8, "gd", 7, 5)
  fitted = [-value for value in programs.fitted_values(block[0][1])]
  assert found == [(fitted, 0.5), ([3.5], math.inf), ([], 2.5)] and sorted(fitted) == [-2.5, -1.5]
  [call] = polished
  assert (call.x, call.y, call.weights) == ("x", "y", "weights") and call.dataset.tolist() == [0, 3, 3, 0, 0, 0, 0, 0]
  assert call.ids.shape == (8, programs.MAX_TOKENS) and call.dataset.dtype == np.int32
  assert (call.method, call.max_steps, call.max_constants, call.vocab.num_variables) == ("gd", 7, 5, 2)


def test_programs_of_one_data_set_are_fitted_in_blocks(polished):
  ids, values = np.ones((130, 4), np.int32), np.arange(520.0).reshape(130, 4)
  points = np.ones((64, 2)), np.ones(64), np.ones(64)
  fitted, loss = refine.fit_programs(ids, values, points, vocab=Vocabulary(2), method="lm", max_steps=9)
  np.testing.assert_array_equal(fitted, -values)
  assert len(loss) == 130 and loss[0] == loss[128] == 0.5 and loss[129] == math.inf
  assert [call.ids.shape for call in polished] == [(128, 4)] * 2 and not polished[1].ids[2:].any()
  assert polished[0].x.shape == (1, 64, 2) and polished[0].y.shape == polished[0].weights.shape == (1, 64)
  assert polished[1].dataset.tolist() == [0] * 128 and polished[1].max_constants == 16
  assert {(call.method, call.max_steps, call.vocab) for call in polished} == {("lm", 9, Vocabulary(2))}
  refine.fit_programs(ids, values, points, vocab=Vocabulary(2), method="gd", max_steps=7, max_constants=5)
  assert (polished.pop().max_steps, polished.pop().max_constants) == (7, 5)
  none, nothing = refine.fit_programs(ids[:0], values[:0], points, vocab=Vocabulary(2), method="lm", max_steps=9)
  assert none.shape == (0, 4) and nothing.shape == (0,) and len(polished) == 2


# --- what may be asked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "message"), [
  ({"n_samples": 0}, "n_samples: expected a whole number of at least 1, got 0"),
  ({"n_samples": 1.5}, "n_samples: expected a whole number of at least 1, got 1.5"),
  ({"n_samples": 10_000_001}, "n_samples: expected at most 10000000, got 10000001"),
  ({"top_k": 0}, "top_k: expected a whole number"), ({"top_k": 10_000_001}, "top_k: expected at most 10000000"),
  ({"temperature": 0.0}, "temperature: expected a finite number above 0, got 0.0"),
  ({"temperature": math.inf}, "temperature: expected a finite number above 0"),
  ({"loss": "cubed"}, "loss: unknown loss 'cubed'"), ({"refine": "newton"}, "refine: unknown method 'newton'"),
  ({"max_time": 0}, "max_time: expected a number of seconds above 0, got 0"),
  ({"accuracy": 0}, "accuracy: expected an R2 above 0 and up to 1, got 0"),
  ({"accuracy": 1.01}, "accuracy: expected an R2 above 0 and up to 1, got 1.01"),
  ({"recombine": "no"}, "recombine: expected True or False, got 'no'"),
  ({"guesses": ("x", 3)}, "guesses: expected formulas as text"), ({"template": 3}, "template: expected a formula as"),
  ({"template": "f(x)", "refine": "none"}, "template: its constants are fitted, so refine='none' cannot go with it"),
  ({"effort": "heroic"}, "effort: unknown effort 'heroic'")])
def test_what_makes_no_sense_is_refused(options, message):
  with pytest.raises(InputError, match=message):
    SearchOptions(**options).check()


@pytest.mark.parametrize("options", [
  {"n_samples": 1, "top_k": 1}, {"n_samples": 10_000_000, "top_k": 10_000_000}, {"temperature": 1e-9},
  {"accuracy": 1}, {"accuracy": 1e-9}, {"max_time": 1e-9}, {"template": "f(x)"}, {"refine": "none"},
  {"recombine": np.bool_(False)}, {"guesses": ("x",)}])
def test_what_just_makes_sense_is_taken(options):
  SearchOptions(**options).check()


def test_numbers_of_other_libraries_become_built_in_ones():
  options = SearchOptions(n_samples=np.int64(5), top_k=np.int32(6), temperature=np.float32(0.5),
                          recombine=np.bool_(False))
  kinds = [type(getattr(options, name)) for name in ("n_samples", "top_k", "temperature", "recombine")]
  assert kinds == [int, int, float, bool] and (options.n_samples, options.recombine) == (5, False)
  assert type(SearchOptions(temperature=np.int64(2)).temperature) is float


def test_a_search_that_nothing_is_asked_of():
  options = SearchOptions()
  assert (options.n_samples, options.top_k, options.temperature, options.seed) == (1024, 20, 1.0, 0)
  assert options.recombine and options.search_seconds == math.inf


# --- neighbours ------------------------------------------------------------------------------------------------------


def test_neighbours_are_the_next_in_each_column_and_the_nearest_in_the_ranks_of_all():
  x = np.array([[1.0, 30.0], [2.0, 10.0], [4.0, 20.0], [3.0, 1000.0]])
  first, second, nearest = noise.neighbours(x)
  assert [pair.tolist() for pair in first] == [[0, 1, 3], [1, 3, 2]]
  assert [pair.tolist() for pair in second] == [[1, 2, 0], [2, 0, 3]]
  # In ranks by thirds: (0, 2), (1, 0), (3, 1), (2, 3); each once, whoever is nearer.
  ranks = np.array([[0, 2], [1, 0], [3, 1], [2, 3]]) / 3
  distances = np.linalg.norm(ranks[:, None] - ranks[None], axis=2) + 9 * np.eye(4)
  pairs = {tuple(sorted((i, int(np.argmin(row))))) for i, row in enumerate(distances)}
  assert set(zip(*(each.tolist() for each in nearest), strict=True)) <= {
    (i, j) for i in range(4) for j in range(4) if i < j and math.isclose(
      distances[i, j], min(distances[i].min(), distances[j].min()))} and len(pairs) >= 2
  assert len(nearest[0]) == len(set(zip(*(each.tolist() for each in nearest), strict=True)))
  equal = noise.neighbours(np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 5.0]]))[2]
  assert (0, 1) in set(zip(*(each.tolist() for each in equal), strict=True))
  assert all(a != b for a, b in zip(*(each.tolist() for each in equal), strict=True))
  level = noise.neighbours(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0]]))[2]  # a column of one value
  assert set(zip(*(each.tolist() for each in level), strict=True)) == {(0, 1), (1, 2)}


def test_columns_of_few_values_reach_as_far_as_others():
  # Ranks of three values and of six, each from 0 to 1: the second row is nearer to the third than to the first.
  x = np.array([[1.0, 1.0], [2.0, 1.0], [2.0, 3.0], [3.0, 9.0], [3.0, 8.0], [1.0, 7.0], [1.0, 6.0]])
  ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in x.T], axis=1)
  scaled = ranks / ranks.max(axis=0)
  distances = np.linalg.norm(scaled[:, None] - scaled[None], axis=2) + 9 * np.eye(7)
  assert np.argmin(distances[1]) == 2
  first, second = noise.neighbours(x)[2]
  expected = {tuple(sorted((i, int(np.argmin(row))))) for i, row in enumerate(distances)}
  assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected


def test_errors_that_are_all_equal_are_no_smoother_than_noise():
  x = np.arange(6.0)[:, None]
  assert noise.smoothness(np.full(6, 2.5), x) == [0.0] and noise.looks_like_noise(np.full(6, 2.5), x, [0])
  assert not noise.looks_like_noise(np.array([1.0, np.nan, 2, 3, 1, 2]), x, [0])
  assert noise.looks_like_noise(np.arange(6.0), x, [])  # without a column there is no order
