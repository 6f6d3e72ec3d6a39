"""What the default config asks of the loop and the selection: how much, how long, how many go on."""

import collections
import dataclasses
import functools
import itertools
import statistics
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import NAMES, OPTIONS, candidate, different, nested, parse, task_of

from symformer_jax.engine import loop, noise, refine
from symformer_jax.engine.config import (
  DEFAULT,
  REWRITINGS,
  evolution,
  exact_factors,
  inner_functions,
  loop as loop_config,
  names,
  product_units,
  rationals,
  ridges,
  selection,
  sums,
  transformer,
  unknown_functions,
  waves,
)
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.selection import scoring, select
from symformer_jax.selection.judge import Finalist, Judge
from symformer_jax.sources import registry


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (DEFAULT.budget, loop_config.BudgetConfig), (DEFAULT.noise, loop_config.NoiseConfig),
    (DEFAULT.pool, loop_config.PoolConfig), (DEFAULT.selection, selection.SelectionConfig),
    (DEFAULT.choice, selection.ChoiceConfig), (DEFAULT.loss, selection.LossConfig),
    (DEFAULT.exact_factors, exact_factors.ExactFactorsConfig),
    (DEFAULT.product_units, product_units.ProductUnitsConfig),
    (DEFAULT.curve_fits, inner_functions.CurveFitsConfig), (DEFAULT.inner_pairs, inner_functions.InnerPairsConfig),
    (DEFAULT.two_constants, inner_functions.TwoConstantsConfig),
    (DEFAULT.oscillations, inner_functions.OscillationsConfig), (DEFAULT.phases, waves.PhasesConfig),
    (DEFAULT.wave_fractions, waves.WaveFractionsConfig), (DEFAULT.ridges, ridges.RidgesConfig),
    (DEFAULT.curves, ridges.CurvesConfig), (DEFAULT.varying, unknown_functions.VaryingConfig),
    (DEFAULT.separable, unknown_functions.SeparableConfig),
    (DEFAULT.single_index, unknown_functions.SingleIndexConfig),
    (DEFAULT.subsets, sums.SubsetsConfig), (DEFAULT.subsets_inside, sums.SubsetsInsideConfig),
    (DEFAULT.triples, sums.TriplesConfig), (DEFAULT.rationals, rationals.RationalsConfig)):
    assert part == make()


# --- turns -----------------------------------------------------------------------------------------------------------


def turns_of(**options):
  options = SearchOptions(**options)
  without_model = [name for name in registry.SOURCES if name != registry.TRANSFORMER]
  return list(loop.schedule([registry.SOURCES[name](None, options) for name in without_model], options))


def test_what_each_source_is_asked_for_in_its_turns():
  asked = collections.defaultdict(list)
  for turn in turns_of():
    asked[turn.source.name].append(turn.num)
  formulas = {name: nums for name, nums in asked.items() if set(nums) != {1}}
  assert formulas == {
    "fraction_pursuit": [48] * 2, "product_units": [48] * 6, "single_index": [128], "separable": [48, 128],
    "curves": [360], "inner_pairs": [96], "curve_fits": [48], "exact_factors": [32] * 3,
    "short_forms": [16], "oscillations": [48], "two_constants": [24, 72, 96, 96],
    "function_fractions": [8], "linked_fractions": [8], "transcendental_fractions": [8] * 9, "enumeration": [8, 8],
    "wave_fractions": [24] * 2,
    "phases": [24] * 2, "subsets": [256],
    "varying": [128] * 3, "pairs": [512], "pairs_inside": [1024], "triples": [256] * 4, "ridges": [128] * 2,
    "subsets_inside": [128] * 6,
    "growth": [512] * 2, "remainders": [32] * 5, "compositions": [64] * 4}


def runs_of(sources, **options):
  """First turns in their order: the source, and how many one after the other."""
  turns = loop.first_turns(sources, DEFAULT.budget, **options)
  return [(name, len(list(some))) for name, some in itertools.groupby(turn.source.name for turn in turns)]


def test_before_their_place_sources_are_asked_for_a_turn_or_two_and_a_model_for_its_first_samples():
  sources = [make(None, SearchOptions(n_samples=3000)) for make in registry.SOURCES.values()]
  runs = collections.defaultdict(list)
  for name, num in runs_of(sources, is_of_one=False):
    runs[name].append(num)
  assert {name: nums for name, nums in runs.items() if len(nums) > 1} == {
    "exact_fractions": [1, 1], "product_units": [1, 2, 1, 2], "separable": [1, 1], "exact_factors": [1, 2],
    "phases": [1, 1], "transcendental_fractions": [1, 1, 1, 6], "transformer": [1, 3], "remainders": [1] * 5,
    "replacements": [1] * 6,
    "reductions": [20, 12, sum(runs["reductions"][2:])], "partitions": [12, sum(runs["partitions"][1:])]}
  first = list(itertools.takewhile(lambda run: run[0] != "product_units", runs_of(sources, is_of_one=True)))
  assert len(first) == 16 and all(num == 1 for _, num in first)  # the last is the second of `enumeration`


