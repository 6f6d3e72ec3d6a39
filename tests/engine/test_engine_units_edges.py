"""Edges of the engine's modules: ties, empty and full cases, what decides just at a limit."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import nested, parse, task_of

from symformer_jax.engine import bags, clock, criteria, faults, loop, noise, refine, rescale, screening, task
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool, survivors
from symformer_jax.engine.rows import Rows, check_dataset
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Rule


def unit_rows(x, y, weights=None):
  x = np.asarray(x, float)
  x = x[:, None] if x.ndim == 1 else x
  return Rows(x, np.asarray(y, float), np.ones(len(x)) if weights is None else np.asarray(weights, float))


# --- the loop --------------------------------------------------------------------------------------------------------


def test_what_is_fitted_are_different_trees_that_the_rule_allows_and_a_program_holds():
  longest, longer = nested(programs.MAX_TOKENS), nested(programs.MAX_TOKENS + 1)
  assert programs.size(longest) == programs.MAX_TOKENS
  some = SimpleNamespace(rule=lambda node: node != parse("z"))
  nodes = [parse("x"), parse("z"), longest, longer, parse("x"), parse("sin(x)")]
  assert loop._fittable(nodes, some) == [parse("x"), longest, parse("sin(x)")]


@dataclasses.dataclass(frozen=True)
class Named:
  name: str
  turns: tuple[int, ...] = ()


@pytest.mark.parametrize(("cycle", "names", "found"), [
  (("first", "second"), ("first", "second"), ["first", "second", "first"]),
  (("first", "second"), ("first",), ["first", "first"]), (("first", "second"), ("second",), []),
  (("first", "second", "third"), ("second", "third"), ["second", "third"]),
  ((), ("first", "second"), []), (("first",), ("first",), ["first"] * 3)])
def test_the_cycle_goes_round_where_a_source_takes_part_that_needs_no_other(cycle, names, found):
  budget = SimpleNamespace(
    early=(), first_of_one=(), cycle=cycle, finders=set(cycle) - {"second"}, turns=lambda effort: 3)
  options = SimpleNamespace(config=SimpleNamespace(budget=budget), max_time=None, effort="normal")
  turns = list(loop.schedule([Named(name) for name in names], options))
  assert [turn.source.name for turn in turns] == found and {turn.num for turn in turns} <= {1}
  assert [turn.number for turn in turns] == list(range(len(found)))


@pytest.mark.parametrize(("names", "early", "found"), [
  ("abc", (), "a0 a1 b0 b1 c0 c1"), ("abc", (("c", 1, "a"),), "a0 a1 c0 b0 b1 c1"),
  ("abc", (("c", 9, "a"),), "a0 a1 c0 c1 b0 b1"),
  ("bc", (("c", 1, "a"),), "b0 b1 c0 c1"), ("ab", (("c", 1, "a"),), "a0 a1 b0 b1"),
  ("abcd", (("c", 1, "a"), ("d", 1, "a")), "a0 a1 c0 d0 b0 b1 c1 d1"),
  ("abc", (("c", 1, "a"), ("c", 1, "b")), "a0 a1 c0 b0 b1 c1"),
  ("abc", (("c", 1, "a"), ("c", 9, "a")), "a0 a1 c0 c1 b0 b1")])
def test_turns_of_a_source_may_come_early(names, early, found):
  budget = SimpleNamespace(early=early, first_of_one=(), cycle=(), finders=())
  options = SimpleNamespace(config=SimpleNamespace(budget=budget), max_time=None, effort="normal")
  turns = list(loop.schedule([Named(name, (7, 8)) for name in names], options))
  assert " ".join(f"{turn.source.name}{turn.number}" for turn in turns) == found
  assert {turn.num for turn in turns if turn.number} == {8}


@pytest.mark.parametrize(("names", "first", "found"), [
  ("abc", (("c", 1), ("b", 1), ("c", 1)), "c0 b0 c1 a0 a1 b1"), ("ab", (("c", 1),), "a0 a1 b0 b1"),
  (("a", "guesses", "closed_forms"), (("a", 1),), "closed_forms0 closed_forms1 guesses0 guesses1 a0 a1"),
  (("a", "closed_forms"), (), "a0 a1 closed_forms0 closed_forms1"),
  ("abc", (("b", 9),), "b0 b1 a0 a1 c0 c1")])
def test_turns_of_tables_of_one_column_have_an_order_of_their_own(names, first, found):
  budget = SimpleNamespace(early=(), first_of_one=first, cycle=(), finders=())
  options = SimpleNamespace(config=SimpleNamespace(budget=budget), max_time=None, effort="normal")
  sources = [Named(name, (7, 8)) for name in names]
  turns = list(loop.schedule(sources, options, is_of_one=True))
  assert " ".join(f"{turn.source.name}{turn.number}" for turn in turns) == found
  assert [turn.source.name for turn in loop.schedule(sources, options)] == [name for name in names for _ in range(2)]
  assert list(loop.first_turns(sources, budget, is_of_one=True)) == turns


def test_with_a_limit_of_time_the_cycle_has_no_end():
  budget = SimpleNamespace(early=(), first_of_one=(), cycle=("first",), finders=("first",), turns=lambda effort: 3)
  options = SimpleNamespace(config=SimpleNamespace(budget=budget), max_time=5.0, effort="normal")
  turns = itertools.islice(loop.schedule([Named("first")], options), 9)
  assert [turn.number for turn in turns] == list(range(9))


# --- the task, its rows, bags ----------------------------------------------------------------------------------------


def test_rows_that_differ_a_little_stay_as_they_are_drawn():
  rows = unit_rows(np.arange(40.0), 1e-3 * np.sin(np.arange(40.0)))
  drawn = task._sample_that_varies(rows, 8, seed=3)
  np.testing.assert_array_equal(drawn.y, rows.sample(8, seed=3).y)


def test_where_all_drawn_rows_are_alike_two_of_them_give_way_to_the_extremes():
  y = np.zeros(4000)
  y[[17, 31]] = 2.0, -1.0
  rows = unit_rows(np.arange(4000.0), y, np.arange(1.0, 4001))
  drawn, alike = task._sample_that_varies(rows, 6, seed=0), rows.sample(6, seed=0)
  assert np.ptp(alike.y) == 0 and len(drawn) == 6
  np.testing.assert_array_equal(drawn.y, [-1, 2, 0, 0, 0, 0])
  np.testing.assert_array_equal(drawn.x[:, 0], [31, 17, *alike.x[2:, 0]])
  np.testing.assert_array_equal(drawn.weights, drawn.x[:, 0] + 1)


def test_r2_is_of_the_whole_that_y_is_a_part_of_where_there_is_one():
  part = task_of(1)
  assert part.r2(0.25 * part.variance) == pytest.approx(0.75)
  assert dataclasses.replace(part, whole_variance=2 * part.variance).r2(0.5 * part.variance) == pytest.approx(0.75)


def test_names_are_as_many_texts_as_columns_and_differ():
  x, y = np.random.default_rng(0).uniform(1, 3, (9, 2)), np.arange(9.0)
  for names in (["a", "a"], ["a", 3]):
    with pytest.raises(task.InputError, match="names: expected texts that differ"):
      task.make_task((x, y), names, SearchOptions())


def test_rows_of_one_rank_are_taken_in_their_order():
  values = np.tile([1.0, 0.0, 2.0], 200)
  rows = unit_rows(np.arange(600.0), values)
  found = bags._spread(rows, rows.y, 60)
  in_order = sorted(range(600), key=lambda i: values[i])  # stable
  expected = sorted(in_order[int(place)] for place in np.linspace(0, 599, 60))
  assert found.x[:, 0].tolist() == expected and np.array_equal(found.y, values[expected])


def test_a_row_of_tiny_weight_counts_and_one_of_none_does_not():
  rows = check_dataset((np.arange(7.0), np.arange(7.0) ** 2, [1e-9, 0, 1, 1, 1, 1, 1]))
  assert rows.x[:, 0].tolist() == [0, 2, 3, 4, 5, 6] and rows.weights.mean() == pytest.approx(1)


@pytest.mark.parametrize(("num_rows", "num_bags"), [(4095, 2), (4096, 4)])
def test_from_so_many_rows_on_two_more_bags_are_shown(num_rows, num_bags):
  rows = unit_rows(np.arange(float(num_rows)), np.arange(float(num_rows)) ** 2)
  assert len(bags.draw_bags(rows, rows.sample(9, seed=0), seed=0)) == num_bags


# --- screening -------------------------------------------------------------------------------------------------------


def test_ranks_go_from_minus_one_to_one():
  np.testing.assert_allclose(screening._ranks(np.array([3.0, 1, 7, 3, 5])), [-1 / 3, -1, 1, -1 / 3, 1 / 3])
  np.testing.assert_array_equal(screening._ranks(np.array([2.0, 2])), [-1, -1])
  np.testing.assert_array_equal(screening._ranks(np.array([2.0, 3])), [-1, 1])


def test_huge_and_constant_values_are_of_unit_length_or_none():
  values, root = np.array([1.0, 2, 4]), np.ones(3)
  small = screening._standardized(values, root)
  assert np.linalg.norm(small) == pytest.approx(1)
  np.testing.assert_allclose(screening._standardized(1e200 * values, root), small)
  np.testing.assert_array_equal(screening._standardized(np.zeros(3), root), np.zeros(3))


def test_a_constant_column_has_no_polynomial_and_one_of_two_values_a_single_one():
  root = np.ones(8)
  assert not screening._basis(np.full(8, 3.0), root, 3).any()
  two = screening._basis(np.repeat([1.0, 5.0], 4), root, 3)
  assert [bool(column.any()) for column in two.T] == [True, False, False]


@pytest.mark.parametrize("num_rows", [9, 10, 13, 14, 15, 16, 20, 22])
def test_columns_are_compared_while_the_sums_have_less_than_half_as_many_terms_as_rows(num_rows, monkeypatch):
  """One and three for each column: 4, 7, 10."""
  rng = np.random.default_rng(0)
  solves, lstsq = [], np.linalg.lstsq
  monkeypatch.setattr(screening.np.linalg, "lstsq", lambda design, left, **rest: solves.append(
    design.shape[1]) or lstsq(design, left, **rest))
  rows = unit_rows(rng.normal(size=(num_rows, 9)), rng.normal(size=num_rows))
  screening.choose_columns(rows, Rule(9), num_columns=6)
  expected = [1 + 3 * i for i in range(9)]
  assert solves == expected[: next(i for i, num in enumerate(expected) if num >= num_rows // 2) + 1]


def test_a_column_that_explains_the_ranks_and_one_that_explains_the_values_have_equal_parts():
  """Of y one column knows a single huge value, another the order of all rows."""
  rng = np.random.default_rng(0)
  order = np.linspace(-1, 1, 60)
  y = np.exp(9 * order)  # the last few rows are nearly all of the variance
  spike = np.where(np.arange(60) > 56, np.arange(60.0), 0.0)
  noisy = order + 0.05 * rng.normal(size=60)
  x = np.column_stack([rng.normal(size=60), spike, noisy, rng.normal(size=60)])
  assert screening.choose_columns(unit_rows(x, y), Rule(4), num_columns=2) == (1, 2)
  assert screening.choose_columns(unit_rows(x, order), Rule(4), num_columns=1) == (2,)


# --- scalings --------------------------------------------------------------------------------------------------------


def test_a_factor_is_written_but_where_it_is_one():
  x = variable(0)
  assert rescale._multiplied(1.0, x) == x and rescale._multiplied(-1.0, x) == Node("neg", (x,))
  assert rescale._multiplied(2.0, x) == Node("*", (x, number(2.0))) and rescale._multiplied(2.0, None) == number(2.0)
  assert rescale._multiplied(-2.0, x) == Node("*", (x, number(-2.0)))


@pytest.mark.parametrize(("node", "value"), [
  (Node("pow2", (number(3.0),)), 9.0), (Node("inv", (number(4.0),)), 0.25), (Node("sqrt", (number(9.0),)), 3.0),
  (Node("pow3", (number(-2.0),)), -8.0), (Node("pow2", (number(-2.0),)), 4.0)])
def test_powers_of_numbers_are_numbers(node, value):
  assert rescale.Scaling((2.0,)).restore(node) == number(value)


@pytest.mark.parametrize("text", ["sqrt(-x)", "(-2*x)**1.5", "3*sqrt(-x*y**2)", "(-x)**(-0.5)"])
def test_a_negative_factor_stays_under_a_root(text):
  x, node = np.column_stack([np.linspace(-3, -0.1, 9), np.linspace(1, 2, 9)]), parser.parse(text, ("x", "y"))
  expected = expression.evaluate(node, x / [6.0, 0.5])
  found = expression.evaluate(rescale.Scaling((6.0, 0.5)).restore(node), x)
  assert np.isfinite(expected).all()
  np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_root_of_a_negative_number_stays_undefined():
  found = rescale.Scaling((2.0,)).restore(Node("sqrt", (number(-4.0),)))
  assert np.isnan(expression.evaluate(found, np.ones((3, 1)))).all() and number(-1) in list(expression.walk(found))


def test_small_columns_are_shown_raw_as_well_up_to_the_border_of_the_box():
  y = np.linspace(1, 2, 9)
  small = np.linspace(0, 0.5, 9)
  for largest, count in ((5.0, 2), (5.001, 1)):
    x = np.column_stack([small, np.linspace(-largest, 0, 9)])
    found = rescale.propose_scalings(x, y)
    assert len(found) == count and found[-1].is_identity is (count == 2)


@pytest.mark.parametrize(("low", "high", "is_far"), [(5.0, 5.0, False), (9.0, 9.5, True), (0.2, 0.4, True)])
def test_small_spans_far_from_zero_are_off_to_one_side(low, high, is_far):
  assert rescale._is_far(np.linspace(low, high, 9)[:, None], DEFAULT.scaling)[0] == is_far


# --- noise and criteria ----------------------------------------------------------------------------------------------


def test_of_equal_descriptions_the_first_is_the_best():
  watch = object.__new__(noise.NoiseWatch)
  watch._config, watch._least, watch._lengths = DEFAULT.noise, np.inf, {}
  watch._length = lambda candidate: candidate.length
  # A nat less is a gain, and so is the first description.
  for pair, best, has_stalled in (((5.0, 5.0), 0, False), ((5.0, 5.0), 0, True), ((5.0, 4.0), 1, False),
                                  ((3.01, 3.5), 0, True), ((9.0, 9.0), 0, True), ((2.0, 9.0), 0, False)):
    found = [SimpleNamespace(length=length, node=parse("x")) for length in pair]
    assert watch.has_stalled(SimpleNamespace(in_order=lambda found=found: found, best=None)) is has_stalled
    assert watch.best is found[best]
  assert watch.has_stalled(SimpleNamespace(in_order=lambda: [], best=None)) is False and watch.best is None


def test_errors_have_no_constants_unless_they_are_named(monkeypatch):
  asked = []
  monkeypatch.setattr(noise, "smoothness", lambda errors, x, *, num_constants: asked.append(num_constants) or [0.0])
  assert noise.looks_like_noise(np.ones(4), np.ones((4, 1)), [0])
  assert asked == [0]


def test_a_formula_without_an_error_is_no_better_for_it():
  for name, criterion in criteria.CRITERIA.items():
    assert criterion(criteria.Fit(np.nan, 3, 1), num_points=20, variance=2.0) == np.inf, name


# --- the pool --------------------------------------------------------------------------------------------------------


def test_of_each_length_so_many_survive_beside_the_best():
  loss = np.array([0.5, 0.1, np.inf, 0.3, 0.2, np.nan, 0.4])
  lengths = [3, 5, 3, 5, 5, 3, 7]
  assert survivors(loss, lengths, num_best=0, num_per_length=1) == [1, 6, 0]
  assert survivors(loss, lengths, num_best=2, num_per_length=1) == [1, 4, 6, 0]
  assert survivors(loss, lengths, num_best=0, num_per_length=2) == [1, 4, 6, 0]
  assert survivors(loss, lengths, num_best=9, num_per_length=0) == [1, 4, 3, 6, 0]


def test_what_a_program_does_not_hold_goes_no_further():
  pool = Pool(1.0, 100)
  for num in (programs.MAX_TOKENS, programs.MAX_TOKENS + 1):
    pool.insert([Candidate(nested(num), 0.1)])
  assert [expression.complexity(c.node) for c in pool.shortlist()] == [programs.MAX_TOKENS]


def test_an_equal_error_is_no_gain_and_the_first_of_equals_stays():
  pool = Pool(1.0, 100)
  assert pool.insert([Candidate(parse("x"), 0.5, "first")])
  assert not pool.insert([Candidate(parse("x"), 0.5, "second"), Candidate(parse("z"), 0.5, "third")])
  assert pool.best.source == "first" and pool.sources() == {"first", "third"} and len(pool) == 2


# --- fits and the clock ----------------------------------------------------------------------------------------------


def test_a_task_without_formulas_has_no_fits():
  assert refine.fit_constants([(task_of(1), [])], method="lm", max_steps=3) == [[]]
  assert refine.fit_constants([], method="lm", max_steps=3) == []


def test_intervals_that_overlap_are_counted_once():
  union = clock._Union()
  for start, end, seconds in ((1.0, 2.0, 1.0), (3.0, 4.0, 2.0), (4.0, 5.0, 3.0), (3.5, 6.0, 4.0), (0.5, 7.0, 6.5)):
    union.add(start, end)
    assert union.seconds == pytest.approx(seconds)
  assert union._apart == [(0.5, 7.0)]


def test_of_many_columns_as_many_are_chosen_by_such_polynomials_as_the_library_says(monkeypatch):
  asked = []
  monkeypatch.setattr(screening, "choose_columns", lambda rows, rule, **named: asked.append(named) or (0,))
  library = dataclasses.replace(DEFAULT.library, max_columns=5, screening_degree=2)
  options = SearchOptions(config=dataclasses.replace(DEFAULT, library=library))
  x = np.arange(16.0).reshape(8, 2)
  assert task.make_task((x, x[:, 0]), None, options).columns == (0,)
  assert asked == [{"num_columns": 5, "degree": 2}]


@pytest.mark.parametrize(("name", "has_begun", "ends_late", "ends_when_asked"), [
  ("library", True, True, True), ("guesses", True, False, True), ("library", False, False, False)])
def test_a_turn_in_progress_ends_where_time_is_over_or_somebody_asks(
    name, has_begun, ends_late, ends_when_asked, monkeypatch):
  """The first of a data set ends for neither, those that are always asked for no time."""
  state, then, made = {"seconds": 0.0, "is_asked": False}, [], []

  def take_turn(turn, live, options, clock):
    state.update(then[0])
    loop.interruption.check()
    made.append(turn.source)
    return [(None, None)]

  monkeypatch.setattr(loop, "take_turn", take_turn)
  turn = {"is_again": False}
  monkeypatch.setattr(loop, "schedule", lambda asked, options, is_of_one: [SimpleNamespace(source=asked[0], **turn)])
  clocks = SimpleNamespace(elapsed=lambda: state["seconds"], compiled=lambda: 0.0)
  for begun, ends in (({}, False), ({"seconds": 9.0}, ends_late), ({"is_asked": True}, ends_when_asked)):
    made.clear()
    then[:] = [begun]
    state.update(seconds=0.0, is_asked=False)
    search = SimpleNamespace(states={name: None}, ended_by="", has_found=True, is_of_one=False,
                             progress=[1] if has_begun else [], begins=lambda turn: True, hurried=lambda: None,
                             close_turn=lambda *given: None)
    list(loop.run({0: search}, [SimpleNamespace(name=name, turns=(1,))], SimpleNamespace(search_seconds=5.0),
                  clock=clocks, should_stop=lambda: state["is_asked"]))
    assert bool(made) is not ends


@pytest.mark.parametrize(("error", "said"), [(ValueError("no such row"), "no such row"), (KeyError(), "KeyError")])
def test_a_source_that_fails_is_named_with_its_error_where_somebody_asked_for_the_turn(error, said):
  def ask():
    faults.tell("rationals", error)

  with pytest.warns(RuntimeWarning, match=f"^the source 'rationals' is left out of a turn: {said}$") as caught:
    ask()
  assert caught[0].filename == __file__ and caught[0].lineno > ask.__code__.co_firstlineno + 1
