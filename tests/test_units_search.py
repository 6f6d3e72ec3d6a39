"""What stands around a search: its arguments, the estimator, what is said of an answer; closed forms alone."""

import dataclasses
import json
import math
import types

import numpy as np
import pandas as pd
import pytest

from symformer_jax import arguments, conclusion, estimator as estimator_lib, first_look, inference, saved, testing
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.language import parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import Counts, Equation, Progress, Rejected, SearchResult, Seconds, Seen
from symformer_jax.selection import losses
from symformer_jax.sources.guesses import Guesses

MODEL = testing.FixedProposer(["x0"])
CLOSED = dataclasses.replace(DEFAULT, sources=("closed_forms",))
X = np.linspace(1, 3, 12)[:, None]
Y = 2 * X[:, 0] + 1 + np.tile([0.01, -0.01, 0.02, -0.02], 3)


def search(x=X, y=Y, **options):
  [result] = inference.search(MODEL, [(x, y)], **{"config": CLOSED, "refine": "none"} | options)
  return result


# --- the search --------------------------------------------------------------------------------------------------


def test_a_search_of_closed_forms_has_all_of_an_answer():
  told = []
  result = search(callback=told.append, names=[["a"]], seed=3)
  assert result.status == "ok" and result.seed == 3 and result.num_points == 12 and result.model == "fixed"
  assert [line.complexity for line in result.pareto] == sorted(line.complexity for line in result.pareto)
  assert result.best in result.pareto and result.best.names == ("a",) and result.seen.ranges == {"a": (1.0, 3.0)}
  assert result.seen.noise == pytest.approx(math.sqrt(1 - result.best.r2))
  assert result.seen.unused == (() if "a" in result.best.expression else ("a",))
  assert result.seen.loss == "squared" and not result.is_weighted and result.units is None
  assert [turn.source for turn in result.rounds] == ["closed_forms"] == [standing.source for standing in told]
  [standing] = told
  assert standing.index == 0 and standing.best and standing.r2 > 0.99
  assert [step.complexity for step in standing.front] == sorted(step.complexity for step in standing.front)
  assert standing.front[-1].r2 == pytest.approx(standing.r2)
  assert result.ended_by == "budget" and result.seconds.total > 0


def test_each_data_set_has_its_answer_in_their_order():
  told = []
  found = inference.search(MODEL, [(X, Y), (X[:2], Y[:2]), (X, -Y)], config=CLOSED, refine="none",
    names=[["a"], ["b"], ["c"]],
                           callback=lambda standing: told.append((standing.index, standing.best)))
  assert [result.status for result in found] == ["ok", "failed", "ok"]
  assert [result.best and result.best.names for result in found] == [("a",), None, ("c",)]
  assert [index for index, _ in told] == [0, 2] and "c" in told[1][1] and found[1].seed == 0
  stopped = inference.search(MODEL, [(X, Y), (X, Y)], config=CLOSED, refine="none", should_stop=lambda: True)
  assert [result.status for result in stopped] == ["ok",
    "failed"] and stopped[1].message == "stopped before it was searched"
  asked = inference.search(MODEL, [(X, Y), (X, Y)], config=CLOSED, refine="none",
    callback=lambda standing: standing.index == 0)
  assert [result.ended_by for result in asked] == ["stopped", "budget"]


@pytest.mark.parametrize(("options", "message"), [
  ({"seed": -1}, "seed: expected a whole number from 0 to 2..63 - 1, got -1"), ({"seed": 2**63}, "seed: expected"),
  ({"seed": 1.5}, "seed: expected"), ({"strategy": "x"}, "strategy: unknown strategy 'x', expected one of"),
  ({"names": []}, "names: expected column names for 1 data sets, got 0"),
  ({"targets": []}, "targets: expected a name for"),
  ({"guesses": "x"}, "guesses: expected a list of formulas, got 'x'"), ({"guesses": None}, "guesses: expected a list"),
  ({"add_operators": "tanh"}, "add_operators: expected a list of names, got 'tanh'"),
  ({"callback": 3}, "callback: expected"),
  ({"dimensionless_constants": 1}, "dimensionless_constants: expected True or False"),
  ({"dimensionless_constants": True}, "dimensionless_constants: says nothing without units"),
  ({"n_samples": 0}, "n_samples")])
def test_arguments_that_no_search_can_have(options, message):
  with pytest.raises(InputError, match=message):
    search(**options)


def test_the_ends_of_seeds_are_seeds():
  for seed in (0, 2**63 - 1, np.int64(5)):
    arguments.check_seed(seed)


def test_rules_are_told_by_arguments_or_restrictions():
  seen = []

  def search_all(model, datasets, names, targets, options, key, callback, should_stop):
    seen.append(options)
    return []
  original, inference._search_all = inference._search_all, search_all
  try:
    search_of = lambda **options: inference.search(MODEL, [], **options)  # noqa: E731  (short, and used here alone)
    search_of(operators=["+"], add_operators=["tanh"], restrictions=Restrictions(max_depth=3))
    search_of()
  finally:
    inference._search_all = original
  assert seen[0].restrictions == Restrictions(operators=("+",), add_operators=("tanh",), max_depth=3)
  assert seen[1] == SearchOptions()