@pytest.mark.parametrize(("is_of_one", "last"), [(False, "inner_pairs"), (True, "two_constants")])
def test_smaller_tables_are_asked_up_to_a_source_before_fractions_and_waves_of_the_whole(is_of_one, last):
  [reductions] = [make(None, OPTIONS) for name, make in registry.SOURCES.items() if name == "reductions"]
  asked = [turn.source.name for turn in loop.first_turns(reductions.sources, DEFAULT.budget, is_of_one=is_of_one)]
  num = sum(turns for name, turns, _ in DEFAULT.budget.early if name == "reductions") - 1  # the first looks for them
  assert asked[num - 1] == last != asked[num]


def test_a_thorough_search_goes_round_seven_times():
  """Four turns of evolution and of compositions, five of remainders, six of replacements, two of growth and parts."""
  quick, first, more = (collections.Counter(turn.source.name for turn in turns_of(effort=effort))
                        for effort in ("quick", "normal", "thorough"))
  of_others = ("reductions", "partitions")  # a turn for each of the others'
  assert all(quick.pop(name) < first[name] == more[name] for name in of_others)
  assert quick == collections.Counter({name: n for name, n in first.items() if name not in of_others})
  assert more - first == {"evolution": 7 * 4, "compositions": 7 * 4, "growth": 7 * 2, "remainders": 7 * 5,
                          "replacements": 7 * 6, "parts": 7 * 2}


def test_a_choice_is_left_three_twentieths_of_the_time_and_three_seconds_at_most():
  for seconds, search in ((10.0, 8.5), (20.0, 17.0), (100.0, 97.0)):
    assert SearchOptions(max_time=seconds).search_seconds == pytest.approx(search)


def test_a_model_is_asked_for_a_few_hundred_samples_then_for_thousands():
  from symformer_jax.sources.network.transformer import Transformer

  assert Transformer(None, SearchOptions(n_samples=3000)).turns == (256, 768, 1024, 952)


@pytest.mark.parametrize(("make", "message"), [
  (lambda: transformer.TransformerConfig(round_samples=1025), "later_samples: expected at least round_samples"),
  (lambda: loop_config.BudgetConfig(normal=-1), "normal: expected a whole number of at least 0, got -1"),
  (lambda: loop_config.BudgetConfig(early=(("transfomer", 1, "library"),)), "early: unknown name 'transfomer'"),
  (lambda: loop_config.BudgetConfig(early=(("transformer", 1, "libary"),)), "early: unknown name 'libary'"),
  (lambda: loop_config.BudgetConfig(early=(("parts", 0, "library"),)), "early: expected whole numbers of turns"),
  (lambda: loop_config.BudgetConfig(first_of_one=(("library", 0),)), "first_of_one: expected whole numbers of turns"),
  (lambda: loop_config.BudgetConfig(first_of_one=(("librry", 1),)), "first_of_one: unknown name 'librry'"),
  (lambda: loop_config.BudgetConfig(quick=0.5), "quick: expected a whole number of at least 0, got 0.5"),
  (lambda: evolution.EvolutionConfig(max_tokens=1), "max_tokens: expected 2 to 30, got 1"),
  (lambda: evolution.EvolutionConfig(max_tokens=31), "max_tokens: expected 2 to 30, got 31"),
  (lambda: evolution.EvolutionConfig(kinds=(("insrt", 1.0),)), "unknown name 'insrt'"),
  (lambda: ridges.RidgesConfig(sums=((1, 2, 2),) * 4), "sums: expected at most three sizes"),
  (lambda: ridges.RidgesConfig(sums=((1, 1, 2),)), "sums: expected at most three sizes"),
  (lambda: ridges.RidgesConfig(sums=((1, 2, 3),)), "sums: expected at most three sizes"),
  (lambda: ridges.RidgesConfig(sums=((1, 2, 0),)), "sums: expected at most three sizes"),
  (lambda: unknown_functions.SeparableConfig(degrees=()), "degrees: expected some numbers of at least 1"),
  (lambda: unknown_functions.SeparableConfig(degrees=(3, 0)), "degrees: expected some numbers of at least 1"),
  (lambda: names.check_counts(SimpleNamespace(a=0), "a"), "a: expected a whole number of at least 1, got 0"),
  (lambda: names.check_counts(SimpleNamespace(a=1.0), "a"), "a: expected a whole number of at least 1, got 1.0"),
  (lambda: loop_config.NoiseConfig(asked=(("libary", 1),)), "asked: unknown name 'libary'")])
