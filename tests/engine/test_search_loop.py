"""The loop with sources that say what they are asked."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from symformer_jax import results
from symformer_jax.engine import interruption, loop, refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.source import Proposal
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions


@dataclasses.dataclass(frozen=True)
class Said:
  """Proposes given formulas, those of its turn; its state counts its turns."""

  texts: tuple[tuple[str, ...], ...]
  name: str = "said"

  @property
  def turns(self):
    return (1,) * len(self.texts)

  def supports(self, task):
    return True

  def init(self, task, key):
    return 0

  def propose(self, questions, *, turn, num, clock):
    assert all(question.state == turn for question in questions)
    nodes = tuple(parser.parse(text, ("x",)) for text in self.texts[turn])
    return [Proposal(question.state + 1, nodes) for question in questions]


def run(source, *, options=None, datasets=1, noise=0.0, should_stop=lambda: False):
  options = options or SearchOptions()
  x = np.linspace(0.5, 3, 40)
  y = 2.5 * np.exp(-0.7 * x) + 0.3 + noise * np.sin(50 * x**2)
  searches = {i: loop.Search(make_task((x, (i + 1) * y), ("x",), options), [source], options, jax.random.key(0))
              for i in range(datasets)}
  seen = list(loop.run(searches, [source], options, clock=Clock(), should_stop=should_stop))
  return searches, seen


WRONG, LAW, LONG = "1.1*x + 2.2", "2.2*exp(-0.6*x) + 0.2", "2.2*exp(-0.6*x) + 0.2 + 0.1*x"


def test_every_turn_is_a_line_of_progress_and_the_best_never_gets_worse():
  searches, seen = run(Said(((WRONG,), ("1.2*x",), (LAW,))), noise=1e-3)
  assert [i for i, _ in seen] == [0, 0, 0] and [p.gained for _, p in seen] == [True, False, True]
  r2 = [p.r2 for _, p in seen]
  assert r2 == sorted(r2) and searches[0].ended_by == results.BUDGET
  assert searches[0].states == {"said": 3} and tuple(p for _, p in seen) == tuple(searches[0].progress)


def test_exact_ends_it_once_a_further_turn_finds_nothing_simpler():
  searches, seen = run(Said(((WRONG,), (LONG,), (LAW,), (WRONG,), (WRONG,))))
  # The long one is met first, the law is simpler, and the turn after it is the last.
  assert len(seen) == 4 and searches[0].ended_by == results.EXACT
  assert "exp" in seen[-1][1].best


def test_a_long_formula_does_not_end_it_before_those_that_would_find_a_shorter_one():
  """A root of a polynomial in y may meet the data of a sum; others are not asked meanwhile."""
  first, second = Said(((LONG,), (LONG,), (LONG,)), "first"), Said(((LONG,), (LAW,), (WRONG,)), "second")
  x = np.linspace(0.5, 3, 40)
  twice, once, till_shorter = ["first"] * 2, ["first", "second"], ["first", *["second"] * 3]
  for long, asked, turns in (
    (20, (), twice), (20, (("second", 2),), twice), (5, (), twice), (5, (("second", 1),), once),
    (5, (("second", 2),), till_shorter), (5, (("third", 2),), twice)):
    pool = dataclasses.replace(DEFAULT.pool, long=long)
    object.__setattr__(pool, "asked_if_long", asked)  # names of these sources
    options = SearchOptions(config=dataclasses.replace(DEFAULT, pool=pool))
    search = loop.Search(make_task((x, 2.5 * np.exp(-0.7 * x) + 0.3), ("x",), options), [first, second], options,
                         jax.random.key(0))
    seen = list(loop.run({0: search}, [first, second], options, clock=Clock()))
    assert ([progress.source for _, progress in seen], search.ended_by) == (turns, results.EXACT)


def test_accuracy_time_and_a_wish_to_stop_end_it_after_the_turn():
  source = Said(((WRONG,), (WRONG,), (LAW,)))
  for options, reason in (
    (SearchOptions(accuracy=0.5), results.ACCURACY), (SearchOptions(max_time=1e-9), results.TIME)
  ):
    searches, seen = run(source, options=options)
    assert len(seen) == 1 and searches[0].ended_by == reason
  searches, seen = run(source, should_stop=lambda: True)
  assert len(seen) == 1 and searches[0].ended_by == results.STOPPED


@dataclasses.dataclass(frozen=True)
class Endless(Said):
  """Goes on as long as it is asked."""

  name: str = "evolution"
  turns: tuple[int, ...] = ()

  def propose(self, questions, *, turn, num, clock):
    assert all(question.state == turn for question in questions)
    return [Proposal(question.state + 1, (parser.parse(f"{turn}.5*x", ("x",)),)) for question in questions]


def names_of(options, sources=(Said(((WRONG,), (WRONG,)), "parts"), Endless(()))):
  return [turn.source.name for turn in itertools.islice(loop.schedule(sources, options), 40)]


def test_searches_of_one_column_and_of_several_have_their_orders_in_one_call():
  x = np.random.default_rng(0).uniform(0.5, 3, (40, 2))
  budget = dataclasses.replace(DEFAULT.budget, early=())
  object.__setattr__(budget, "first_of_one", (("second", 1),))  # names of these sources
  options = SearchOptions(config=dataclasses.replace(DEFAULT, budget=budget))
  sources = [Said(((WRONG,), (WRONG,)), "first"), Said(((WRONG,), (WRONG,)), "second")]
  tables = {0: (x, np.prod(x, axis=1)), 1: (x[:, :1], np.sin(9 * x[:, 0])), 2: (x[:, ::-1], x[:, 0] + x[:, 1])}

  def asked(numbers):
    searches = {i: loop.Search(make_task(tables[i], None, options), sources, options, jax.random.key(0))
                for i in numbers}
    told = list(loop.run(searches, sources, options, clock=Clock()))
    return {i: [progress.source for number, progress in told if number == i] for i in numbers}

  searches = {i: loop.Search(make_task(tables[i], None, options), sources, options, jax.random.key(0)) for i in (0, 1)}
  told = [(number, progress.source) for number, progress in loop.run(searches, sources, options, clock=Clock())]
  assert told[:4] == [(1, "second"), (0, "first"), (1, "first"), (0, "first")]  # by turns
  several = ["first", "first", "second", "second"]
  together = asked((0, 1, 2))
  assert together == {0: several, 1: ["second", "first", "first", "second"], 2: several}
  assert all(asked((i,))[i] == turns for i, turns in together.items())


def test_smaller_tables_come_next_where_y_is_a_function_of_one_column():
  x = np.random.default_rng(0).uniform(-4, 4, (80, 2))
  budget = dataclasses.replace(DEFAULT.budget, early=(), first_of_one=(("enumeration", 1), ("quadratics", 2)))
  options = SearchOptions(config=dataclasses.replace(DEFAULT, budget=budget))
  sources = [Said(((WRONG,),), "closed_forms"), Said(((WRONG,), (WRONG,)), "enumeration"),
             Said(((WRONG,),) * 9, "reductions")]

  def asked(y):
    search = loop.Search(make_task((x, y), None, options), sources, options, jax.random.key(0))
    return [progress.source for _, progress in loop.run({0: search}, sources, options, clock=Clock())]

  usual = ["closed_forms", *["enumeration"] * 2, *["reductions"] * 9]
  assert asked(np.sin(x[:, 0] * x[:, 1])) == usual
  # The search for the table, its closed forms, and its three first turns.
  assert asked(np.tan(x[:, 1])) == ["closed_forms", *["reductions"] * 5, *["enumeration"] * 2, *["reductions"] * 4]
  sources[2] = Said(((WRONG,),) * 2, "reductions")
  assert asked(np.tan(x[:, 1])) == ["closed_forms", *["reductions"] * 2, *["enumeration"] * 2]
  sources[2] = Said(((WRONG,),) * 2, "growth")
  assert asked(np.tan(x[:, 1])) == ["closed_forms", *["enumeration"] * 2, *["growth"] * 2]


def test_effort_says_how_often_the_cycle_goes_on():
  quick, normal, thorough = (names_of(SearchOptions(effort=effort)) for effort in ("quick", "normal", "thorough"))
  assert quick == normal == ["parts", "parts"]
  cycle = ["evolution"] * 4 + ["parts"] * 2
  assert len(thorough) > 14
  assert thorough[2:14] == cycle * 2
  assert names_of(SearchOptions(effort="quick", max_time=1.0))[2:14] == cycle * 2
  assert names_of(SearchOptions(max_time=1.0), (Said(((WRONG,),), "parts"),)) == ["parts"]


WITHOUT_CHOICE = dataclasses.replace(DEFAULT, budget=dataclasses.replace(DEFAULT.budget, choice_share=0.0))


class Hand:
  """Moved by a source, in place of the time."""

  def __init__(self, monkeypatch):
    self.seconds = self.compiled = 0.0
    monkeypatch.setattr(Clock, "elapsed", lambda clock: self.seconds)
    monkeypatch.setattr(Clock, "compiled", lambda clock: self.compiled)


@dataclasses.dataclass(frozen=True)
class Slow(Endless):
  """Takes so many steps of a second each for a turn."""

  hand: Hand | None = None
  num_steps: int = 1
  is_told: bool = True

  def propose(self, questions, *, turn, num, clock):
    for _ in range(self.num_steps):
      self.hand.seconds += 1
      if self.is_told:
        interruption.check()
    return super().propose(questions, turn=turn, num=num, clock=clock)


def test_with_a_limit_of_time_the_search_goes_on_till_then(monkeypatch):
  source = Slow((), hand=Hand(monkeypatch), is_told=False)
  searches, seen = run(source, options=SearchOptions(max_time=30.5, config=WITHOUT_CHOICE))
  assert len(seen) == 31 and searches[0].ended_by == results.TIME
  assert [p.source for _, p in seen] == ["evolution"] * 31


@dataclasses.dataclass(frozen=True)
class Brief(Endless):
  """Has no more to say after its third turn."""

  def propose(self, questions, *, turn, num, clock):
    return [dataclasses.replace(each, is_last=turn == 2)
            for each in super().propose(questions, turn=turn, num=num, clock=clock)]


def test_a_search_ends_before_its_time_where_all_have_said_their_last():
  searches, seen = run(Brief(()), options=SearchOptions(max_time=1e6))
  assert len(seen) == 3 and searches[0].ended_by == results.BUDGET


def test_a_turn_in_progress_is_ended_when_the_time_is_over(monkeypatch):
  hand = Hand(monkeypatch)
  searches, seen = run(Slow((), hand=hand, num_steps=10), options=SearchOptions(max_time=25.5, config=WITHOUT_CHOICE))
  assert len(seen) == 2 and hand.seconds == 26 and searches[0].ended_by == results.TIME
  assert searches[0].states == {"evolution": 2}


def test_the_first_turn_is_waited_for(monkeypatch):
  hand = Hand(monkeypatch)
  searches, seen = run(Slow((), hand=hand, num_steps=10), options=SearchOptions(max_time=0.5))
  assert len(seen) == 1 and hand.seconds == 10 and searches[0].ended_by == results.TIME


@dataclasses.dataclass(frozen=True)
class Once(Slow):
  """Is asked once, and compiles for a share of the time."""

  turns: tuple[int, ...] = (1,)
  compiles: float = 0.0

  def propose(self, questions, *, turn, num, clock):
    self.hand.compiled += self.compiles * self.num_steps
    [proposal] = super().propose(questions, turn=turn, num=num, clock=clock)
    text = "1.5*x" if self.name == "closed_forms" else "x**1.5"
    return [dataclasses.replace(proposal, nodes=(parser.parse(text, ("x",)),))]


def run_all(sources, options, should_stop=lambda: False):
  x = np.linspace(0.5, 3, 40)
  search = loop.Search(make_task((x, np.sin(x)), ("x",), options), sources, options, jax.random.key(0))
  list(loop.run({0: search}, sources, options, clock=Clock(), should_stop=should_stop))
  return [turn.source for turn in search.progress], search.ended_by


def test_what_the_user_gives_is_asked_whatever_the_time(monkeypatch):
  hand, names = Hand(monkeypatch), ("closed_forms", "guesses", "said")
  sources = [Once((), name, hand=hand, num_steps=10) for name in names]
  options = SearchOptions(max_time=5.0, config=WITHOUT_CHOICE)
  assert run_all(sources, options) == (["closed_forms", "guesses"], results.TIME)
  hand.seconds = 0.0
  assert run_all(sources, options, lambda: hand.seconds > 12) == (["closed_forms"], results.STOPPED)


@pytest.mark.parametrize("max_time", [5.0, 15.0])
def test_what_the_user_gives_is_asked_after_a_turn_that_time_has_left_out_or_ended(monkeypatch, max_time):
  hand = Hand(monkeypatch)
  sources = [Once((), name, hand=hand, num_steps=10) for name in ("closed_forms", "said", "guesses", "more")]
  options = SearchOptions(max_time=max_time, config=WITHOUT_CHOICE)
  assert run_all(sources, options) == (["closed_forms", "guesses"], results.TIME)
  hand.seconds = 0.0
  assert run_all(sources, options, lambda: hand.seconds > 12) == (["closed_forms"], results.STOPPED)


def test_compiling_takes_none_of_the_time_before_something_is_found(monkeypatch):
  hand = Hand(monkeypatch)
  sources = [Once((), name, hand=hand, num_steps=10, compiles=compiles)
             for name, compiles in (("closed_forms", 0.9), ("said", 0.9), ("more", 0.9))]
  options = SearchOptions(max_time=5.0, config=WITHOUT_CHOICE)
  assert run_all(sources, options) == (["closed_forms", "said"], results.TIME)
  hand.seconds = hand.compiled = 0.0
  found = [dataclasses.replace(sources[0], compiles=0.4), *sources[1:]]
  assert run_all(found, options) == (["closed_forms"], results.TIME)


def test_a_wish_to_stop_ends_a_turn_in_progress(monkeypatch):
  hand = Hand(monkeypatch)
  searches, seen = run(Slow((), hand=hand, num_steps=10), options=SearchOptions(max_time=1e9),
                       should_stop=lambda: hand.seconds > 23)
  assert len(seen) == 2 and hand.seconds == 24 and searches[0].ended_by == results.STOPPED


def test_some_of_the_time_is_left_for_the_choice():
  assert SearchOptions().search_seconds == np.inf
  budget = DEFAULT.budget
  assert SearchOptions(max_time=2.0).search_seconds == pytest.approx(2 * (1 - budget.choice_share))
  assert SearchOptions(max_time=600.0).search_seconds == 600 - budget.choice_seconds


def test_what_was_fitted_before_a_turn_was_ended_is_kept(monkeypatch):
  real, hand = refine.fit_constants, Hand(monkeypatch)

  def fit(asked, **how):
    found = real(asked, **how)
    hand.seconds += 1
    return found

  monkeypatch.setattr(refine, "fit_constants", fit)
  options = SearchOptions(max_time=4.5, config=WITHOUT_CHOICE)
  searches, seen = run(Said(((WRONG,), (LAW,), (LONG,))), options=options, noise=1e-3)
  # A turn is fitted in three calls: of the second turn the first call was made.
  assert len(seen) == 2 and searches[0].ended_by == results.TIME
  assert "exp" in seen[-1][1].best


def test_what_breaks_the_rules_or_is_too_long_never_enters():
  options = SearchOptions(restrictions=Restrictions(forbidden=("exp",)))
  long = " + ".join(f"{k}.5*sin({k}.25*x)" for k in range(1, 30))
  searches, _ = run(Said(((LAW, WRONG, long),)), options=options)
  assert [c.source for c in searches[0].pool.in_order()] and all(
    "exp" not in searches[0].task.text(c.node) for c in searches[0].pool.in_order())


@pytest.mark.parametrize("datasets", [2, 3])
def test_data_sets_of_a_call_share_turns_and_answers_do_not_depend_on_company(datasets, monkeypatch):
  from symformer_jax import compilation

  monkeypatch.setitem(compilation.DATASET_BUCKETS, "cpu", (1, 8))
  source = Said(((WRONG,), (LAW,)))
  together, seen = run(source, datasets=datasets, noise=1e-3)
  assert [i for i, _ in seen] == list(range(datasets)) * 2
  alone, _ = run(source, noise=1e-3)
  assert together[0].pool.in_order() == alone[0].pool.in_order()


@pytest.mark.parametrize(("method", "share", "screen_steps"), [
  ("lm", 1, DEFAULT.pool.screen_steps), ("bfgs", 4, DEFAULT.pool.screen_steps), ("lm", 1, 1)])
def test_methods_of_slopes_have_more_steps_to_tell_what_is_near(method, share, screen_steps, monkeypatch):
  asked = []
  monkeypatch.setattr(refine, "fit_constants", lambda tasks, *, method, max_steps, max_constants: asked.append(
    (method, max_steps)) or [[(node, 1.0) for node in nodes] for _, nodes in tasks])
  pool = dataclasses.replace(DEFAULT.pool, screen_steps=screen_steps)
  options = SearchOptions(refine=method, config=dataclasses.replace(DEFAULT, pool=pool))
  x = np.linspace(0.5, 3, 40)
  task = make_task((x, x**2), ("x",), options)
  list(loop._fits([task], [Proposal(None, (parser.parse(LAW, ("x",)),))], "said", options))
  assert asked == [(method, share * screen_steps), (method, pool.fit_steps), (method, pool.polish_steps)]


def test_screening_lets_the_right_one_through():
  """Of hundreds of sums only those that came nearest get all their steps."""
  wrong = tuple(f"{k}.5*x + 0.5*sin({k}.25*x)" for k in range(1, 180))
  searches, _ = run(Said(((*wrong, LAW),)))
  assert searches[0].pool.best.mse < 1e-20


def test_no_more_constants_are_fitted_than_the_config_says():
  x = np.linspace(0.5, 3, 40)
  for most, expected in ((1, 1.3), (16, 0.7)):
    options = SearchOptions(config=dataclasses.replace(
      DEFAULT, pool=dataclasses.replace(DEFAULT.pool, max_constants=most)))
    task = make_task((x, 2.3 * x + 0.7), ("x",), options)
    fits = loop._fits([task], [Proposal(None, (parser.parse("1.7*x + 1.3", ("x",)),))], "said", options)
    best = min((candidate for [some] in fits for candidate in some), key=lambda candidate: candidate.mse)
    assert programs.fitted_values(best.node)[1] == pytest.approx(expected)


def test_data_sets_of_different_shapes_are_fitted_in_one_call(rng):
  """Other rows, other columns, tables wider than what is compiled: each formula to its own data."""
  asked, truths = [], []
  for num_rows, num_columns, column in ((40, 1, 0), (90, 3, 2), (200, 50, 49), (30, 2, 1)):
    x = rng.uniform(1, 3, (num_rows, num_columns))
    node = expression.Node("*", (expression.variable(column), expression.number(2.5)))
    asked.append((make_task((x, (column + 1.5) * x[:, column]), None, SearchOptions()), [node]))
    truths.append(column + 1.5)
  for [(node, mse)], truth, (_, [given]) in zip(
    refine.fit_constants(asked, method="lm", max_steps=20), truths, asked, strict=True
  ):
    assert programs.fitted_values(node) == pytest.approx([truth]) and mse < 1e-25
    assert programs.skeleton(node) == programs.skeleton(given)


def test_rows_that_are_drawn_hold_what_varies(rng):
  """One row in 5000 differs: constants are fitted where it is seen."""
  y = np.zeros(5000)
  y[4321] = 1.0
  task = make_task((rng.uniform(size=5000), y), None, SearchOptions())
  assert len(task.fit_rows) == 256 and task.variance > 0