def test_units_are_of_columns_that_there_are():
  pytest.importorskip("pint")
  read = inference._read_units
  assert read(None, None, None, False) is None
  assert read({"a": "m", "y": "s"}, [["a"]], None, False) is not None
  assert read({"a": "m", "t": "s"}, [["a"]], ["t"], np.True_) is not None and read({"q": "m"}, None, None, False)
  with pytest.raises(InputError, match="q"):
    read({"q": "m"}, [["a"]], None, False)
  result = search(units={"x0": "m", "y": "s"})
  assert result.units == ("m",
    "s") and result.best in result.pareto and "units: x0 in meter, y in second" in result.message
  assert any(unit for unit in result.best.number_units)
  other = inference.search(MODEL, [(X, Y)], units={"x0": "m", "t": "s"}, targets=["t"], config=CLOSED, refine="none")[0]
  assert "t in second" in other.message


def test_what_is_said_of_units_names_eight_columns():
  named = types.SimpleNamespace
  units = named(columns=[named(full_name=f"u{i}") for i in range(10)], target=named(full_name="t"))
  [text] = conclusion._describe_units([f"x{i}" for i in range(10)], units, "y")
  assert text == "units: " + ", ".join(f"x{i} in u{i}" for i in range(8)) + ", y in t"
  assert conclusion._describe_units(["x"], None, "y") == []


def test_what_was_seen_is_said_where_it_surprises():
  ranges = {f"x{i}": (0.0, 1.0) for i in range(10)}
  said = conclusion._describe(Seen(ranges, tuple(f"x{i}" for i in range(9)), None, rejected=(
    Rejected("x", 7, 0.123456, "why"), Rejected("z", 3, None, "no"))))
  assert said == ["not in the recommended formula: " + ", ".join(f"x{i}" for i in range(8)) + ", ...",
                  "left out for why: a formula of 7 nodes, R2 0.1235", "left out for no: a formula of 3 nodes"]
  assert conclusion._describe(Seen(ranges, tuple(f"x{i}" for i in range(8)), None)) == [
    "not in the recommended formula: " + ", ".join(f"x{i}" for i in range(8))]
  assert conclusion._describe(Seen(ranges, tuple(ranges), None)) == [] == conclusion._describe(Seen(ranges, (), None))


def search_told(sources, *, turns=(), ended_by="budget", num_names=1, is_chosen=False, given=(), filled=("x0",) * 3):
  task = types.SimpleNamespace(names=tuple(f"x{i}" for i in range(num_names)), columns=(0,), is_chosen=is_chosen)
  found = [Candidate(parser.parse("x0", ["x0"]), 1.0, source) for source in sources]
  return types.SimpleNamespace(
    task=task, pool=types.SimpleNamespace(in_order=lambda: found), ended_by=ended_by, sources=given,
    progress=[Progress(0, "", None, source, False, 0.0) for source in turns], states={"guesses": filled})


@pytest.mark.parametrize(("told", "is_without", "messages"), [
  (search_told(["growth"]), False, []), (search_told(["growth"], num_names=2), False, []),
  (search_told(["growth"], num_names=2), True, ["more variables than the model knows: searched without it"]),
  (search_told(["growth"]), True, ["the model can write no formula that keeps the rules: searched without it"]),
  (search_told(["growth"], num_names=3, is_chosen=True), False, [
    "of 3 columns those that explain most were searched: x0"]),
  (search_told(["growth"], turns=["guesses"]), False, ["no guess is defined on all rows"]),
  (search_told(["growth"], turns=["guesses"], filled=(None,)), False, []),
  (search_told(["growth", "guesses"], turns=["guesses"], given=[
    Guesses(("a*exp(-b*x0) + a*c", "2*x0", "k*x0")), types.SimpleNamespace(name="growth")]), False, []),
  (search_told(["closed_forms"]), False, ["no other candidate fits; the front holds the closed-form fits alone"]),
  (search_told([]), False, ["no other candidate fits; the front holds the closed-form fits alone"]),
  (search_told(["closed_forms"], ended_by="exact"), False, [])])
def test_what_is_said_of_a_search(told, is_without, messages):
  assert conclusion._messages(told, MODEL, is_without) == messages


def test_names_in_guesses_for_a_template_are_told():
  told = search_told(["guesses"], given=[
    Guesses(("a*exp(-b*x0) + a*c", "2*x0", "k*x0")), types.SimpleNamespace(name="growth")])
  assert conclusion._describe_guesses(told) == ["guess: a, b, c are fitted", "guess: k is fitted"]
  told.states["guesses"], told.ended_by = ("x0", None, None), "stopped"
  assert conclusion._describe_guesses(told) == [
    "guess: a, b, c are fitted", "guess 2*x0: not looked at: the search was stopped before",
    "guess k*x0: not looked at: the search was stopped before"]