def test_numbers_that_make_no_sense_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_numbers_at_their_limits_make_sense():
  assert transformer.TransformerConfig(round_samples=1024).round_samples == 1024
  assert loop_config.BudgetConfig(quick=1, normal=0).turns("normal") == 0
  assert [evolution.EvolutionConfig(max_tokens=num).max_tokens for num in (2, 30)] == [2, 30]
  assert ridges.RidgesConfig(sums=((1, 2, 2),) * 3) and unknown_functions.SeparableConfig(degrees=(1,))
  assert names.check_counts(SimpleNamespace(a=1), "a") is None


# --- the loop --------------------------------------------------------------------------------------------------------


def test_all_get_eight_steps_the_nearest_forty_and_what_may_be_exact_a_hundred_and_fifty(monkeypatch):
  asked = []

  def fit_constants(some, *, method, max_steps, max_constants):
    asked.append((method, max_steps, max_constants, [len(nodes) for _, nodes in some]))
    return [[(node, 1e-12 * (i + 1)) for i, node in enumerate(nodes)] for _, nodes in some]

  monkeypatch.setattr(refine, "fit_constants", fit_constants)
  task = task_of(2)
  nodes = [parser.parse(text, NAMES) for text in ("1.5*x", "2.5*x*z", "3.5*sin(x)")]
  proposal = loop.Proposal(nodes=tuple(nodes))
  list(loop._fits([task], [proposal], "library", OPTIONS))
  assert asked == [("lm", 8, 16, [3]), ("lm", 40, 16, [3]), ("lm", 150, 16, [3])]
  asked.clear()
  list(loop._fits([task], [proposal], "library", SearchOptions(refine="bfgs")))
  assert [steps for _, steps, _, _ in asked] == [32, 40, 150]  # a method of slopes takes four times the steps


def test_ninety_six_go_on_after_the_first_steps_and_four_of_each_length():
  found = loop._nearest([Candidate(node, float(i + 1)) for i, node in enumerate(different(120))], OPTIONS)
  assert len(found) == 96
  longer = [Candidate(expression.Node("sin", (node,)), 1e3 + i) for i, node in enumerate(different(9))]
  assert len(loop._nearest([*map(Candidate, different(120), np.arange(120.0) + 1), *longer], OPTIONS)) == 100


def test_what_of_a_pool_goes_on():
  pool = Pool(1.0, 100)
  pool.insert(Candidate(node, float(i + 1)) for i, node in enumerate(different(80)))
  assert len(pool.shortlist()) == 64
  pool.insert(Candidate(expression.Node("sin", (node,)), 1e3 + i) for i, node in enumerate(different(9)))
  assert len(pool.shortlist()) == 64 + 3
  wide = Pool(1.0, 100)
  for depth in range(1, 41):
    wide.insert(Candidate(expression.Node("*", (nested(depth), expression.variable(i + 1))), 1e3 + depth)
                for i in range(5))
  wide.insert(Candidate(node, float(i + 1)) for i, node in enumerate(different(80)))
  assert len(wide.shortlist()) == 128 and len(wide.shortlist(40)) == 40
  alike = Pool(1.0, 100)
  alike.insert(candidate(f"{k}.5*x", float(k)) for k in range(1, 9))
  assert len(alike.shortlist()) == 4


def test_a_pool_of_more_than_four_thousand_keeps_its_better_half():
  for num, kept in ((4096, 4096), (4097, 2048)):
    pool = Pool(1.0, 100)
    pool.insert(Candidate(node, float(i + 1)) for i, node in enumerate(different(num)))
    assert len(pool) == kept


def test_errors_of_single_precision_and_of_double():
  pool = Pool(2.0, 100)
  pool.insert([candidate("1.5*x*z", 2e-23), candidate("1.5*x", 1.9e-11), candidate("1.5*sin(x)", 2.1e-11)])
  assert [programs.size(c.node) for c in pool.shortlist()] == [3, 5, 4]  # of the first two the simpler comes first
  assert pool.exact() is not None and Pool(2.0, 100).exact() is None
  for mse, is_exact, is_near in ((1.9e-22, True, False), (2.1e-22, False, True), (1.9e-7, False, True),
                                 (2.1e-7, False, False)):
    pool = Pool(2.0, 100)
    pool.insert([candidate("1.5*x", mse)])
    assert (pool.exact() is not None, bool(pool.nearly_exact())) == (is_exact, is_near)
  many = Pool(2.0, 100)
  many.insert(Candidate(node, 1e-10) for node in different(20))
  assert len(many.nearly_exact()) == 8
  for num_points, is_exact in ((4, True), (3, False)):
    pool = Pool(1.0, num_points)
    pool.insert([candidate("1.5*x", 0.0)])
    assert (pool.exact() is not None) is is_exact


