"""Groups of columns one by one: how groups are parted, how rows count under noise, and when a factor is a power."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, variable
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.reductions import additive_groups
from symformer_jax.sources.reductions.additive_groups import Partition
from symformer_jax.sources.reductions.partitions import Part, Split

CONFIG, SURROGATE = DEFAULT.partitions, DEFAULT.reductions.surrogate


def test_a_group_is_parted_in_each_way_once():
  """Of halves the one with the first column comes first; other groups stay where they are."""
  assert list(additive_groups._finer(((7,), (1, 2, 4, 5), (3, 6)), CONFIG)) == [
    *(((7,), (one,), tuple(each for each in (1, 2, 4, 5) if each != one), (3, 6)) for one in (1, 2, 4, 5)),
    ((7,), (1, 2), (4, 5), (3, 6)), ((7,), (1, 4), (2, 5), (3, 6)), ((7,), (1, 5), (2, 4), (3, 6)),
    ((7,), (1, 2, 4, 5), (3,), (6,))]
  assert not list(additive_groups._finer(((0,), (1,)), CONFIG))
  few = dataclasses.replace(CONFIG, max_halved=3, max_apart=2)
  assert [groups[0] for groups in additive_groups._finer(((0, 1, 2, 3),), few)] == [
    (0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3)]


def test_noise_is_the_root_mean_square_of_what_is_left_of_rows_left_out(monkeypatch):
  y = np.linspace(-1, 1, 40)
  errors = np.resize([0.1, 0.3], 40)
  monkeypatch.setattr(additive_groups.gaussian_process, "fit_sum", lambda x, y, groups, config: SimpleNamespace(
    errors=errors))
  found = additive_groups.find_noise(np.ones((40, 2)), y, CONFIG)
  assert found == pytest.approx(np.sqrt(0.05))
  monkeypatch.setattr(additive_groups.gaussian_process, "fit_sum", lambda *given: None)
  assert additive_groups.find_noise(np.ones((40, 2)), y, CONFIG) == 0


def fitted(monkeypatch, y, link, *, noise=0.0, errors=None, result=True):
  asked = []
  sum_ = SimpleNamespace(errors=np.full(len(y), 0.1) if errors is None else errors)

  def fit_sum(x, target, groups, config, weights=None):
    asked.append((target, weights))
    return sum_ if result else None

  monkeypatch.setattr(additive_groups.gaussian_process, "fit_sum", fit_sum)
  with np.errstate(all="ignore"):
    found = additive_groups.fit_partition(
      np.ones((len(y), 2)), y, link, ((0,), (1,)), SURROGATE, noise=noise)
  return found, asked, sum_


@pytest.mark.parametrize(("link", "y"), [("exp", [0.1, 0.5, 2.0, 7.0]), ("inv", [-0.1, -2.0, 0.3, 4.0]),
                                         ("y", [-1.0, 0.0, 0.2, 3.0])])
def test_rows_count_by_what_errors_of_y_make_of_its_function(monkeypatch, link, y):
  """By the square of the slope of y, here a difference quotient; where y is less than the errors, as if it were."""
  y = np.array(y)
  found, [(target, weights)], sum_ = fitted(monkeypatch, y, link, noise=0.4)
  away = np.where(y < 0, -1, 1) * np.maximum(np.abs(y), 0.4)
  slope = (LINKS[link].transform(away + 1e-6) - LINKS[link].transform(away - 1e-6)) / 2e-6
  np.testing.assert_allclose(weights, slope**-2.0, rtol=1e-6)
  np.testing.assert_array_equal(target, LINKS[link].transform(y))
  assert found.link == link and found.sum is sum_
  assert fitted(monkeypatch, y, link)[1][0][1] is None


def test_errors_of_a_function_of_y_are_those_of_y_in_its_spreads(monkeypatch):
  y = np.array([0.1, 0.5, 2.0, 7.0, 3.0])
  errors = np.array([1.0, -2.0, 0.1, 0.3, -0.2])
  found, *_ = fitted(monkeypatch, y, "exp", errors=errors)
  assert found.error == pytest.approx(np.median(np.abs(errors * y)) / (3.0 - 0.5))  # between the quartiles


def test_what_is_no_function_of_y_or_is_not_known_is_no_sum(monkeypatch):
  y = np.array([1.0, 2.0, 3.0])
  assert all(fitted(monkeypatch, unit * y, "y")[0] is not None for unit in (1e-3, 1.0))
  for some, more in ((np.full(3, 2.0), {}), (np.array([0.0, 1.0, 2.0]), {"link": "exp"}), (y, {"result": False}),
                     (y, {"errors": np.array([np.nan, 1, 1])})):
    found, asked, _ = fitted(monkeypatch, some, **{"link": "y", **more})
    assert found is None and bool(asked) is (some is y)  # of what has no function nothing is fitted


@pytest.mark.parametrize(("off", "is_power"), [(0.99e-2, True), (1.01e-2, False)])
def test_a_function_is_a_power_within_a_median_error(off, is_power):
  x = np.geomspace(0.1, 10, 41)
  bent = off * np.resize([1.0, -1.0], 41)
  bent -= np.polyval(np.polyfit(np.log(x), bent, 1), np.log(x))
  bent *= off / np.median(np.abs(bent))
  assert additive_groups._is_power(x, 1.7 * np.log(x) + 0.4 + bent, 1e-2) is is_power
  assert not additive_groups._is_power(np.append(x, 0.0), np.append(1.7 * np.log(x), 0.0), 1e9)


def partition_of(monkeypatch, errors, *, num_columns=3, link="y", noise=0.0, y=None, is_power=()):
  """What is found where groups leave so much, and which were tried."""
  asked = []

  def fit_partition(x, y, link, groups, config, *, noise):
    asked.append((groups, len(x)))
    error = errors.get(groups, 1.0)
    sum_ = SimpleNamespace(groups=groups, functions=[lambda x: x[:, 0]] * len(groups), errors=np.ones(len(x)))
    return None if error is None else Partition(link, sum_, error)

  monkeypatch.setattr(additive_groups, "fit_partition", fit_partition)
  calls = iter(is_power)
  monkeypatch.setattr(additive_groups, "_is_power", lambda *given: next(calls))
  x = np.random.default_rng(0).uniform(1, 2, (120, num_columns))
  found = additive_groups.find_partition(x, x[:, 0] if y is None else y, link, CONFIG, noise)
  return found and found.sum.groups, asked


def test_the_best_of_finer_groups_goes_on_till_none_is_as_good(monkeypatch):
  whole, first, second = ((0, 1, 2),), ((0,), (1, 2)), ((1,), (0, 2))
  apart = ((1,), (0,), (2,))
  found, asked = partition_of(monkeypatch, {whole: 1e-3, first: 1.1e-3, second: 0.9e-3, apart: 1e-3})
  assert found == apart and [num for _, num in asked] == [CONFIG.num_rows] * 5 + [120]
  found, _ = partition_of(monkeypatch, {whole: 1e-3, first: 1.1e-3, second: 0.9e-3, apart: 1.09e-3})
  assert found == second  # 1.2 times the errors of these
  found, _ = partition_of(monkeypatch, {whole: 1e-3, first: None, second: 1.1e-3})
  assert found == second
  assert partition_of(monkeypatch, {whole: 1e-3})[0] is None
  assert partition_of(monkeypatch, {whole: None, first: 1e-3})[0] is None
  assert not partition_of(monkeypatch, {whole: 1e-3}, num_columns=1)[1]
  assert not partition_of(monkeypatch, {whole: 1e-3}, link="exp", y=np.linspace(-1, 1, 120))[1]


@pytest.mark.parametrize(("is_power", "is_found"), [
  ((False, False, False), True), ((True, False, False), True), ((True, True, False), False),
  ((True, True, True), False)])
def test_sums_of_logarithms_have_two_groups_that_are_no_powers(monkeypatch, is_power, is_found):
  apart = ((0,), (1,), (2,))
  errors = {((0, 1, 2),): 1e-3, ((0,), (1, 2)): 1e-3, apart: 1e-3}
  assert partition_of(monkeypatch, errors, link="exp", is_power=is_power)[0] == (apart if is_found else None)
  assert partition_of(monkeypatch, errors, link="y")[0] == apart  # of y itself nobody asks


# --- formulas of all parts -------------------------------------------------------------------------------------------


def leaf(i):
  return Node("sin", (variable(i),))


def split_of(link, forms, constant=0.5):
  return Split(link, [Part((i,), forms=some) for i, some in enumerate(forms)], constant)


@pytest.mark.parametrize(("link", "law"), [
  ("y", lambda x: np.sin(x[:, 0]) + np.sin(x[:, 1]) + 0.5),
  ("inv", lambda x: 1 / (np.sin(x[:, 0]) + np.sin(x[:, 1]) + 0.5)),
  ("exp", lambda x: 0.5 * np.sin(x[:, 0]) * np.sin(x[:, 1]))])
def test_parts_are_put_together_as_y_is_made_of_them(link, law, rng):
  [node] = split_of(link, [[(1.0, leaf(0))], [(2.0, leaf(1))]]).new(9)
  x = rng.uniform(0.5, 2, (9, 2))
  np.testing.assert_allclose(expression.evaluate(node, x), law(x))


def test_formulas_with_something_new_come_shortest_first_and_of_equals_as_they_came():
  split = split_of("y", [[(3.0, leaf(0)), (1.0, leaf(1)), (3.0, leaf(2))], [(0.0, leaf(3)), (2.0, leaf(4))]])
  found = [expression.columns_of(node) for node in split.new(99)]
  assert found == [{1, 3}, {1, 4}, {0, 3}, {2, 3}, {0, 4}, {2, 4}]
  assert [expression.columns_of(node) for node in split.new(3)] == found[:3]
  split.parts[0].new, split.parts[1].new = [(3.0, leaf(2))], []
  assert [expression.columns_of(node) for node in split.new(99)] == [{2, 3}, {2, 4}]
  split.parts[0].new = []
  assert split.new(99) == []


def test_formulas_are_as_long_as_programs_may_be(monkeypatch):
  split = split_of("y", [[(1.0, leaf(0))], [(2.0, leaf(1)), (3.0, Node("exp", (leaf(1),)))]])
  short, long = split.new(9)
  for most in (programs.size(long), programs.size(long) - 1):
    monkeypatch.setattr(programs, "MAX_TOKENS", most)
    assert split.new(9) == [short, long][: 1 + (most == programs.size(long))]


def test_what_a_search_has_found_is_in_the_user_s_columns_and_known_once():
  rows = SimpleNamespace(fit_rows=np.ones(50))
  pool = [SimpleNamespace(node=leaf(i), mse=1e-3) for i in (1, 0)] + [SimpleNamespace(node=variable(0), mse=1e-9)]
  part = Part((4, 7), search=SimpleNamespace(task=rows, pool=SimpleNamespace(shortlist=lambda: pool)), error=1e-3)
  part.look(CONFIG)
  # A row's error is no less than that of the function: the shorter one by far comes first, of equals the first.
  assert [node for _, node in part.forms] == [variable(4), leaf(7), leaf(4)] == [node for _, node in part.new]
  costs = [nats for nats, _ in part.forms]
  assert costs[1] == costs[2] and costs[1] - costs[0] == pytest.approx(
    0.5 * 50 * np.log(2e-3 / (1e-3 + 1e-9)) + CONFIG.nats_per_node)
  part.look(CONFIG)
  assert len(part.forms) == 3 and part.new == []