def test_a_template_is_posed_with_the_seed_and_the_config(monkeypatch):
  posed, parts = {}, []
  monkeypatch.setattr(inference.profile, "pose", lambda template, rows, **given: posed.update(
    given, rows=len(rows)) or types.SimpleNamespace(parts=["f", "g"]))
  monkeypatch.setattr(inference.profile, "make_part_task", lambda problem, part, options: parts.append(part) or part)
  options = SearchOptions(template="exp(f(x0))", seed=5)
  problem, tasks = inference._pose((X, Y), None, options, target="y")
  assert posed == {"seed": 5, "units": None, "config": DEFAULT.templates, "rows": 12} and tasks == parts == ["f", "g"]
  assert problem.parts == ["f", "g"]
  units = types.SimpleNamespace(for_columns=lambda columns, target, *, excluded: (columns, target))
  inference._pose((X, Y), None, dataclasses.replace(options, units=units), target="y")
  assert posed["units"] == (("x0",), "y")
  none, [task] = inference._pose((X, Y), ["a"], SearchOptions(), target="y")
  assert none is None and task.names == ("a",)


def test_the_front_of_a_callback_ends_where_errors_are_rounding():
  found = [Candidate(parser.parse(text, ["x0"]), mse) for text, mse in (
    ("sin(x0) + x0", 1e-40), ("2*x0", 1e-38), ("x0", 0.5), ("x0*x0", 0.7))]
  task = types.SimpleNamespace(variance=1.0, r2=lambda mse: 1 - mse, text=str)
  searched = types.SimpleNamespace(task=task, pool=types.SimpleNamespace(in_order=lambda: found))
  standing = inference._standing(3, Progress(7, "x0", 0.5, "growth", True, 2.0), searched)
  assert [(step.complexity, step.r2) for step in standing.front] == [(1, 0.5), (3, 1.0)]
  assert (standing.index, standing.sampled, standing.source, standing.seconds) == (3, 7, "growth", 2.0)


def test_of_formulas_with_one_set_of_values_the_simplest_is_kept():
  rows = Rows(X, Y, np.ones(12))
  nodes = [parser.parse(text, ["x0"]) for text in ("x0 + x0 + 0", "2*x0", "sin(x0)", "2*x0 + 1e-9", "log(-x0)",
    "sqrt(-x0)")]
  with np.errstate(all="ignore"):
    kept = conclusion._different_values(nodes, rows, 1.0, 1e-6)
    assert kept == [nodes[1], nodes[2], nodes[4], nodes[5]]
    assert nodes[3] in conclusion._different_values(nodes, rows, 1.0, 1e-12)
    assert len(conclusion._different_values(nodes[1:3], rows, 1e9, 1e-3)) == 1


@pytest.mark.parametrize(("max_time", "ended_by", "is_late", "are_few"), [
  (None, "budget", False, False), (None, "stopped", True, True), (30.0, "time", True, True),
  (30.0, "budget", False, False), (31.0, "time", False, False), (None, "exact", False, True)])
def test_the_choice_is_hurried_where_little_time_was_given_and_of_few_where_data_are_met(
    monkeypatch, max_time, ended_by, is_late, are_few):
  seen = {}

  def choose(task, nodes, *, options, clock, is_late, guesses):
    seen["is_late"] = is_late
    return
  monkeypatch.setattr(conclusion, "_choose", choose)
  task = types.SimpleNamespace(rows=Rows(X, Y, np.ones(12)), names=("x0",), units=None)
  task.as_given = lambda: task
  asked = []
  one = types.SimpleNamespace(ended_by=ended_by, task=task, progress=(), states={}, pool=types.SimpleNamespace(
    shortlist=lambda most: asked.append(most) or []))
  options = SearchOptions(max_time=max_time)
  result = conclusion.finish([one], None, None, MODEL, options, Clock(), target="y")
  assert seen == {"is_late": is_late} and asked == [options.config.pool.num_finalists_few if are_few else None]
  assert result.status == "failed" and result.message == "no candidate fits, and no closed form keeps the rules"


def test_ctrl_c_after_a_turn_gives_the_best_so_far(monkeypatch):
  run = inference.loop.run

  def interrupted(*args, **options):
    yield from run(*args, **options)
    raise KeyboardInterrupt
  monkeypatch.setattr(inference.loop, "run", interrupted)
  found = inference.search(MODEL, [(X, Y), (X, Y)], config=CLOSED, refine="none")
  assert [result.status for result in found] == ["ok", "failed"] and found[0].ended_by in ("budget", "stopped")
  with pytest.raises(KeyboardInterrupt):  # who has asked before insists
    search(should_stop=lambda: True)

  def at_once(*args, **options):
    raise KeyboardInterrupt
    yield
  monkeypatch.setattr(inference.loop, "run", at_once)
  with pytest.raises(KeyboardInterrupt):
    search()


