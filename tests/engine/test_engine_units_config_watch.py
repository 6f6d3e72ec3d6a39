"""What the default config says of the order of turns, and of when data are met: exactly, or but for noise."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, nested, parse, task_of

from symformer_jax import conclusion
from symformer_jax.engine import loop, noise
from symformer_jax.engine.bags import draw_bags
from symformer_jax.engine.config import DEFAULT, SOURCES, BudgetConfig, NoiseConfig, PoolConfig, ScalingConfig
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression

BUDGET, NOISE, POOL = DEFAULT.budget, DEFAULT.noise, DEFAULT.pool


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert (BudgetConfig(), NoiseConfig(), PoolConfig(), ScalingConfig()) == (BUDGET, NOISE, POOL, DEFAULT.scaling)


# --- turns -----------------------------------------------------------------------------------------------------------


def runs_of(*, is_of_one):
  """First turns, of sources with forty each: the source, and how many one after the other."""
  sources = [SimpleNamespace(name=name, turns=(1,) * 40) for name in SOURCES]
  turns = loop.first_turns(sources, BUDGET, is_of_one=is_of_one)
  return [(name, len(list(some))) for name, some in itertools.groupby(turn.source.name for turn in turns)]


def test_sources_have_turns_before_their_place_after_others_have_had_theirs():
  runs = runs_of(is_of_one=False)
  named = [name for name, _ in runs]
  # The runs of those that have not had all their turns before, in the order of the sources: behind each what is early.
  last = {name: max(i for i, each in enumerate(named) if each == name) for name in SOURCES}
  own = sorted(last.values())
  early = {named[i]: runs[i + 1 : j] for i, j in itertools.pairwise(own) if j > i + 1}
  assert early == {
    "closed_forms": [("exact_fractions", 1)], "enumeration": [
      ("product_units", 1), ("separable", 1), ("transcendental_fractions", 1), ("reductions", 20)],
    "quadratics": [("exact_factors", 1), ("transcendental_fractions", 1), ("linked_fractions", 1),
                   ("exact_fractions", 1), ("partitions", 12), ("product_units", 2), ("reductions", 12), ("phases", 1),
                   ("product_units", 1)],
    "rationals": [("remainders", 1)], "exact_fractions": [
      ("product_units", 2), ("transcendental_fractions", 1), ("replacements", 1)],
    "phases": [("remainders", 1), ("replacements", 1)], "separable": [("replacements", 1)],
    "library": [("transformer", 1), ("remainders", 1), ("replacements", 1)], "varying": [("replacements", 1)],
    "pairs": [("remainders", 1)]}


def test_of_one_column_these_have_a_turn_first():
  runs = runs_of(is_of_one=True)
  assert runs[:2] == [("closed_forms", 40), ("guesses", 40)]
  assert runs[2:15] == [*((name, 1) for name in (
    "exact_fractions", "enumeration", "short_forms", "quadratics", "linked_fractions", "rationals", "remainders",
    "oscillations", "phases", "curve_fits", "function_fractions", "separable")),
    ("exact_fractions", 2)]  # the second comes early, after the closed forms


def test_evolution_and_compositions_need_no_formulas_of_others():
  assert BUDGET.finders == ("evolution", "compositions")


@pytest.mark.parametrize(("num_rows", "num_bags"), [(4096, 4), (4095, 2)])
def test_from_4096_rows_on_a_model_is_shown_four_bags(num_rows, num_bags):
  x = np.arange(float(num_rows))
  rows = Rows(x[:, None], x, np.ones(num_rows))
  assert len(draw_bags(rows, rows.sample(9, seed=0), seed=0)) == num_bags


# --- data that are met exactly ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "met"), [(0.99e-18 / 16, 0.99e-18), (1.01e-18 / 16, 1e-22), (1e-23 / 16, 1e-22)])
def test_numbers_of_few_digits_are_met_to_sixteen_times_these_unless_that_is_much(error, met, monkeypatch):
  monkeypatch.setattr(loop, "rounding_variance", lambda y: 4 * error)
  task = SimpleNamespace(fit_rows=SimpleNamespace(y=None), variance=4.0)
  assert loop._as_written(task, POOL).met == pytest.approx(met, abs=0)


def search_of(taken, **parts):
  """A search whose sources, all there are, have had so many turns."""
  progress = [SimpleNamespace(source=name) for name, num in taken.items() for _ in range(num)]
  return SimpleNamespace(_options=OPTIONS, states=dict.fromkeys(SOURCES), progress=progress, **parts)


@pytest.mark.parametrize(("num_nodes", "is_long"), [(20, False), (21, True)])
def test_with_a_formula_of_more_than_twenty_nodes_others_are_asked_for_a_shorter_one(num_nodes, is_long):
  exact = Candidate(nested(num_nodes), 0.0)
  asked = {"product_units": 3, "exact_fractions": 2, "rationals": 1, "library": 1, "replacements": 6}
  assert loop.Search._is_long(SimpleNamespace(_options=OPTIONS), exact) is is_long
  for missing in (None, *asked):
    search = search_of({name: num - (name == missing) for name, num in asked.items()}, _exact=exact,
                       _is_long=lambda exact: is_long)
    assert loop.Search._is_met(search, exact) is (missing is None or not is_long)


@pytest.mark.parametrize(("apart", "num_kept"), [(0.4e-9, 1), (0.6e-9, 2)])
def test_formulas_whose_values_round_to_the_same_thousand_millionths_of_the_spread_are_one(apart, num_kept):
  x = 1 + 1e-3 * np.arange(60)
  rows = Rows(x[:, None], x, np.ones(60))
  nodes = [parse("x"), expression.Node("+", (parse("x"), expression.number(apart)))]
  assert len(conclusion._different_values(nodes, rows, 1.0, POOL.equal_values)) == num_kept


# --- data that are met but for noise ---------------------------------------------------------------------------------


def watch_of(num_rows=60, **found):
  x = np.linspace(1, 3, num_rows)
  watch = noise.NoiseWatch(make_task((x, x**2), ("x",), OPTIONS))
  for name, value in found.items():
    setattr(watch, name, value)
  return watch


@pytest.mark.parametrize(("num_rows", "num_nodes", "left", "may_be"), [
  (60, 10, 1e-3, True), (59, 10, 1e-3, False), (60, 11, 1e-3, False), (60, 10, 1.01e-3, False)])
def test_a_clear_formula_has_ten_nodes_and_explains_all_but_a_thousandth_of_sixty_rows(
    num_rows, num_nodes, left, may_be):
  watch = watch_of(num_rows)
  watch.best = Candidate(nested(num_nodes), left * watch._task.variance)
  assert watch.may_be_clear is may_be


@pytest.mark.parametrize(("num_rows", "left", "is_in_doubt"), [(14, 0.101, True), (15, 0.101, False), (14, 0.1, False)])
def test_a_formula_that_leaves_a_tenth_of_fewer_than_fifteen_rows_is_in_doubt(num_rows, left, is_in_doubt):
  watch = watch_of(num_rows)
  watch.best = Candidate(nested(3), left * watch._task.variance)
  assert watch.is_in_doubt is is_in_doubt


@pytest.mark.parametrize(("left", "is_noise"), [(0.0101, True), (0.01, False)])
def test_the_nearest_formula_of_any_length_leaves_noise_where_that_is_a_hundredth(left, is_noise, monkeypatch):
  monkeypatch.setattr(noise.NoiseWatch, "_leaves_noise", lambda self, candidate: True)
  watch = watch_of()
  watch.nearest = Candidate(nested(30), left * watch._task.variance)
  assert watch.nearest_leaves_noise() is is_noise


def test_eight_short_formulas_are_looked_at_whose_descriptions_are_ten_nats_longer(monkeypatch):
  lengths = {}
  monkeypatch.setattr(noise.NoiseWatch, "_length", lambda self, candidate: lengths[candidate.node])
  for more, num_nodes, num_others in ((9.9, 15, 8), (10.0, 15, 0), (9.9, 16, 0)):
    pool, watch = Pool(1.0, 100), watch_of()
    nodes = [nested(num_nodes, column) for column in range(12)]
    lengths |= dict.fromkeys(nodes, more) | {parse("x"): 0.0}
    pool.insert(Candidate(node, 0.5) for node in [*nodes, parse("x")])
    watch.look(pool)
    assert watch.best.node == parse("x") and len(watch.others) == num_others


CLEAR = {"closed_forms": 1, "guesses": 1, "enumeration": 1, "short_forms": 1, "quadratics": 1}
HURRIED = {**CLEAR, "oscillations": 1, "curve_fits": 1, "product_units": 3}


@pytest.mark.parametrize("missing", [None, *CLEAR])
def test_turns_that_are_taken_before_a_clear_formula_ends_a_search(missing):
  watch = SimpleNamespace(may_be_clear=True, best_leaves_noise=lambda: True)
  search = search_of({name: num - (name == missing) for name, num in CLEAR.items()})
  assert loop.Search._is_clear(search, watch) is (missing is None)


@pytest.mark.parametrize("missing", [None, *HURRIED])
def test_turns_that_are_taken_before_a_search_hurries_to_those_that_its_end_waits_for(missing):
  watch = SimpleNamespace(best=Candidate(nested(3), 1.0), is_in_doubt=False, may_be_clear=False,
                          leaves_noise=lambda: True)
  search = search_of({name: num - (name == missing) for name, num in HURRIED.items()}, ended_by="", _exact=None,
                     _noise=watch, _asked_to_hurry=0, _turns_of_sole_column=list, _begun=set(),
                     _has_errors=False,
                     sources=[SimpleNamespace(name="library", turns=(1, 1))])
  assert loop.Search.hurried(search) == (("library", 0) if missing is None else None)


def test_rows_that_are_watched_are_a_thousand():
  assert len(noise.NoiseWatch(task_of(1, num_rows=2000))._rows) == 1024
