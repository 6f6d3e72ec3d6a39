"""Phases: arguments of waves and tangents from their values, and formulas for them."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.waves import phase_unwrapping, phases, wave_products
from symformer_jax.sources.waves.phase_unwrapping import Choices, unwrap
from symformer_jax.sources.waves.phases import Outer, Phases, find_arguments, is_wave

CONFIG = DEFAULT.phases
COS, TAN = Outer("y", "cos"), Outer("y", "tan")


def unwrapped(x, choices, **changes):
  return unwrap(x, choices, **{"num_starts": 4, "num_beams": 8, "most_rough": 0.5} | changes)


def is_argument(found, truth, period, has_mirror):
  """But for periods and, of a wave, the sign."""
  signs = (1, -1) if has_mirror else (1,)
  return any(np.allclose(found - truth - period * round(float((found - truth)[0] / period)), 0, atol=1e-6)
             for truth in (sign * truth for sign in signs))


def sources_of(text, x, columns=(0,), is_short=False, rule=None, **changes):
  y = expression.evaluate(parser.parse(text, tuple("xyz"[: x.shape[1]])), x)
  return find_arguments(Rows(x, y, np.ones(len(x))), columns, rule or Rule(x.shape[1]),
                        dataclasses.replace(CONFIG, **changes), is_short=is_short)


# --- unwrapping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_mirror", [False, True])
@pytest.mark.parametrize("argument", [
  lambda x: 3 * x, lambda x: x**2 + 5 * x, lambda x: 4 * np.sqrt(x + 5.1) - 1, lambda x: np.exp(0.6 * x),
  lambda x: x**2 + 2 * np.sin(x), lambda x: 0.3 * x**3 - x + 2])
def test_smooth_arguments_come_back_but_for_periods(argument, has_mirror, rng):
  x = np.sort(rng.uniform(-5, 5, 160))
  truth, period = argument(x), 2 * math.pi if has_mirror else math.pi
  values = np.cos(truth) if has_mirror else np.tan(truth)
  found = unwrapped(x, (COS if has_mirror else TAN).choices(values))
  whole = [each for each in found if len(each.values) == len(x) and each.begin == 0]
  assert any(is_argument(each.values, truth, period, has_mirror) for each in whole)
  right = min(whole, key=lambda each: each.roughness)
  assert is_argument(right.values, truth, period, has_mirror) and right.roughness < CONFIG.most_rough
  assert right.range == pytest.approx(np.ptp(truth))


def test_without_mirrors_it_is_the_unwrapping_of_numpy(rng):
  x = np.linspace(-2, 3, 200)
  principal = np.arctan(np.tan(2 * x**2 - x))
  found = unwrapped(x, Choices(principal, math.pi, has_mirror=False))
  expected = np.unwrap(principal, period=math.pi)
  assert any(is_argument(each.values, expected, math.pi, has_mirror=False) for each in found)


def test_where_an_argument_turns_at_an_end_of_its_wave_the_mirror_image_is_no_answer(rng):
  """(x + 2.5)**2 - 6.25 has its least value beside -2*pi; its mirror image there has no kink."""
  x = np.sort(rng.uniform(-5, 5, 100))
  truth = (x + 2.5) ** 2 - 2 * math.pi + 0.3
  best = min(unwrapped(x, COS.choices(np.cos(truth))), key=lambda each: each.roughness)
  assert is_argument(best.values, truth, 2 * math.pi, has_mirror=True)


def test_where_an_argument_is_flat_both_ways_on_are_answers(rng):
  x = np.sort(rng.uniform(-4, 4, 200))
  truth = (x - 1) ** 3
  found = unwrapped(x, COS.choices(np.cos(truth)))
  assert any(is_argument(each.values, truth, 2 * math.pi, has_mirror=True) for each in found if len(each.values) == 200)


def test_a_stretch_ends_where_the_argument_is_too_fast(rng):
  x = np.sort(rng.uniform(0, 5, 120))
  truth = 2 * x**4
  found = [each for each in unwrapped(x, COS.choices(np.cos(truth))) if len(each.values) > 20]
  best = min(found, key=lambda each: each.roughness / len(each.values))
  assert len(best.values) < 100
  assert is_argument(best.values[:-9], truth[best.rows][:-9], 2 * math.pi, has_mirror=True)
  assert len(max(unwrapped(x, COS.choices(np.cos(truth)), most_rough=1e-3),
                 key=lambda each: len(each.values)).values) < len(best.values)


@pytest.mark.parametrize("outer", [COS, TAN])
def test_of_noise_no_argument_is_smooth(outer, rng):
  for _ in range(20):
    x = np.sort(rng.uniform(0, 1, 80))
    y = rng.uniform(-1, 1, 80) if outer is COS else rng.standard_cauchy(80)
    assert all(each.roughness > CONFIG.most_rough or len(each.values) < CONFIG.min_rows
               for each in unwrapped(x, outer.choices(y)))


@pytest.mark.parametrize("num_rows", [3, 4, 5, 6])
def test_few_rows_have_stretches_too(num_rows):
  x = np.linspace(0, 1, num_rows)
  for each in unwrapped(x, TAN.choices(np.tan(x))):
    assert 2 <= len(each.values) <= num_rows and each.rows == slice(each.begin, each.begin + len(each.values))


def test_each_part_of_the_rows_is_a_start(monkeypatch):
  begun = []
  right = phase_unwrapping._around
  monkeypatch.setattr(phase_unwrapping, "_around", lambda x, choices, begin, is_curved, *rest: (
    begun.append((begin, is_curved)), right(x, choices, begin, is_curved, *rest))[1])
  x = np.concatenate([np.linspace(0, 1, 10), 1.5 + np.linspace(0, 0.01, 3), np.linspace(2, 3, 11)])
  unwrapped(x, TAN.choices(np.tan(x)), num_starts=2)
  second = begun[1][0]
  assert 13 <= second <= 21 and begun == [(10, True), (second, True), (10, False), (second, False)]


def test_choices_are_the_nearest_of_each_sign():
  near = Choices(np.array([0.1]), 2.0, has_mirror=True).near(0, np.array([6.0, -1.2]))
  np.testing.assert_allclose(near, [[4.1, 6.1, 8.1, 3.9, 5.9, 7.9], [-3.9, -1.9, 0.1, -4.1, -2.1, -0.1]])
  assert Choices(np.array([0.1]), 2.0, has_mirror=False).near(0, np.array([6.0])).tolist() == [[4.1, 6.1, 8.1]]


def test_cubics_go_through_cubics(rng):
  x = np.sort(rng.uniform(-1, 1, 12))
  cubic = 2 * x**3 - x**2 + 0.3 * x + 4
  np.testing.assert_allclose(phase_unwrapping._by_cubics(x, cubic), cubic[2:-2], rtol=1e-9)
  odd = cubic + 0.1 * (np.arange(12) == 6)
  assert abs(phase_unwrapping._by_cubics(x, odd)[4] - cubic[6]) < 1e-9  # the row itself has no say


# --- what stands around an argument ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("outer", "text"), [
  (COS, "cos(2*x)"), (Outer("y", "cos", 3.0, -1.0), "3*cos(2*x) - 1"), (Outer("pow3", "tan"), "tan(2*x)**3"),
  (Outer("y", "tan", power=-1.0), "tan(2*x)/x"), (Outer("exp", "cos", 2.0, 0.5), "exp(2*cos(2*x) + 0.5)"),
  (Outer("y", "cos", 2.0, 0.0, 1.0), "2*x*cos(2*x)")])
def test_around_an_argument_stands_what_was_taken_away(outer, text, rng):
  x = rng.uniform(0.2, 1.2, (30, 2))
  y = expression.evaluate(parser.parse(text, ("z", "x")), x)
  argument = parser.parse("2*x", ("z", "x"))
  np.testing.assert_allclose(expression.evaluate(outer.around(argument, 1), x), y, rtol=1e-12)
  link = phases.LINKS[outer.link]
  choices = outer.choices(link.transform(y / x[:, 1] ** outer.power))
  wave = np.cos if outer.token == "cos" else np.tan
  np.testing.assert_allclose(wave(choices.principal), wave(2 * x[:, 1]), rtol=1e-9)
  assert choices.period == (2 * math.pi if outer.token == "cos" else math.pi)
  assert choices.has_mirror == (outer.token == "cos")


def test_a_wave_goes_to_and_fro_between_its_ends(rng):
  x = np.linspace(0, 20, 200)
  assert is_wave(3 * np.cos(x) + 1, 0.1) and is_wave(np.cos(x**1.5), 0.1)
  assert not is_wave(x * np.cos(x), 0.1) and is_wave(x * np.cos(x), 0.9)
  assert not is_wave(np.cos(x[:60]), 0.1)  # two bottoms, one top
  assert not is_wave(x, 0.1) and not is_wave(rng.normal(size=100), 0.1)


def test_sizes_are_those_of_the_values_or_1():
  x = np.linspace(0, 40, 400)
  def of(values, token="cos"):
    return [tuple(round(each, 2) for each in some) for some in phases._sizes(values, token, CONFIG)]
  assert of(3 * np.cos(x) + 1) == [(3.0, 1.0)]
  assert of(np.cos(x)) == [(1.0, 0.0)] == of(0.99 * np.cos(x))
  assert of(0.5 * np.cos(x)) == [(1.0, 0.0), (0.5, 0.0)]
  assert of(0.3 * x / 40) == [(1.0, 0.0)] and of(x) == []
  assert of(3 * np.cos(x), "tan") == [(1.0, 0.0)]


# --- arguments of a table --------------------------------------------------------------------------------------------


def test_the_column_and_what_stands_around_are_found(rng):
  x = rng.uniform(0.3, 3, (150, 3))
  found = sources_of("2.5*cos(y**3 + y) + 4", x, columns=(0, 1, 2))
  assert {each.column for each in found} == {1}
  argument = next(each for each in found if each.outer.link == "y")
  assert argument.outer.size == pytest.approx(2.5, rel=0.02) and argument.outer.away == pytest.approx(4, rel=0.02)
  assert np.all(np.diff(argument.x) > 0) and len(argument.x) == len(argument.unwrapped.values)
  assert sources_of("2.5*cos(y**3 + y) + 4", x, columns=(0, 2)) == []
  assert sources_of("2.5*cos(y**3 + y) + 4", x, columns=(1,), min_rows=151) == []


def test_powers_of_the_column_may_multiply(rng):
  x = rng.uniform(0.5, 4, (200, 1))
  [best, *_] = sources_of("3*cos(x**2)*x", x)
  assert best.outer.power == 1.0 and best.outer.size == pytest.approx(3, rel=0.02)
  assert all(each.outer.power == 0 for each in sources_of("3*cos(x**2)*x", x, powers=()))
  assert all(each.outer.power == 0 for each in sources_of("cos(x**2 - 8*x)", x - x[0]))  # 0 is among the rows


def test_half_a_turn_is_the_others_turn(rng):
  x = rng.uniform(-3, 3, (100, 1))
  assert sources_of("tan(cos(0.24*x + 0.3))", x) == []
  assert {each.outer.token for each in sources_of("tan(cos(0.24*x + 0.3))", x, is_short=True)} == {"tan"}
  assert any(each.outer == TAN for each in sources_of("tan(2*x)", x))
  assert all(each.unwrapped.range < math.pi for each in sources_of("tan(2*x)", x, is_short=True))


def test_only_operators_that_are_allowed_stand_around(rng):
  x = rng.uniform(-3, 3, (120, 1))
  def without(name):
    return Restrictions(forbidden=(name,)).for_columns(("x",))
  assert {each.outer.token for each in sources_of("tan(3*x)", x, rule=without("cos"))} == {"tan"}
  assert {each.outer.token for each in sources_of("cos(3*x**2)", x, rule=without("tan"))} == {"cos"}
  assert all(each.outer.link == "y" for each in sources_of("cos(3*x**2)**3", x, rule=without("pow3")))
  assert any(each.outer.link == "pow3" for each in sources_of("cos(3*x**2)**3", x))


def test_the_smoothest_come_first(rng):
  x = rng.uniform(-3, 3, (120, 1))
  found = sources_of("cos(x**2 + 4*x)", x, num_kept=8)
  shares = [each.unwrapped.roughness / len(each.x) for each in found]
  assert shares == sorted(shares) and len(sources_of("cos(x**2 + 4*x)", x, num_kept=1)) == 1


def test_an_argument_that_is_known_twice_is_asked_once(rng):
  """With all rows, and without those next to each other."""
  x = rng.uniform(-3, 3, (150, 1))
  found = sources_of("cos(x**2 + 4*x)", x, num_kept=8, powers=(), links=("y",), tokens=("cos",))
  ranges = [each.unwrapped.range for each in found]
  assert len(found) >= 1 and all(abs(a - b) > 0.02 * max(a, b) for i, a in enumerate(ranges) for b in ranges[:i])


# --- the source ------------------------------------------------------------------------------------------------------


def ask(task, turn=0):
  source = Phases(SearchOptions())
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=turn, num=source.turns[turn], clock=Clock())[0].nodes


@pytest.mark.parametrize(("text", "turn"), [
  ("1.4*cos(x**2 + 5*x) - 3", 0), ("tan(3.02*arctan(1/x**2) + 1)", 0), ("tan(cos(0.24*x + 9.7))", 1),
  ("sin(4.02*y**1.5 + y**2)", 0)])
def test_laws_are_found(text, turn, rng):
  names = ("x", "y") if "y" in text else ("x",)
  low = 0.01 if "y" in text else -4
  x = rng.uniform(low, 4, (120, len(names)))
  task = make_task((x, expression.evaluate(parser.parse(text, names), x)), names, SearchOptions())
  nodes = [node for node in ask(task, turn=turn) if programs.size(node) <= programs.MAX_TOKENS]
  assert 0 < len(nodes) <= CONFIG.turns[turn]
  assert min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=40)[0]) < 1e-16


def test_a_chirp_under_noise_is_found(rng):
  x = rng.uniform(0, 4, (120, 1))
  y = 2 * np.cos(1.5 * x[:, 0] ** 2 + x[:, 0]) + 0.002 * rng.normal(size=120)
  task = make_task((x, y), ("t",), SearchOptions())
  fitted = refine.fit_constants([(task, ask(task))], method="lm", max_steps=40)[0]
  assert min(mse for _, mse in fitted) < 1e-5


def test_what_it_needs(rng):
  source = Phases(SearchOptions())
  def task(num_rows=40, num_columns=1, **rules):
    x = rng.uniform(1, 2, (num_rows, num_columns))
    options = SearchOptions(restrictions=Restrictions(**rules))
    return make_task((x, x[:, 0]), None, options)
  assert source.supports(task()) and source.supports(task(16)) and not source.supports(task(15))
  assert source.supports(task(num_columns=7))
  assert source.supports(task(forbidden=("tan",))) and not source.supports(task(forbidden=("tan", "cos")))
  assert not source.supports(task(forbidden=("+",)))


def test_small_values_are_no_argument_for_being_small(rng):
  """Arctangents and arccosines of small numbers hardly differ, whatever the order of the rows."""
  x = rng.uniform(1, 2, (200, 6))
  rows = Rows(x, 1e-3 * rng.normal(size=200), np.ones(200))
  for is_short in (False, True):
    assert find_arguments(rows, range(6), Rule(6), CONFIG, is_short=is_short) == []
  smooth = Rows(x, 1e-3 * np.exp(x[:, 2]), np.ones(200))
  assert {each.column for each in find_arguments(smooth, range(6), Rule(6), CONFIG, is_short=True)} == {2}


def test_what_is_not_worth_unwrapping_is_not(monkeypatch, rng):
  asked = []
  monkeypatch.setattr(phases, "unwrap", lambda x, choices, **_: asked.append(choices.principal) or [])
  x = rng.uniform(1, 2, (60, 1))
  for y, long, short in ((np.tan(0.7 * x[:, 0]), 0, 1), (rng.uniform(-1, 1, 60), 1, 0), (np.cos(9 * x[:, 0]), 1, 1)):
    for is_short, expected in ((False, long), (True, short)):
      asked.clear()
      config = dataclasses.replace(CONFIG, links=("y",), powers=(), least_gaps=(0.0,), most_apart=0.0)
      find_arguments(Rows(x, y, np.ones(60)), [0], Rule(1), config, is_short=is_short)
      assert bool(asked) == bool(expected), (y[:3], is_short)


def test_rows_next_to_each_other_count_once():
  x, rows = phases._apart(np.array([4.0, 1.0, 2.0, 1.4, 3.0, 1.45, 1.0]), 0.5)
  assert x.tolist() == [1.0, 1.4, 2.0, 3.0, 4.0] and rows.tolist() == [1, 3, 2, 4, 0]
  assert phases._apart(np.array([2.0, 2.0]), 0.5)[0].tolist() == [2.0]
  assert len(phases._apart(np.linspace(0, 1, 9), 0.5)[0]) == 9
  assert len(phases._apart(np.array([0, 0.1, 1]), 0.0)[0]) == 3


def test_tables_of_few_different_values_have_nothing_to_unwrap(rng):
  x = rng.integers(0, 10, (100, 1)).astype(float)
  assert ask(make_task((x, np.cos(x[:, 0] ** 2)), ("x",), SearchOptions())) == ()


@pytest.mark.parametrize("changes", [
  {"tokens": ("sin",)}, {"links": ("none",)}, {"num_beams": 0}, {"num_starts": 0}, {"min_rows": 0}, {"num_kept": 0}])
def test_values_that_steer_nothing_are_refused(changes):
  with pytest.raises(ValueError, match=next(iter(changes))):
    dataclasses.replace(CONFIG, **changes)


def test_the_argument_is_a_formula_of_its_column():
  assert TAN.around(variable(1), 1) == parser.parse("tan(y)", ("x", "y"))


# --- products of powers of several columns ---------------------------------------------------------------------------


def products_of(text, x, names="xyzwv", rule=None, noise=0.0, **changes):
  y = expression.evaluate(parser.parse(text, tuple(names[: x.shape[1]])), x)
  y = y + noise * np.std(y) * np.random.default_rng(5).normal(size=len(y))
  config = dataclasses.replace(CONFIG.products, **changes)
  return list(wave_products.waves_of_products(Rows(x, y, np.ones(len(x))), range(x.shape[1]), rule or Rule(x.shape[1]),
                                              config)), y


def nearest(nodes, x, y):
  return min((float(np.mean((expression.evaluate(node, x) - y) ** 2) / np.var(y)) for node in nodes), default=1.0)


@pytest.mark.parametrize("text", [
  "sin(0.7*x*y/(sqrt(z)*w**2))", "-cos(0.2*x*y*v/(sqrt(w)*z))", "tan(x*y/z)", "sin(0.3*x**2*y**(-1.5)*z)",
  "tan(0.4*y**0.3333333333333333*w)"])
def test_waves_of_size_1_come_back_exactly(text, rng):
  x = rng.uniform(0.3, 3, (300, 5))
  nodes, y = products_of(text, x)
  assert nearest(nodes, x, y) < 1e-20


@pytest.mark.parametrize("text", ["4 + 3*cos(0.3*x*y**2)", "2.5*sin(0.4*x**2*y/z)", "-3*sin(x*z/y) - 1"])
def test_of_waves_of_any_size_the_exponents_come_back(text, rng):
  x = rng.uniform(0.3, 3, (300, 3))
  nodes, y = products_of(text, x)
  assert nearest(nodes, x, y) < 1e-2
  task = make_task((x, y), ("x", "y", "z"), SearchOptions())
  fitted = refine.fit_constants([(task, nodes)], method="lm", max_steps=40)[0]
  assert min(mse for _, mse in fitted) < 1e-16


def test_under_noise_exponents_are_the_simple_ones_nearby(rng):
  x = rng.uniform(0.3, 2, (300, 4))
  nodes, y = products_of("2*sin(0.5*x**2*y/z)", x, noise=0.01)
  assert nearest(nodes, x, y) < 0.02
  assert products_of("2*sin(0.5*x**2*y/z)", x, noise=0.01, tolerances=(0.001,), least_shares=(0.25,),
                     nearly=(0.01,))[0] == []


def test_columns_of_both_signs_have_whole_exponents(rng):
  x = rng.uniform(-2, 2, (300, 2))
  nodes, y = products_of("sin(0.9*x*y**2)", x)
  assert nearest(nodes, x, y) < 1e-20


def test_what_is_no_wave_of_a_product_is_none(rng):
  x = rng.uniform(0.3, 3, (300, 3))
  for text in ("x + y - 2*z", "sin(x*y) + z", "cos(3*x)"):
    assert all(nearest([node], x, y) > 1e-12 for nodes, y in [products_of(text, x)] for node in nodes)
  noise = Rows(x, rng.normal(size=300), np.ones(300))
  assert list(wave_products.waves_of_products(noise, range(3), Rule(3), CONFIG.products)) == []
  assert products_of("sin(x*y)", np.column_stack([x[:, 0], np.zeros(300)]))[0] == []  # no logarithm of 0
  assert products_of("sin(2*x)", x[:, :1])[0] == []  # one column is unwrapped
  assert products_of("sin(x*y)", x[:8, :2])[0] == []  # fewer than four rows for an unknown
  assert products_of("sin(x*y/z)", x)[0] and products_of("sin(x*y/z)", x, max_columns=2)[0] == []


@pytest.mark.parametrize("exponents", [[-60.0, -40.0], [60.0, 40.0]])
def test_a_product_that_is_0_or_infinite_in_double_precision_is_none(exponents, monkeypatch, rng):
  x = rng.uniform(1e5, 2e5, (60, 2))
  monkeypatch.setattr(wave_products, "find_product", lambda *given: exponents)
  assert products_of("sin(x*y)", x)[0] == []


def test_waves_that_are_not_allowed_are_not_tried(rng):
  x = rng.uniform(0.3, 2, (200, 2))
  for token, others in (("sin", "cos tan"), ("cos", "sin tan"), ("tan", "sin cos")):
    rule = Restrictions(forbidden=tuple(others.split())).for_columns(("x", "y"))
    nodes, y = products_of(f"{token}(0.5*x*y)", x, rule=rule)
    assert nearest(nodes, x, y) < 1e-20
    assert {part.token for node in nodes for part in expression.walk(node)} & {"sin", "cos", "tan"} == {token}


def test_fractions_of_small_denominators_are_near():
  simple = wave_products._simple
  assert simple(1.004, (1, 2, 3), 0.01) == 1.0 and simple(0.497, (1, 2, 3), 0.01) == 0.5
  assert simple(-0.33, (1, 2, 3), 0.01) == pytest.approx(-1 / 3) and simple(0.33, (1, 2), 0.01) == 0.33
  assert simple(0.004, (1, 2, 3), 0.01) == 0.0 and simple(1.05, (1, 2, 3), 0.01) == 1.05


def test_the_source_fits_waves_of_products_of_many_columns(rng):
  x = rng.uniform(0.3, 3, (120, 8))
  names = tuple("abcdefgh")
  y = expression.evaluate(parser.parse("1.5*sin(0.7*a*b/(c*sqrt(d)))", names), x)
  task = make_task((x, y), names, SearchOptions())
  nodes = ask(task)
  assert min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=40)[0]) < 1e-16
  assert ask(task, turn=1) == ()


@pytest.mark.parametrize("changes", [{"num_draws": 0}, {"rows_per_unknown": 0}, {"max_columns": 0}])
def test_products_need_draws_and_rows(changes):
  with pytest.raises(ValueError, match=next(iter(changes))):
    dataclasses.replace(CONFIG.products, **changes)