def test_what_was_found_is_fitted_and_chosen_as_the_config_says(monkeypatch):
  fitted, chosen = {}, {}
  task = make_task((X, Y), None, SearchOptions(restrictions=Restrictions(add_operators=("abs",))))
  plain = make_task((X, Y), None, SearchOptions())
  node = parser.parse("2*x0", ["x0"])

  def fit_constants(pairs, **options):
    fitted.update(options, pairs=pairs)
    return [[(node, 1.0)]]
  monkeypatch.setattr(conclusion.refine_lib, "fit_constants", fit_constants)
  monkeypatch.setattr(conclusion.select, "select", lambda finalists, rows, names, **options: chosen.update(
    options, finalists=finalists, names=names) or "selection")
  options = SearchOptions(seed=5)
  assert conclusion._choose(task, [node], options, Clock(), False) == "selection"
  pool, selection = options.config.pool, options.config.selection
  assert fitted == {"pairs": [(task, [node])], "method": "lm", "max_steps": pool.polish_steps,
                    "max_constants": pool.max_constants}
  assert chosen["finalists"] == [node] and chosen["seed"] == 5 and chosen["may_fit"] and chosen["names"] == ("x0",)
  assert chosen["num_fit_rows"] == pool.fit_rows and chosen["choice_config"] == options.config.choice
  assert chosen["config"] == selection and chosen["is_allowed"] is task.rule and chosen["yardsticks"]
  conclusion._choose(plain, [node], dataclasses.replace(options, refine="none"), Clock(), True)
  assert chosen["config"] == selection.without_absolutes().hurried() and not chosen["may_fit"]


def test_a_first_look_weighs_rows_by_their_errors():
  y = 2 * X[:, 0] ** 3
  result = search(y=y, loss="relative")
  assert result.loss == "relative" and result.is_weighted and "rows count as 1/y**2" in result.message
  np.testing.assert_allclose(result.weights * y**2, np.full(12, result.weights[0] * y[0] ** 2))
  weighed, is_stopped = first_look.weigh(MODEL, [(X, y), (X[:2], y[:2])], [None, None], SearchOptions(), None, Clock(),
                                         lambda: False)
  assert not is_stopped and isinstance(weighed[1], InputError) and (weighed[0].weighing.weights == 1).all()


def looks(monkeypatch, *, loss, is_misled=lambda number: False, ended_by="budget", num_rows=12, **config):
  """The weights of each look that is taken, with how many rows, and what was made of the rows at last."""
  taken, weighed = [], []

  def run(searches, sources, options, *, clock, should_stop):
    taken.append((searches[0].task.rows.weights, options.max_time))
    searches[0].ended_by = ended_by
    return iter(())

  def weigh(loss, nodes, rows, **given):
    weighed.append(len(rows))
    return losses.Weighing(np.linspace(1, 1 + len(weighed), len(rows)))

  monkeypatch.setattr(first_look.registry, "make_sources", lambda model, options: [])
  monkeypatch.setattr(first_look.loop, "run", run)
  monkeypatch.setattr(first_look.losses, "weigh", weigh)
  monkeypatch.setattr(first_look.losses, "is_misled", lambda *given, **_: is_misled(len(weighed)))
  x = np.linspace(1, 3, num_rows)[:, None]
  rows = {0: Rows(x, x[:, 0] ** 3, np.ones(num_rows))}
  options = SearchOptions(loss=loss, max_time=10.0, config=dataclasses.replace(
    DEFAULT, loss=dataclasses.replace(DEFAULT.loss, **config),
    selection=dataclasses.replace(DEFAULT.selection, max_rows=12)))
  found, is_stopped = first_look._look(MODEL, rows, [None], options, None, Clock(), lambda: False)
  assert is_stopped is (ended_by == "stopped")
  return taken, weighed, found


def test_a_look_that_was_not_misled_is_taken_once(monkeypatch):
  taken, weighed, found = looks(monkeypatch, loss="huber")
  assert len(taken) == 1 and weighed == [12] and found[0].weights[-1] == 2
  assert taken[0][1] == pytest.approx(DEFAULT.loss.look_share * 10)


def test_looks_are_repeated_under_what_was_found_while_they_were_misled(monkeypatch):
  taken, weighed, found = looks(monkeypatch, loss="huber", is_misled=lambda number: number < 3)
  assert len(taken) == 3 and found[0].weights[-1] == 4
  for number, (weights, _) in enumerate(taken[1:], start=1):
    expected = np.linspace(1, 1 + number, 12)
    np.testing.assert_allclose(weights, expected / expected.mean())
  taken, _, found = looks(monkeypatch, loss="huber", is_misled=lambda number: True, max_looks=2)
  assert len(taken) == 2 and found[0].weights[-1] == 3