def test_a_search_has_stalled_where_a_turn_gains_less_than_a_nat(monkeypatch):
  rows = np.linspace(1, 3, 2000)
  task = make_task((rows, rows**2), ("x",), OPTIONS)
  watch = noise.NoiseWatch(task)
  assert len(watch._rows) == 1024 and len(task.fit_rows) == 256
  for lengths, stalled in (((10.0, 9.1), True), ((10.0, 8.9), False)):
    watch, found = noise.NoiseWatch(task), iter(lengths)
    monkeypatch.setattr(noise.NoiseWatch, "_length", lambda self, candidate, found=found: next(found))
    pool = Pool(1.0, 100)
    pool.insert([candidate("1.5*x", 1.0)])
    assert not watch.has_stalled(pool)
    pool.insert([candidate("x**2", 0.5)])  # the length of the other is known
    assert watch.has_stalled(pool) is stalled


def test_before_anything_is_found_no_search_has_stalled():
  watch = noise.NoiseWatch(task_of(1))
  assert not watch.has_stalled(Pool(1.0, 100)) and not watch.has_stalled(Pool(1.0, 100)) and watch.best is None


def test_a_node_costs_four_nats_where_the_noise_is_watched():
  x = np.linspace(1, 3, 50)
  watch = noise.NoiseWatch(make_task((x, x**2), ("x",), OPTIONS))
  short, long = (watch._length(candidate(text, 0.5)) for text in ("sin(x)", "sin(sin(x))"))
  assert long - short == pytest.approx(4)


def test_noise_looks_like_more_in_one_case_of_fifty(monkeypatch):
  limit = statistics.NormalDist().inv_cdf(1 - 0.02)
  for found, expected in ((limit - 1e-6, True), (limit + 1e-6, False)):
    monkeypatch.setattr(noise, "smoothness", lambda *rest, found=found, **named: [found])
    assert noise.looks_like_noise(np.ones(4), np.ones((4, 1)), [0]) is expected


def test_turns_that_are_taken_before_noise_ends_a_search():
  config, first = DEFAULT.noise, {"closed_forms": 1, "guesses": 1, "rationals": 1}
  task = task_of(1)

  class Watch:
    best, is_in_doubt = None, False

    def leaves_noise(self):
      return True

  network = {"library": 3, "transformer": 1}
  for num_nodes, in_doubt, turns in ((15, False, {"library": 1}), (16, False, {"library": 3}),
                                    (20, False, {"library": 3}),
                                    (21, False, {"library": 3, "ridges": 2}), (15, True, network), (16, True, network),
                                    (21, True, {**network, "ridges": 2})):
    watch = Watch()
    watch.is_in_doubt = in_doubt
    watch.best = Candidate(nested(num_nodes), 1.0)
    every = {**first, **turns}
    for missing in (None, *every):
      # The ridges and the network take part, and have no turn unless it is named.
      search = SimpleNamespace(_options=OPTIONS, states={**every, "ridges": 0, "transformer": 0}, progress=[
        SimpleNamespace(source=name) for name, num in every.items() for _ in range(num - (name == missing))])
      assert loop.Search._is_at_noise(search, watch) is (missing is None)
  assert config.efforts == ("quick", "normal") and task.num_rows == 128


def test_what_was_not_noise_is_judged_again_only_where_something_was_fitted_further(monkeypatch):
  found, looks = Candidate(nested(5), 1.0), []
  watch = SimpleNamespace(best=found, others=(), is_in_doubt=False, look=lambda pool: None,
                          leaves_noise=lambda: looks.append(0) or len(looks) > 1,
                          nearest_leaves_noise=lambda: False)
  for method, mse, fitted, num_looks in (
    ("lm", 0.5, (), 2), ("lm", 1.0, (), 1), ("none", 0.5, (), 1), ("lm", 0.5, (found.node,), 1)):
    search = SimpleNamespace(_options=SearchOptions(refine=method), states={}, progress=[], task=None,
                             pool=SimpleNamespace(insert=lambda some: None), _fitted_further=set(fitted))
    monkeypatch.setattr(loop, "_fit", lambda *rest, mse=mse: [[dataclasses.replace(found, mse=mse)]])
    search._fit_further = functools.partial(loop.Search._fit_further, search)
    assert loop.Search._is_at_noise(search, watch) is (num_looks == 2) and len(looks) == num_looks
    looks.clear()


