"""Terms with factors that vary with one variable are told from the rows, and so are the factors."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from symformer_jax.engine import loop, refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.unknowns import varying

CONFIG = DEFAULT.varying
OPTIONS = SearchOptions()


def make(text, box, *, num_rows=200, noise=0.0, options=OPTIONS):
  rng = np.random.default_rng(3)
  names = "xyzw"[: len(box)]
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  y = expression.evaluate(parser.parse(text, names), x)
  return make_task((x, y + noise * np.std(y) * rng.normal(size=num_rows)), list(names), options)


def models_of(task, links=("y",)):
  with np.errstate(all="ignore"):
    found = varying.find_models(task.fit_rows, task.columns, links, more={}, allows=None, config=CONFIG)
    return varying.best_models(found, CONFIG)


def ask(task, turn=0, options=OPTIONS):
  source = varying.VaryingCoefficients(options)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=turn, num=source.turns[turn], clock=Clock())[0].nodes


@pytest.mark.parametrize(("text", "box", "column", "terms"), [
  ("40*cos(0.7*x + 0.3)*y + 4.2*z", [(1, 3), (1, 2), (0.5, 5)], 0, {"y", "z"}),
  ("exp(-0.4*x**2 - 0.3*x)*(2*y + z**2)", [(-1, 2), (-2, 2), (-2, 2)], 0, {"y", "z**2"}),
  ("y*z/(x + 0.7) - log(x)*z/y + 3", [(0.5, 4), (1, 3), (1, 3)], 0, {"y*z", "z/y"}),
  ("3*y - 0.5*y**2 - 2*x*y/(y + 1.5)", [(0.3, 6), (0.3, 6)], 1, {"1", "x"}),
  ("(z - sqrt(w))*exp(y/4) + 0.3*y*x", [(1, 3), (0, 3), (1, 3), (1, 3)], 1, {"x", "z", "sqrt(w)"})])
def test_terms_are_told_before_any_function_is_known(text, box, column, terms):
  best = models_of(make(text, box))[0]
  names = "xyzw"
  assert best.column == column and {printing.to_text(node, names) for node in best.terms} == terms
  assert best.left < 1e-6


def test_what_leaves_much_is_not_looked_at():
  assert not models_of(make("sin(3*x*y)*exp(-x*z)", [(0.5, 3)] * 3))
  rng = np.random.default_rng(0)
  noise = make_task((rng.uniform(1, 2, (300, 3)), rng.normal(size=300)), None, OPTIONS)
  assert not models_of(noise)


@pytest.mark.parametrize(("text", "box", "turn"), [
  ("40*cos(0.7*x + 0.3)*y + 4.2*z", [(1, 3), (1, 2), (0.5, 5)], 0),
  pytest.param("exp(-0.4*x**2 - 0.3*x)*(2*y + z**2)", [(-1, 2), (-2, 2), (-2, 2)], 0, marks=pytest.mark.slow),
  pytest.param("1/(z*exp(-0.7*x) + x*y + 2)", [(0.3, 4)] * 3, 2, marks=pytest.mark.slow),
  ("exp(sqrt(x)*y - 0.4*z/(x + 1))", [(0.3, 4), (0.3, 1), (0.3, 3)], 2)])
def test_laws_are_found(text, box, turn):
  task = make(text, box)
  fitted = refine.fit_constants([(task, ask(task, turn))], method="lm", max_steps=60)[0]
  assert min(mse for _, mse in fitted) < 1e-18 * task.variance


@pytest.mark.parametrize(("text", "box"), [
  ("sin(2*x)*exp(-0.3*y) + 0.2*x*y", [(0.5, 5)] * 2),
  pytest.param("1.5*cos(2*x + 0.4)*exp(-0.15*y) + 0.3*x*z", [(0.3, 6)] * 3, marks=pytest.mark.slow)])
def test_what_one_turn_finds_of_a_variable_is_a_term_of_the_next(text, box):
  task, source = make(text, box), varying.VaryingCoefficients(OPTIONS)
  search = loop.Search(task, [source], OPTIONS, jax.random.key(0))
  turns = itertools.islice(loop.run({0: search}, [source], OPTIONS, clock=Clock()), 2)
  errors = [1 - progress.r2 for _, progress in turns]
  assert errors[0] > 1e-8 and errors[1] < 1e-15


def test_terms_that_were_seen_have_not_the_column():
  task = make("x + y", [(1, 2)] * 3)
  pool = Pool(task.variance, len(task.fit_rows), DEFAULT.pool)
  pool.insert([Candidate(parser.parse("(2*sin(3*x) + 4*x*z)*y + 2.5*exp(z*y)", "xyz"), 1.0, "library")])

  def seen(num_multiplied):
    config = dataclasses.replace(CONFIG, num_multiplied=num_multiplied)
    return {column: {printing.to_text(node, "xyz") for node in nodes}
            for column, nodes in varying.seen_terms(pool, task.columns, config).items()}

  alone = {0: {"y", "exp(y*z)"}, 1: {"2*sin(3*x) + 4*x*z", "sin(3*x)", "x*z"}, 2: {"y"}}
  assert seen(0) == alone
  assert seen(1)[0] == alone[0] | {"y*z", "y/z"} and seen(1)[2] == {"y", "x*y", "y/x"}
  assert varying.seen_terms(Pool(task.variance, 300, DEFAULT.pool), task.columns, CONFIG) == {}
  assert ask(task, turn=1) == ()


def test_a_law_is_near_under_noise():
  task = make("40*cos(0.7*x + 0.3)*y + 4.2*z", [(1, 3), (1, 2), (0.5, 5)], noise=0.01)
  fitted = refine.fit_constants([(task, ask(task)[:24])], method="lm", max_steps=40)[0]
  assert min(mse for _, mse in fitted) < 1.2e-4 * task.variance


def test_factors_that_are_multiples_of_one_another_are_one():
  task = make("exp(-0.4*x**2)*(2*y + z**2)", [(-1, 2), (-2, 2), (-2, 2)])
  first = printing.to_text(ask(task)[0], "xyz")
  assert first.count("exp") == 1 and "z**2" in first


def test_a_constant_is_a_factor_of_its_own_where_it_is_needed():
  for text, num in (("sin(x)*y + 3", 2), ("sin(x)*y", 1)):
    task = make(text, [(0.5, 3)] * 2)
    model = next(model for model in models_of(task) if len(model.terms) == 1)
    places = np.linspace(0.5, 3, 64)
    factors = varying.factors_of(model, task.fit_rows, places, config=CONFIG)
    assert len(factors) == num
    np.testing.assert_allclose(factors[0].values, np.sin(places), atol=1e-4)


def test_rules_are_kept():
  restrictions = dataclasses.replace(OPTIONS.restrictions, operators=("+", "*", "/", "exp", "-"))
  options = dataclasses.replace(OPTIONS, restrictions=restrictions)
  task = make("exp(-0.8*x)*y + 0.4*z*x", [(0.5, 3)] * 3, options=options)
  nodes = ask(task, options=options)
  assert nodes and all(task.rule(node) for node in nodes)


@pytest.mark.parametrize(("num_rows", "box"), [(40, [(1, 2)] * 2), (300, [(1, 2)]), (300, [(1, 2)] * 7)])
def test_few_rows_one_column_and_many_are_not_its_business(num_rows, box):
  rng = np.random.default_rng(0)
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  task = make_task((x, x[:, 0] * rng.uniform(1, 2, num_rows)), None, OPTIONS)
  assert not varying.VaryingCoefficients(OPTIONS).supports(task)


def test_terms_of_the_pool_of_any_size_raise_nothing():
  rng = np.random.default_rng(0)
  x = np.column_stack([rng.uniform(1e-28, 2e-28, (200, 2)), rng.uniform(1, 2, 200)])
  task = make_task((x, 1e168 * x[:, 0] ** 3 * x[:, 1] ** 3 * np.sin(x[:, 2])), ["x", "y", "z"], OPTIONS)
  pool = Pool(task.variance, len(task.fit_rows), DEFAULT.pool)
  pool.insert([Candidate(parser.parse("1e168*x**3*y**3*(z - 0.17*z**3 + 0.01)", "xyz"), 1.0, "library"),
               Candidate(parser.parse("exp(-400*z)*x + 2*x", "xyz"), 2.0, "library")])
  source = varying.VaryingCoefficients(OPTIONS)
  for turn in range(3):
    source.propose([Question(task, pool, None)], turn=turn, num=64, clock=Clock())


def test_terms_are_few_distinct_and_allowed():
  task = make("x + y", [(1, 2)] * 3)
  more = [parser.parse(text, "xyz") for text in ("y", "y*z", "sin(3*y)")]
  known = varying._known_terms(task.fit_rows, (1, 2), more, lambda token: token != "inv", CONFIG)
  assert known.nodes[1:4] == tuple(more) and len(set(known.nodes)) == len(known.nodes) <= CONFIG.max_terms
  assert not any(part.token == "inv" for node in known.nodes for part in expression.walk(node))
  few = dataclasses.replace(CONFIG, max_terms=3)
  assert varying._known_terms(task.fit_rows, (1, 2), more, None, few).nodes == (expression.number(1.0), *more[:2])


@pytest.mark.parametrize("change", [
  "weights", "equal",
  *(pytest.param(change, marks=pytest.mark.slow) for change in ("offset", "integers", "tiny", "huge"))])
def test_odd_tables_raise_nothing(change):
  rng = np.random.default_rng(0)
  x, weights = rng.uniform(1, 3, (200, 3)), np.ones(200)
  y = x[:, 0] * np.sin(x[:, 1]) + x[:, 2]
  if change == "weights":
    weights = rng.uniform(0, 1, 200)
  elif change == "offset":
    y = y + 1e9
  elif change == "integers":
    x = np.round(x)
  elif change == "equal":
    x[:, 2] = x[:, 0]
  else:
    x = x * {"tiny": 1e-30, "huge": 1e30}[change]
  task = make_task((x, y, weights), None, OPTIONS)
  for turn in range(3):
    assert isinstance(ask(task, turn), tuple)