@pytest.mark.parametrize("ended_by", ["time", "stopped"])
def test_no_look_is_repeated_that_time_or_somebody_has_ended(monkeypatch, ended_by):
  taken, weighed, found = looks(monkeypatch, loss="huber", is_misled=lambda number: True, ended_by=ended_by)
  assert len(taken) == len(weighed) == 1 and 0 in found


def test_auto_weighs_after_its_second_look_or_the_end(monkeypatch):
  taken, weighed, _ = looks(monkeypatch, loss="auto")
  assert len(taken) == 2 and weighed == [12]
  taken, weighed, _ = looks(monkeypatch, loss="auto", ended_by="time")
  assert len(taken) == 1 and weighed == [12]


def test_looks_are_at_some_rows_and_all_are_weighed(monkeypatch):
  taken, weighed, found = looks(monkeypatch, loss="huber", num_rows=20)
  assert len(taken[0][0]) == 12 and weighed == [12, 20] and len(found[0].weights) == 20


def test_where_the_rules_leave_no_source_that_is_said():
  options = SearchOptions(config=CLOSED)
  task = make_task((np.repeat(X, 2, axis=1), Y), None, options)
  source = types.SimpleNamespace(name="growth", supports=lambda task: False)
  closed = types.SimpleNamespace(name="closed_forms", supports=lambda task: True)
  assert inference._supporting([source, closed], task, MODEL, options) == [closed]
  wanted = dataclasses.replace(options, config=DEFAULT)
  with pytest.raises(InputError, match="variables"):
    inference._supporting([source, closed], task, MODEL, wanted)
  with pytest.raises(InputError, match="the rules allow nothing that the model 'fixed' can write"):
    inference._supporting([source, closed], make_task((X, Y), None, options), MODEL, wanted)


def test_models_are_loaded_once_and_auto_is_by_variables(monkeypatch):
  from symformer_jax.pretrained import registry
  loaded = []
  inference._load_model.cache_clear()
  monkeypatch.setattr(registry, "pick_name", lambda num_variables: f"model{num_variables}")
  monkeypatch.setattr(registry, "load_model", lambda name: loaded.append(name) or name)
  assert [inference.resolve_model(name, num_variables=2) for name in ("auto", "own", "auto")] == ["model2", "own",
    "model2"]
  assert loaded == ["model2", "own"]
  inference._load_model.cache_clear()


def test_a_warm_up_searches_as_many_points_and_samples(monkeypatch):
  asked = []
  monkeypatch.setattr(inference, "search", lambda model, datasets, **options: asked.append((datasets, options)))
  assert inference.warmup(testing.FixedProposer(["x0"], num_variables=3)) >= 0
  [(x, y)], options = asked[0]
  assert x.shape == (100, 3) and y.shape == (100,) and options == {"n_samples": 1024, "refine": "lm"}
  assert np.ptp(x[:, 0]) > 0 and np.std(y) > 0.5
  inference.warmup(MODEL, num_points=7, n_samples=5, refine="gd")
  assert asked[1][0][0][0].shape == (7, 1) and asked[1][1] == {"n_samples": 5, "refine": "gd"}


# --- the estimator -----------------------------------------------------------------------------------------------


FORMULAS = ["1.5", "2*x0", "2*x0 + 0.5"]


@pytest.fixture
def asked(monkeypatch):
  """What each search is asked; the answer is `FORMULAS` in the names of its columns."""
  calls = []

  def search_stub(model, datasets, **options):
    calls.append(options | {"model": model, "datasets": datasets})
    names = tuple(options["names"][0])
    lines = tuple(Equation(parser.parse(text.replace("x0", f"`{names[0]}`"), names), names, 1 / (i + 1), 0.1 * i,
      None, ())
                  for i, text in enumerate(FORMULAS))
    return [SearchResult("ok", "", lines[1], lines, Counts(), Seconds(), 0, 12, "fixed", weights=datasets[0][2])]
  monkeypatch.setattr(inference, "search", search_stub)
  return calls


def regressor(**params):
  return SymFormerRegressor(**{"model": MODEL, "verbose": False, "random_state": 0} | params)


def test_every_parameter_reaches_the_search(asked):
  params = {"n_samples": 7, "top_k": 3, "refine": "gd", "operators": ("+",), "max_time": 3.5, "accuracy": 0.75,
            "recombine": False, "guesses": ("x0",), "effort": "quick", "loss": "log", "template": "f(x0)",
            "config": CLOSED,
            "units": {"x0": "m"}, "dimensionless_constants": True, "add_operators": ("tanh",), "strategy": "nucleus",
            "temperature": 0.5, "restrictions": Restrictions(max_depth=4)}
  regressor(**params, random_state=5).fit(X, Y, np.linspace(1, 2, 12))
  [call] = asked
  assert {name: call[name] for name in params} == params and call["seed"] == 5 and call["model"] is MODEL
  [(x, y, weights)] = call["datasets"]
  assert (x == X).all() and (y == Y).all() and (weights == np.linspace(1, 2, 12)).all()
  assert call["names"] == [("x0",)] and call["targets"] == ["y"] and callable(call["callback"])