# --- the selection ---------------------------------------------------------------------------------------------------


def judge_of(config, num=60):
  x = np.linspace(1, 9, num)
  rows = Rows(x[:, None], x**2 + 0.3 * np.sin(9 * x), np.ones(num))
  return Judge(rows, num, config, DEFAULT.choice)


def test_how_many_formulas_are_chosen_and_rewritten_and_how_many_in_a_hurry():
  nodes = [parse(f"x**2 + {k}*x") for k in range(2, 60)]
  for config, num_chosen, num_written in ((DEFAULT.selection, 24, 6), (DEFAULT.selection.hurried(), 8, 1)):
    judge = judge_of(config)
    judge._listable = lambda finalists, costs: (list(finalists), list(costs))
    assert len(judge.chosen(nodes, is_rounded=False)) == num_chosen
    assert len(judge.promising(nodes)) == num_written
  assert [config.max_rewritten for config in (DEFAULT.selection, DEFAULT.selection.hurried())] == [3, 1]
  assert DEFAULT.selection.rewrites_front and not DEFAULT.selection.hurried().rewrites_front
  assert [config.last_rows for config in (DEFAULT.selection, DEFAULT.selection.hurried())] == [1_000_000, 65_536]
  assert dataclasses.replace(DEFAULT.selection, last_rows=300).hurried().last_rows == 300
  with pytest.raises(ValueError, match="last_rows_late: expected a whole number of at least 1, got 0"):
    dataclasses.replace(DEFAULT.selection, last_rows_late=0)
  assert set(REWRITINGS) - set(DEFAULT.selection.without_absolutes().rewritings) == {"absolutes"}
  assert set(REWRITINGS) == set(DEFAULT.selection.rewritings)


def test_large_tables_are_compared_on_some_rows_and_listed_by_more(monkeypatch):
  asked = []

  class Enough(Exception):
    pass

  class Many(Rows):
    def sample(self, num_rows, *, seed):
      asked.append(num_rows)
      if len(asked) == 2:
        raise Enough
      return self

  with pytest.raises(Enough):
    select.select([parse("x")], Many(np.ones((9, 1)), np.arange(9.0), np.ones(9)), ("x",), seed=0)
  assert asked == [4096, 1_000_000]


def test_points_are_worth_less_where_errors_have_a_kurtosis_above_five():
  for share, is_less in ((0.21, False), (0.19, True)):  # of so many errors of one size the kurtosis is the inverse
    num = 1000
    x = np.ones(num)
    errors = np.where(np.arange(num) < share * num, 1.0, 0.0) * np.where(np.arange(num) % 2, 1, -1)
    judge = Judge(Rows(x[:, None], errors, x), num, DEFAULT.selection, DEFAULT.choice)
    assert (judge.count_effective([expression.number(0.0)]) < num) is is_less


@pytest.mark.parametrize(("factor", "is_simplest"), [(1.49, True), (1.51, False)])
def test_a_formula_that_leaves_half_as_much_again_is_nearly_as_accurate(factor, is_simplest, monkeypatch):
  judge, simple, long = judge_of(DEFAULT.selection), parse("x"), parse("sin(x)*x + x")
  judge.finalists = lambda nodes: [
    Finalist(node, SimpleNamespace(mse=factor if node == simple else 1.0)) for node in nodes]
  seen = []
  monkeypatch.setattr(scoring, "evaluate", lambda node, x: seen.append(node) or x[:, 0])
  judge.count_effective([long, simple])
  assert (seen == [simple]) is is_simplest


def test_each_line_of_a_front_is_better_by_a_hundredth():
  judge = judge_of(DEFAULT.selection)
  simple, long = parse("x"), parse("sin(x)*x + x")
  for share, lines in ((0.992, [0]), (0.988, [0, 1])):
    finalists = [Finalist(node, SimpleNamespace(mse=mse)) for node, mse in ((simple, 1.0), (long, share))]
    assert judge.front(finalists, [1.0, 0.5]) == lines


def test_what_describes_the_data_worse_by_fifteen_nats_is_not_listed():
  judge = judge_of(DEFAULT.selection)
  finalists = [Finalist(node, None) for node in (parse("x"), parse("sin(x) + x"))]
  for more, count in ((14.9, 2), (15.1, 1)):
    assert len(judge._listable(finalists, [0.0, more])[0]) == count
