"""Which sources a search has."""

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from symformer_jax import testing
from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SOURCES
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.sources import registry
from symformer_jax.sources.registry import make_sources


class Model:
  """As much of a model as sources look at when they are made."""

  name, vocab = "model", None


def names(**options):
  return [source.name for source in make_sources(Model(), SearchOptions(**options))]


def test_the_table_has_every_source_of_the_config_in_its_order():
  assert tuple(registry.SOURCES) == SOURCES
  assert tuple(names(effort="thorough")) == DEFAULT.sources


def test_of_a_smaller_table_what_comes_early_ends_with_pairs_of_functions():
  """Of several columns up to its fractions, and what they remain, before groups of columns are looked for."""
  early = [(turns, after) for name, turns, after in DEFAULT.budget.early if name == "reductions"]
  reductions = registry.SOURCES["reductions"](Model(), SearchOptions())
  assert [after for _, after in early] == ["enumeration", "quadratics"]
  for is_of_one, ends in ((False, (("remainders", "curve_fits"), ("inner_pairs", "wave_fractions"))),
                          (True, (("transcendental_fractions", "product_units"), ("two_constants", "curves")))):
    turns = reductions._turns_of(SimpleNamespace(is_of_one=is_of_one))
    for num_turns, found in zip((early[0][0], sum(turns for turns, _ in early)), ends, strict=True):
      *_, last, following = turns[:num_turns]  # the first of the turns looks for the table
      assert (last.source.name, following.source.name) == found


def test_in_a_smaller_table_of_several_columns_sums_of_functions_wait_for_fractions_of_functions():
  """In one of a single column, and where what is waited for comes before them, they have their place."""
  def order(is_of_one, *waiting):
    config = dataclasses.replace(DEFAULT, reductions=dataclasses.replace(DEFAULT.reductions, waiting=waiting))
    reductions = registry.SOURCES["reductions"](Model(), SearchOptions(config=config))
    return [(turn.source.name, turn.number) for turn in reductions._turns_of(SimpleNamespace(is_of_one=is_of_one))]

  first, fractions = ("separable", 0), ("exact_fractions", 1)
  plain = order(False, "separable", "closed_forms")
  waited = order(False, "separable", "exact_fractions")
  assert plain.index(first) < plain.index(fractions) and waited.index(first) == waited.index(fractions) + 1
  assert [turn for turn in plain if turn != first] == [turn for turn in waited if turn != first]
  for waiting in (("separable", "exact_fractions"), ("separable", "library")):
    assert order(True, *waiting) == order(True, "separable", "closed_forms")
  assert order(False, "evolution", "exact_fractions") == order(False, "exact_fractions", "evolution") == plain


@pytest.mark.parametrize("waiting", [("separble", "exact_fractions"), ("separable", "exact_fraction")])
def test_what_waits_and_what_is_waited_for_are_sources_of_other_tables(waiting):
  with pytest.raises(InputError, match="waiting: unknown name"):
    dataclasses.replace(DEFAULT.reductions, waiting=waiting)


def test_quick_and_normal_leave_out_what_takes_long_unless_time_is_given():
  seldom = {"pairs", "pairs_inside", "triples", "compositions"}
  assert set(names(effort="thorough")) - set(names()) == seldom
  assert set(names()) - set(names(effort="quick")) == {
    "subsets", "varying", "ridges", "subsets_inside", "growth"}
  assert names(effort="quick", max_time=5.0) == names(max_time=5.0) == names(effort="thorough")


def test_a_normal_search_asks_what_the_config_names_alone():
  for sources in (("closed_forms", "triples"), ("pairs", "compositions"), ("closed_forms", "guesses")):
    assert names(config=dataclasses.replace(DEFAULT, sources=sources)) == list(sources)
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "library", "triples"))
  assert names(config=config) == ["closed_forms", "library"]


def test_of_smaller_tables_a_normal_search_asks_all():
  turns = {effort: [len(source.turns) for source in make_sources(Model(), SearchOptions(effort=effort))
                    if source.name in ("reductions", "partitions", "replacements")]
           for effort in ("quick", "normal", "thorough")}
  assert turns["normal"] == turns["thorough"] > turns["quick"]


def test_without_recombination_or_fit_the_model_is_left_with_what_is_free():
  for options in ({"recombine": False}, {"refine": "none"}):
    assert names(**options) == ["closed_forms", "guesses", "transformer"]


def test_the_config_names_the_sources():
  config = dataclasses.replace(DEFAULT, sources=("growth", "closed_forms"))
  assert names(config=config) == ["closed_forms", "growth"]


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in ("closed_forms", "guesses")])
def test_every_source_can_be_ended_in_its_turn(name, rng):
  x = rng.uniform(0.5, 3, (60, 2))
  if name in ("curves", "two_constants", "inner_pairs", "curve_fits", "oscillations"):  # of one column
    x[:, 1] = 2.0
  task = make_task((x, np.sin(x[:, 0] * x[:, 1]) + x[:, 1] ** 1.5), ("x", "z"), SearchOptions())
  model = testing.FixedProposer(["x0*x1", "x0**2"], num_variables=2)
  [source] = [each for each in make_sources(model, SearchOptions(max_time=60.0)) if each.name == name]
  pool = Pool(task.variance, len(x))
  pool.insert(Candidate(parser.parse(text, ("x", "z")), 1e-6)
              for text in ("sin(x*z) + z", "x*z + 1", "exp(0.1*x) + z**2"))
  asked = Question(task, pool, source.init(task, jax.random.key(0)))
  with pytest.raises(interruption.Interrupted), interruption.ending_when(lambda: True):
    source.propose([asked], turn=0, num=16, clock=Clock())
  interruption.check()  # outside nothing is ended