def test_the_line_that_is_asked_for_predicts(asked):
  fitted = regressor().fit(X, Y)
  np.testing.assert_allclose(fitted.predict(X), 2 * X[:, 0])
  np.testing.assert_allclose(fitted.predict(X, index=[0, -1]), np.stack([np.full(12, 1.5), 2 * X[:, 0] + 0.5], axis=1))
  np.testing.assert_allclose(regressor(model_selection="accurate").fit(X, Y).predict(X), 2 * X[:, 0] + 0.5)
  assert fitted.equations_.recommended.tolist() == [False, True, False] and fitted.best_ is fitted.result_.best
  for index in (3, -4, 1.0, True):
    with pytest.raises(InputError, match=r"index: expected a row of equations_ \(0 to 2\), got"):
      fitted.predict(X, index=index)
  np.testing.assert_allclose(fitted.predict(X, index=-3), 1.5)
  np.testing.assert_allclose(fitted.predict(X, index=np.int64(2)), 2 * X[:, 0] + 0.5)


@pytest.mark.parametrize(("num", "weights", "message"), [
  (5, None, ""), (4, None, "n_samples = 4: expected at least 5 points"), (6, [1, 1, 1, 1, 1, 0], ""),
  (6, [1, 1, 1, 1, 0, 0], "n_samples = 4: expected at least 5 points of positive weight"),
  (6, [0] * 6, "at least one"),
  (6, [1, 1, 1, 1, 1, -0.5], "sample_weight: expected weights of at least 0, got -0.5")])
def test_five_rows_that_count_are_enough(asked, num, weights, message):
  if not message:
    regressor().fit(X[:num], Y[:num], weights)
    assert asked
    return
  with pytest.raises(ValueError, match=message):  # of zeros alone by some versions of scikit-learn
    regressor().fit(X[:num], Y[:num], weights)
  assert not asked


def test_targets_that_do_not_vary_where_rows_count_are_refused(asked):
  y = np.where(np.arange(12) < 11, 3.0, 4.0)
  regressor().fit(X, y)
  with pytest.raises(InputError, match="the target is constant: every value is 3"):
    regressor().fit(X, y, np.arange(12) < 11)


def test_parameters_that_are_no_arguments_of_a_search(asked):
  regressor(max_complexity=7, restrictions=Restrictions(max_depth=3), select_k_features=2).fit(X, Y)
  assert asked[0]["restrictions"] == Restrictions(max_depth=3, max_complexity=7)
  assert asked[0]["config"].library.max_columns == 2
  assert dataclasses.replace(asked[0]["config"], library=DEFAULT.library) == DEFAULT
  regressor(max_complexity=7, config=CLOSED).fit(X, Y)
  assert asked[1]["restrictions"] == Restrictions(max_complexity=7) and asked[1]["config"] is CLOSED
  regressor().fit(X, Y)
  assert asked[2]["restrictions"] is None and asked[2]["add_operators"] == () and asked[2]["config"] is DEFAULT
  for num in (0, True, 1.5, "2"):
    with pytest.raises(InputError, match="select_k_features: expected a whole number of at least 1, got"):
      regressor(select_k_features=num).fit(X, Y)
  regressor(select_k_features=1).fit(X, Y)


def test_a_model_is_named_for_the_columns_that_it_is_asked_for(asked, monkeypatch):
  names = []
  monkeypatch.setattr(inference, "resolve_model", lambda name, *,
    num_variables: names.append((name, num_variables)) or MODEL)
  regressor(model="auto").fit(np.repeat(X, 3, axis=1), Y)
  regressor(model="m", template="f(x0)*x1").fit(np.repeat(X, 3, axis=1), Y)
  assert names == [("auto", 3), ("m", 1)]


def test_columns_and_targets_have_the_names_of_frames(asked):
  frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 0] ** 2})
  fitted = regressor().fit(frame, pd.Series(Y, name="speed"))
  assert asked[0]["names"] == [("a", "b")] and asked[0]["targets"] == ["speed"] and fitted._data.target == "speed"
  regressor().fit(frame.to_numpy(), pd.Series(Y, name=""))
  assert asked[1]["names"] == [("x0", "x1")] and asked[1]["targets"] == ["y"]
  regressor().fit(frame, pd.Series(Y, name=3))
  assert asked[2]["targets"] == ["y"]


