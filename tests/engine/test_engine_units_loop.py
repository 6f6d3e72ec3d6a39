"""Single steps of the loop: what comes again, and when a search hurries, is clear, or ends."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, nested, task_of

from symformer_jax.engine import loop
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows


def test_what_a_search_is_asked_for_where_nothing_is_said():
  assert SearchOptions() == SearchOptions(
    n_samples=1024, strategy="top_k", top_k=20, temperature=1.0, refine="lm", max_time=None, accuracy=None, seed=0,
    recombine=True, guesses=(), effort="normal", loss="squared", template=None, units=None)
  assert SearchOptions().recombine is True


def test_turns_of_the_cycle_come_again_and_those_before_it_do_not():
  sources = [SimpleNamespace(name=name, turns=turns) for name, turns in (("growth", (512, 512)), ("evolution", ()))]
  turns = list(loop.schedule(sources, SearchOptions(effort="thorough")))
  assert [(turn.source.name, turn.number, turn.is_again) for turn in turns[:9]] == [
    ("growth", 0, False), ("growth", 1, False), *(("evolution", number, True) for number in range(4)),
    ("growth", 0, True), ("growth", 1, True), ("evolution", 4, True)]


def test_numbers_without_variance_are_met_as_any():
  task = SimpleNamespace(fit_rows=SimpleNamespace(y=np.array([1.5, 1.5])), variance=0.0)
  assert loop._as_written(task, DEFAULT.pool) == DEFAULT.pool


@pytest.mark.parametrize(("columns", "is_of_one"), [((0, 1), True), ((0, 1, 2), False), ((1,), False)])
def test_a_search_is_of_one_column_where_one_of_its_columns_varies(columns, is_of_one):
  x = np.column_stack([np.arange(9.0), np.ones(9), np.arange(9.0)])
  task = SimpleNamespace(fit_rows=Rows(x, x[:, 0], np.ones(9)), columns=columns)
  assert loop.Search.is_of_one.fget(SimpleNamespace(task=task)) is is_of_one


@pytest.mark.parametrize(("leaves_noise", "has_come_nearer", "may_be_clear", "is_clear"), [
  ((True,), None, (True,), True), ((False, True), True, (True, True), True),
  ((False, False), True, (True, True), False), ((False, True), False, (True, True), False),
  ((False, True), True, (True, False), False),
  ((True,), None, (False,), False)])
def test_a_formula_is_clear_whose_errors_are_noise_at_once_or_once_it_is_fitted_further(
    leaves_noise, has_come_nearer, may_be_clear, is_clear):
  noise, clear = iter(leaves_noise), iter(may_be_clear)

  class Watch:
    may_be_clear = property(lambda self: next(clear))

    def best_leaves_noise(self):
      return next(noise)

  search = SimpleNamespace(_options=OPTIONS, progress=[], states={}, _fit_further=lambda watch: has_come_nearer)
  assert loop.Search._is_clear(search, Watch()) is is_clear


SOURCES = [SimpleNamespace(name=name, turns=(1,) * num) for name, num in (
  ("library", 4), ("reductions", 30), ("rationals", 1))]


def search_of(*, begun=(), progress=(), **parts):
  """A search whose end at the noise waits for three turns of the library and one of rationals."""
  parts = {"ended_by": "", "_exact": None, "_asked_to_hurry": 0, "_noise": SimpleNamespace(
    best=Candidate(nested(20), 1.0), is_in_doubt=False, may_be_clear=False, leaves_noise=lambda: True),
    "_turns_of_sole_column": list, "_has_errors": False,
    "states": {source.name: None for source in SOURCES}} | parts
  return SimpleNamespace(_options=OPTIONS, sources=SOURCES, _begun=set(begun),
                         progress=[SimpleNamespace(source=name) for name in progress], **parts)


def hurried(search):
  return loop.Search.hurried(search)


def test_a_search_hurries_to_the_first_turn_that_has_not_begun():
  library = [("library", number) for number in range(4)]
  for num in range(4):  # before a search asks again a turn has been taken
    found = hurried(search_of(begun=library[:num], progress=["rationals"]))
    assert found == (library[num] if num < 3 else ("rationals", 0))
  assert hurried(search_of(begun=[*library, ("rationals", 0)], progress=["rationals"])) is None


def test_a_search_hurries_first_to_the_turns_after_which_it_ends_with_a_clear_formula():
  """Whose own errors are noise; then, and before it is clear, to those after which it ends with another."""
  sources = [SimpleNamespace(name=name, turns=(1, 1)) for name in ("enumeration", "short_forms", "library")]
  for may_be_clear, is_noise, num_begun, expected in (
    (True, True, 0, ("enumeration", 0)), (True, True, 1, ("short_forms", 0)), (True, True, 2, None),
    (True, False, 0, None), (False, True, 0, None)):
    watch = SimpleNamespace(best=Candidate(nested(5), 1.0), is_in_doubt=False, may_be_clear=may_be_clear,
                            best_leaves_noise=lambda is_noise=is_noise: is_noise, leaves_noise=lambda: True)
    search = SimpleNamespace(**vars(search_of(progress=["rationals"], _noise=watch)) | {
      "sources": sources, "states": {source.name: None for source in sources},
      "_begun": {(source.name, 0) for source in sources[:num_begun]}})
    assert hurried(search) == expected


def test_where_y_has_errors_turns_that_bear_these_come_first_in_the_order_of_the_config():
  names = ("closed_forms", "guesses")
  asked = [("product_units", 0), *(("reductions", n) for n in range(8)), ("short_forms", 0),
           *(("fraction_pursuit", n) for n in (0, 1)), *(("product_units", n) for n in (1, 2)), ("rationals", 0),
           ("library", 0)]
  sources = [SimpleNamespace(name=name, turns=(1,) * 9) for name in dict.fromkeys(
    (*names, "library", *(name for name, _ in asked)))]
  begun = {(name, 0) for name in names}
  states = {source.name: None for source in sources}
  quiet = SimpleNamespace(best=None, is_in_doubt=False, may_be_clear=False, leaves_noise=lambda: False)

  def search(has_errors, *, progress=names, begun=begun):
    parts = {"sources": sources, "states": states, "_begun": begun}
    made = search_of(progress=progress, _noise=quiet, _has_errors=has_errors)
    return SimpleNamespace(**vars(made) | parts)

  for num, expected in enumerate([*asked, None]):
    assert hurried(search(True, begun=begun | set(asked[:num]))) == expected
  assert hurried(search(False)) is None  # of exact data all is as it was
  assert hurried(search(True, progress=names[:-1])) is None  # not before others that are cheap have had their turns


def test_sources_are_told_whether_y_has_errors_once_somebody_has_looked(monkeypatch):
  asked = []
  monkeypatch.setattr(loop.learning_curves, "has_errors", lambda *given: asked.append(given) or True)

  class Begun(loop.Search):
    def __init__(self):
      self.task, self.pool, self.states, self._options = task_of(2), None, {"library": "state"}, OPTIONS
  search, source = Begun(), SOURCES[0]
  assert search.question(source).has_errors is False and asked == []
  assert search._has_errors is True and search.question(source).has_errors is True
  assert len(asked) == 1 and search.question(source).state == "state"


def test_a_search_that_has_ended_met_the_data_or_leaves_no_noise_does_not_hurry():
  assert hurried(search_of(progress=["rationals"])) == ("library", 0)
  for changed in ({"ended_by": "time"}, {"_exact": Candidate(nested(3), 0.0)}, {"_noise": None},
                  {"_asked_to_hurry": 1}, {"states": {}}):
    assert hurried(search_of(progress=["rationals"], **changed)) is None
  loud = SimpleNamespace(
    best=Candidate(nested(20), 1.0), is_in_doubt=False, may_be_clear=False, leaves_noise=lambda: False)
  assert hurried(search_of(progress=["rationals"], _noise=loud)) is None


def test_whether_a_search_hurries_is_asked_once_after_each_turn():
  search = search_of(progress=["rationals"])
  assert [hurried(search), hurried(search)] == [("library", 0), None]
  search.progress.append(SimpleNamespace(source="library"))
  assert hurried(search) == ("library", 0)


def test_a_search_hurries_to_the_turns_of_the_only_column_before_others():
  turns = [("reductions", 0), ("reductions", 1)]
  for num, expected in ((0, turns[0]), (1, turns[1]), (2, ("library", 0))):
    search = search_of(begun=turns[:num], progress=["rationals"], _turns_of_sole_column=lambda: turns)
    assert hurried(search) == expected
  assert hurried(search_of(_noise=None, _turns_of_sole_column=lambda: turns)) == turns[0]


@pytest.mark.parametrize(("num", "num_asked"), [(30, 15), (9, 9)])
def test_of_the_table_of_one_column_the_turns_are_those_that_come_first_of_one(num, num_asked):
  """The one that looks for it, that of the closed forms, and thirteen."""
  source = SimpleNamespace(name="reductions", turns=(1,) * num)
  task = SimpleNamespace(sole_column=2)
  search = SimpleNamespace(task=task, states={"reductions": None}, _options=OPTIONS, sources=[*SOURCES[:1], source])
  assert loop.Search._turns_of_sole_column(search) == [("reductions", number) for number in range(num_asked)]
  for other in ({"task": SimpleNamespace(sole_column=None)}, {"states": {}}):
    assert loop.Search._turns_of_sole_column(SimpleNamespace(**vars(search) | other)) == []


def fitted_further(monkeypatch, *, before, after, refine="lm", known=()):
  """Whether a fit to the end has brought a formula nearer, and what was fitted in how many steps."""
  asked = []
  best, other = Candidate(nested(3), before, "library"), Candidate(nested(4), before, "library")
  monkeypatch.setattr(loop, "_fit", lambda tasks, nodes, name, options, steps: asked.append(
    (nodes, name, steps)) or [[Candidate(node, after, name) for node in nodes[0]]])
  looked = []
  search = SimpleNamespace(
    _options=SearchOptions(refine=refine), task=task_of(1), _fitted_further=set(known),
    pool=SimpleNamespace(insert=lambda found: looked.append(len(found))))
  watch = SimpleNamespace(best=best, others=(other,), look=lambda pool: looked.append("look"))
  has_come_nearer = loop.Search._fit_further(search, watch)
  assert not asked or search._fitted_further == {best.node, other.node} and looked == [len(asked[0][0][0]), "look"]
  return has_come_nearer, asked


def test_the_shortest_descriptions_are_fitted_to_their_end_once(monkeypatch):
  nodes = [nested(3), nested(4)]
  assert fitted_further(monkeypatch, before=1.0, after=0.5) == (True, [([nodes], "library", 150)])
  assert fitted_further(monkeypatch, before=1.0, after=1.0) == (False, [([nodes], "library", 150)])
  assert fitted_further(monkeypatch, before=1.0, after=0.5, known=nodes[:1]) == (True, [([nodes[1:]], "library", 150)])
  assert fitted_further(monkeypatch, before=1.0, after=0.5, known=nodes) == (False, [])
  assert fitted_further(monkeypatch, before=1.0, after=0.5, refine="none") == (False, [])


def test_before_anything_is_found_nothing_is_fitted_further():
  search = SimpleNamespace(_options=OPTIONS, _fitted_further=set())
  assert loop.Search._fit_further(search, SimpleNamespace(best=None, others=())) is False


def taken_at(monkeypatch, seconds, *, has_found, compiled=0.0, num_before=1):
  """How many turns are taken of a search of ten seconds, 8.5 without the choice, so many after its begin; how it ends.
  """
  search = SimpleNamespace(ended_by="", has_found=has_found, progress=[None] * num_before)
  search.close_turn = lambda *given: search.progress.append(None)
  turn = loop.Turn(SimpleNamespace(name="library"), 0, 1)
  monkeypatch.setattr(loop, "_in_order", lambda searches, *given: [(turn, searches)])
  monkeypatch.setattr(loop, "take_turn", lambda *given: [(None, [])])
  clock = SimpleNamespace(elapsed=lambda: seconds, compiled=lambda: compiled)
  list(loop.run({0: search}, (), SearchOptions(max_time=10.0), clock=clock))
  return len(search.progress) - num_before, search.ended_by


def test_a_turn_is_begun_till_the_time_is_over_of_which_compiling_takes_none_before_something_is_found(monkeypatch):
  assert taken_at(monkeypatch, 8.5, has_found=True) == (1, "budget")
  assert taken_at(monkeypatch, 8.6, has_found=True) == (0, "time")
  assert taken_at(monkeypatch, 9.5, has_found=False, compiled=1.0) == (1, "budget")
  assert taken_at(monkeypatch, 9.6, has_found=False, compiled=1.0) == (0, "time")
  assert taken_at(monkeypatch, 99.0, has_found=True, num_before=0) == (1, "time")  # the first is waited for


def test_turns_of_two_groups_of_searches_take_turns(monkeypatch):
  monkeypatch.setattr(loop, "_in_own_order", lambda group, sources, options: iter(
    [f"{sorted(group)}{i}" for i in range(3 if 0 in group else 1)]))
  searches = {i: SimpleNamespace(is_of_one=i < 2) for i in range(4)}
  assert list(loop._in_order(searches, (), OPTIONS)) == ["[0, 1]0", "[2, 3]0", "[0, 1]1", "[0, 1]2"]


@pytest.mark.parametrize(("state", "expected"), [(None, ["one", "fails", "one"]), (7, ["fails"] * 3)])
def test_of_two_data_sets_and_more_one_that_a_source_fails_at_costs_the_others_nothing(state, expected):
  """Where it keeps nothing from turn to turn."""
  class Source:
    name = "odd"

    def propose(self, questions, **named):
      if any(question.task == "bad" for question in questions):
        raise ValueError("odd data")
      return [loop.Proposal(state="one") for _ in questions]

  for tasks, found in ((("good", "bad", "good"), expected), (("good", "bad"), expected[:2])):
    questions = [loop.Question(task, None, state) for task in tasks]
    with pytest.warns(RuntimeWarning, match="the source 'odd' is left out of a turn: odd data"):
      proposals = loop._ask(loop.Turn(Source(), 0, 1), questions, None)
    assert [proposal.state for proposal in proposals] == [state if each == "fails" else each for each in found]