def test_several_targets_are_fits_of_their_own(asked):
  told = []
  frame = pd.DataFrame({"u": Y, "v": -Y})
  units = {"x0": "m", "u": "s", "v": "kg"}
  fitted = regressor(units=units, callback=told.append).fit(X, frame)
  assert [call["targets"] for call in asked] == [["u"], ["v"]] and len(fitted.estimators_) == 2
  assert [call["units"] for call in asked] == [{"x0": "m", "u": "s"}, {"x0": "m", "v": "kg"}]
  assert fitted.predict(X).shape == (12, 2) and fitted.predict(X, index=[0, 1, 2]).shape == (12, 3, 2)
  assert len(fitted.equations_) == len(fitted.result_) == 2 and "u" not in fitted.__dict__
  for k, call in enumerate(asked):
    from symformer_jax.results import Standing
    call["callback"](Standing(0, "x", 0.5, "s", True, 1.0, 0, tuple))
    assert told[-1].index == k
  assert all(each.callback is fitted.callback for each in fitted.estimators_)
  with pytest.raises(AttributeError, match=r"2 targets were fitted: ask one of estimators_, such as estimators_\[0\]"):
    _ = fitted.best_
  with pytest.raises(InputError, match="2 targets were fitted"):
    fitted.latex()
  plain = regressor().fit(X, np.stack([Y, -Y], axis=1))
  assert len(plain.estimators_) == 2 and not hasattr(regressor().fit(X, Y[:, None].ravel()), "estimators_")
  with pytest.raises(InputError, match="^y, column v: "):
    regressor().fit(X, frame.assign(v=3.0))
  with pytest.raises(InputError, match="^y, column 1: "):
    regressor().fit(X, np.stack([Y, np.ones(12)], axis=1))


def test_a_column_of_targets_is_one_target(asked):
  with pytest.warns(Warning, match="1d array was expected"):
    assert not hasattr(regressor().fit(X, Y[:, None]), "estimators_")


def test_what_fails_is_not_fitted(asked):
  fitted = regressor().fit(X, Y)
  with pytest.raises(InputError):
    fitted.fit(X, np.ones(12))
  assert not any(name in fitted.__dict__ for name in estimator_lib._FITTED) and fitted._repr_latex_() is None
  assert fitted._front_html() == ""
  with pytest.raises(InputError):
    regressor(model_selection=9).fit(X, Y)


def test_a_second_fit_begins_with_the_formulas_of_the_first(asked):
  fitted = regressor(warm_start=True, guesses=("x0",)).fit(X, Y)
  assert list(asked[0]["guesses"]) == ["x0"]
  fitted.fit(X, Y)
  assert asked[1]["guesses"] == ["x0", "1.5", "2*x0", "2*x0 + 0.5"]
  fitted.set_params(operators=("*",)).fit(X, Y)
  assert "2*x0 + 0.5" not in asked[2]["guesses"] and "2*x0" in asked[2]["guesses"]
  fitted.set_params(warm_start=False).fit(X, Y)
  assert list(asked[3]["guesses"]) == ["x0"]
  fitted.set_params(warm_start=True, operators=None, template="f(x0)").fit(X, Y)
  assert list(asked[4]["guesses"]) == ["x0"]  # other terms


def test_seeds_are_numbers_or_drawn_by_states(asked):
  for state, check in ((5, lambda seed: seed == 5), (np.int64(7), lambda seed: seed == 7),
                       (np.random.RandomState(0), lambda seed: 10**6 < seed < 2**31),
                       (None, lambda seed: 0 <= seed < 2**31)):
    regressor(random_state=state).fit(X, Y)
    assert check(asked[-1]["seed"]) and type(asked[-1]["seed"]) is int


def test_a_callback_is_told_after_what_is_shown():
  told = []
  assert estimator_lib._tell(told.append, None, 1) is False and told == [1]
  assert estimator_lib._tell(told.append, lambda standing: 5, 2) is True
  assert estimator_lib._tell(told.append, lambda standing: None, 3) is False


def test_pages_are_of_the_data_given_or_fitted(asked, tmp_path, monkeypatch):
  from symformer_jax.presentation import page
  made = []
  monkeypatch.setattr(page, "write_page", lambda result, equation, data, path, *, name: made.append(
    (result, equation, data, path, name)))
  fitted = regressor().fit(X, pd.Series(Y, name="v"), np.linspace(1, 2, 12))
  fitted.report(tmp_path / "f.html")
  result, equation, data, path, name = made[0]
  assert result.is_weighted and equation is fitted.best_ and data.target == "v" and name == "fit"
  assert path == tmp_path / "f.html" and data.features == ("x0",) and len(data.y) == 12
  fitted.report(tmp_path / "f.html", X[:7], Y[:7].astype(np.float32), index=0, name="n")
  result, equation, data, path, name = made[1]
  assert not result.is_weighted and equation is fitted._front[0] and data.target == "y" and name == "n"
  assert len(data.x) == 7 and data.y.dtype == np.float64
  with pytest.raises(InputError, match="path: expected a name ending in .html or .htm, got"):
    fitted.report(tmp_path / "f.txt")
  fitted.save(tmp_path / "f.json")
  loaded = SymFormerRegressor.load(tmp_path / "f.json")
  with pytest.raises(InputError, match="X, y: expected data to draw, a loaded estimator has none"):
    loaded.report(tmp_path / "f.html")
  loaded.report(tmp_path / "f.html", X, Y)
  with pytest.raises(InputError, match="X, y: expected both or neither, got X alone"):
    loaded.report(tmp_path / "f.html", X)


def test_notebooks_show_the_front(asked):
  fitted = regressor()
  assert fitted._front_html() == "" and fitted._repr_latex_() is None
  fitted.fit(X, Y)
  assert fitted._repr_latex_() == f"$\\displaystyle {fitted.latex()}$"
  html = fitted._repr_html_()
  assert html.endswith(fitted._front_html()) and len(fitted._front_html()) > 50
  assert fitted._repr_mimebundle_()["text/html"].endswith(fitted._front_html())
  pair = regressor().fit(X, np.stack([Y, -Y], axis=1))
  assert pair._front_html() == pair.estimators_[0]._front_html() + pair.estimators_[1]._front_html()


def test_tags_of_scikit_learn():
  tags = regressor().__sklearn_tags__()
  assert tags.regressor_tags.poor_score and tags.target_tags.multi_output and not tags.non_deterministic
  assert SymFormerRegressor().__sklearn_tags__().non_deterministic


def test_what_is_saved_comes_back(asked, tmp_path):
  params = {"operators": ("+", "*"), "restrictions": Restrictions(max_depth=3, max_sizes={"sin": (3,)}),
    "guesses": ("x0",),
            "add_operators": ("tanh",), "units": {"x0": "m"}, "config": CLOSED, "random_state": 7, "callback": print}
  fitted = regressor(**params).fit(X, Y)
  fitted.save(tmp_path / "f")
  record = json.loads((tmp_path / "f").read_text())
  assert record["format"] == "symformer-regressor-2" and record["n_features"] == 1 and record["feature_names"] is None
  assert "callback" not in record["params"] and record["params"]["model"] == "fixed"
  loaded = SymFormerRegressor.load(tmp_path / "f")
  assert loaded.get_params() | {"model": 0, "callback": 0} == fitted.get_params() | {
    "model": 0, "callback": 0, "operators": ["+", "*"], "guesses": ["x0"], "add_operators": ["tanh"]}
  np.testing.assert_allclose(loaded.predict(X), fitted.predict(X))
  assert loaded._terms_ == loaded._terms(("x0",)) and loaded.best_ == fitted.best_ and loaded.n_features_in_ == 1
  regressor(random_state=np.random.RandomState(0)).fit(X, Y).save(tmp_path / "g")
  back = SymFormerRegressor.load(tmp_path / "g")
  assert back.random_state is None and back.guesses == () and back.restrictions is None and back.config is None
  frame = pd.DataFrame({"a": X[:, 0]})
  regressor().fit(frame, Y).save(tmp_path / "h")
  assert SymFormerRegressor.load(tmp_path / "h").feature_names_in_.tolist() == ["a"]
  assert SymFormerRegressor.load(tmp_path / "h").feature_names_in_.dtype == object  # as scikit-learn has them
  pair = regressor(units={"x0": "m", "u": "s"}).fit(X, pd.DataFrame({"u": Y, "v": -Y}))
  pair.save(tmp_path / "p")
  assert json.loads((tmp_path / "p").read_text())["format"] == "symformer-regressor-3"
  again = SymFormerRegressor.load(tmp_path / "p")
  assert [each.units for each in again.estimators_] == [{"x0": "m", "u": "s"},
    {"x0": "m"}] and again.units == pair.units
  np.testing.assert_allclose(again.predict(X), pair.predict(X))


@pytest.mark.parametrize(("change", "message"), [
  ({"n_features": 2}, "n_features: expected 1, got 2"), ({"n_features": True}, "n_features: expected 1, got True"),
  ({"feature_names": ["b"]}, "feature_names: expected those of the formulas"),
  ({"format": "symformer-regressor-3", "targets": []}, "targets: expected at least one"),
  ({"format": "symformer-regressor-4"}, "of format 4, written by a newer version; this one reads up to 3")])
def test_damaged_files_of_estimators(asked, tmp_path, change, message):
  regressor().fit(X, Y).save(tmp_path / "f")
  record = json.loads((tmp_path / "f").read_text()) | change
  (tmp_path / "f").write_text(json.dumps(record))
  with pytest.raises(InputError, match=message):
    SymFormerRegressor.load(tmp_path / "f")


def test_a_file_of_the_first_format_has_the_front_alone(asked, tmp_path):
  fitted = regressor().fit(X, Y)
  record = saved._plain(fitted._front_record()) | {"format": "symformer-regressor-1", "n_features": 1,
    "feature_names": None,
                                                  "params": {"model": "auto"}, "search": None}
  for line in record["front"]:
    del line["tree"]
  (tmp_path / "f").write_text(json.dumps(record))
  loaded = SymFormerRegressor.load(tmp_path / "f")
  assert loaded.result_ is None and loaded._result().status == "ok" and loaded._result().num_points == 0
  assert loaded._result().seed == 0 and loaded._result().model == "auto" and "auto" and loaded._front_html()
