"""Functions that exact data tell to many digits, and what the sources of tables of one column make of them."""

import dataclasses

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
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import number
from symformer_jax.sources import registry
from symformer_jax.sources.unknowns import exact_factors, exact_models

CONFIG = DEFAULT.exact_factors
OPTIONS = SearchOptions()
NAMES = "xyz"


def make(text, box, *, num_rows=256, noise=0.0):
  rng = np.random.default_rng(3)
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return make_task((x, y + noise * np.std(y) * rng.normal(size=num_rows)), list(NAMES[: len(box)]), OPTIONS)


def models_of(task, config=CONFIG):
  return exact_models.find_models(task.fit_rows, task.columns, config.links, allows=None, config=config)


def shown(model):
  return {(printing.to_text(term, NAMES), column) for term, column in model.structure.parts}


def ask(task):
  source = registry.SOURCES["exact_factors"](None, OPTIONS)
  assert source.supports(task)
  pool, state = Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0))
  nodes = []
  for turn, num in enumerate(source.turns):
    [proposal] = source.propose([Question(task, pool, state)], turn=turn, num=num, clock=Clock())
    nodes += proposal.nodes
    state = proposal.state
    if proposal.is_last:
      break
  return nodes


@pytest.mark.parametrize(("text", "box", "link", "parts"), [
  ("83.1*x**0.5*y**(1 + (1 - 1/x)**0.3)", [(1.2, 2.3), (0.2, 0.3)], "exp", {("1", 0), ("log(y)", 0)}),
  ("x/(x**0.6 - y + (1 + x/2)*(1 + y/70))", [(0.1, 1), (0, 0.9)], "inv", {("1", 0), ("y", 0)}),
  ("1/(sin(y)**2/x + cos(y)**2)", [(0.1, 0.9), (0.1, 1.5)], "inv", {("1", 1), ("1/x", 1)}),
  ("sin(1.3*x) + 0.4*exp(y**2)/(1 + y) - z**1.3", [(0, 3), (0.2, 1), (1, 3)], "y", {("1", 0), ("1", 1), ("1", 2)})])
def test_the_right_structure_predicts_rows_left_out_to_rounding(text, box, link, parts):
  best = models_of(make(text, box))[0]
  assert best.structure.link == link and shown(best) == parts and best.error < 1e-9


@pytest.mark.parametrize("noise", [1e-3, 1e-5])
def test_data_with_errors_tell_no_function_to_many_digits(noise):
  assert not models_of(make("x/(x**0.6 - y + (1 + x/2)*(1 + y/70))", [(0.1, 1), (0, 0.9)], noise=noise))


def test_what_is_no_such_sum_has_no_model():
  assert not models_of(make("sin(3*x*y)*exp(-x)/(1 + x*y**2)", [(0.5, 3), (0.5, 3)]))


def test_the_fewest_polynomials_that_do_are_taken():
  task = make("x**3 + y*exp(2*x)", [(0, 2), (1, 2)])
  [structure] = {m.structure for m in models_of(task) if len(m.structure.parts) == 2}
  few = exact_models.sharpened(task.fit_rows, structure, dataclasses.replace(CONFIG, degrees=(4, 20, 24)))
  assert few.degree == 20 and few.error < 1e-24 < 1e-8 < few.first
  assert exact_models.sharpened(task.fit_rows, structure, dataclasses.replace(CONFIG, degrees=(200,))) is None


def test_functions_are_known_to_many_digits():
  """Against the formula itself; two that are multiples of one another are one."""
  task = make("(2*y + 5)*exp(0.7*x) + x**2.5*y**2", [(0.5, 2), (1, 3)])
  rows, texts = task.fit_rows, ("1", "y", "y**2")
  structure = exact_models.Structure("y", tuple((parser.parse(text, NAMES[:2]), 0) for text in texts))
  functions, constant = exact_models.functions_of(rows, exact_models.sharpened(rows, structure, CONFIG), CONFIG)
  assert len(functions) == 2 and constant == 0
  by_terms = {frozenset(printing.to_text(node, NAMES) for node, _ in f.multiples): f for f in functions}
  power = by_terms[frozenset({"y**2"})]
  assert power.values == pytest.approx(power.places**2.5, rel=1e-9)
  both = by_terms[frozenset({"y", "1"})]
  factors = {printing.to_text(node, NAMES): factor for node, factor in both.multiples}
  assert factors["1"] / factors["y"] == pytest.approx(2.5, rel=1e-9)
  assert both.values * factors["y"] == pytest.approx(2 * np.exp(0.7 * both.places), rel=1e-9)
  assert 0 < power.error < 1e-16


def test_a_constant_beside_terms_is_told():
  task = make("y*exp(0.7*x) + y**2*sin(x) + 4.5", [(0.5, 2), (1, 3)])
  rows = task.fit_rows
  structure = exact_models.Structure("y", tuple((parser.parse(text, NAMES[:2]), 0) for text in ("y", "y**2")))
  functions, constant = exact_models.functions_of(rows, exact_models.sharpened(rows, structure, CONFIG), CONFIG)
  assert len(functions) == 2 and constant == pytest.approx(4.5, rel=1e-9)
  without = Rows(rows.x, rows.y - 4.5, rows.weights)
  assert exact_models.functions_of(without, exact_models.sharpened(without, structure, CONFIG), CONFIG)[1] == 0


@pytest.mark.parametrize(("text", "box"), [
  pytest.param("83.1*x**0.5*y**(1 + (1 - 1/x)**0.3)", [(1.2, 2.3), (0.2, 0.6)], marks=pytest.mark.slow),
  ("x/(x**0.6 - y + (1 + x/2)*(1 + y/70))", [(0.1, 1), (0, 0.9)]),
  ("1/(sin(y)**2/x + cos(y)**2)", [(0.1, 0.9), (0.1, 1.5)]),
  ("exp(-exp(0.9*x) + 0.9*x*(y + 1) - 2)", [(-2, 2), (-1, 1)])])
def test_laws_are_found(text, box):
  task = make(text, box)
  fits = refine.fit_constants([(task, ask(task))], method="lm", max_steps=150)[0]
  assert min(mse for _, mse in fits) < 1e-20 * task.variance


def test_which_tables_it_is_asked_of():
  source = registry.SOURCES["exact_factors"](None, OPTIONS)
  assert source.supports(make("x*y", [(1, 2)] * 2, num_rows=64))
  assert not source.supports(make("x*y", [(1, 2)] * 2, num_rows=63)) and not source.supports(make("x", [(1, 2)]))


@pytest.mark.parametrize("shape", [(32, 8), (64, 4), (16, 16)])
@pytest.mark.parametrize("is_fast", [False, True])
def test_rows_of_a_grid_are_left_out_by_draw(shape, is_fast):
  """Every fourth row would be all of one level of a column."""
  x, z = np.meshgrid(np.linspace(0.2, 3, shape[0]), np.linspace(0.4, 2, shape[1]), indexing="ij")
  grid = np.stack([(x.T if is_fast else x).ravel(), (z.T if is_fast else z).ravel()], axis=1)
  rows = Rows(grid, np.sin(1.7 * grid[:, 0]) + grid[:, 0] * grid[:, 1], np.ones(len(grid)))
  structure = exact_models.Structure("y", ((exact_models.ONE, 0), (parser.parse("y", NAMES[:2]), 0)))
  fitted = exact_models.sharpened(rows, structure, CONFIG)
  assert fitted is not None and fitted.error < 1e-20


def test_what_the_fewest_polynomials_meet_is_a_model():
  assert any(shown(model) == {("1", 0), ("y", 0)} for model in models_of(make("x**3*y + x**2", [(1, 2), (1, 2)])))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("apart", "is_multiple"), [(1e-10, True), (1e-5, False)])
def test_whether_functions_are_multiples_is_a_question_of_shares(size, apart, is_multiple):
  places = np.linspace(0, 1, 9)
  known = exact_models.Function(0, ((exact_models.ONE, 1.0),), places, np.exp(places), 0.0)
  own = exact_models.Function(0, known.multiples, places, size * (np.exp(places) + apart * np.sin(places)), 0.0)
  factor = exact_models._multiple(own, known, CONFIG)
  assert factor == (pytest.approx(size) if is_multiple else None)


@pytest.mark.parametrize("falling", [0.0, 2.0])
def test_the_error_of_a_function_is_that_of_its_values_whatever_rows_count(falling):
  """Of 200 draws of small errors the told mean square error is what the values err by, within a factor."""
  told, true = [], []
  for seed in range(40):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 2, (256, 2))
    y = np.exp(x[:, 0]) * x[:, 1] + np.sin(x[:, 0])
    weights = np.exp(rng.normal(size=256) - falling * y)
    y = y + 1e-6 * rng.normal(size=256) / np.sqrt(weights)
    rows = Rows(x, y, weights / weights.max())
    structure = exact_models.Structure("y", ((exact_models.ONE, 0), (parser.parse("y", NAMES[:2]), 0)))
    fitted = exact_models.sharpened(rows, structure, dataclasses.replace(CONFIG, degrees=(8,)))
    for function in exact_models.functions_of(rows, fitted, CONFIG)[0]:
      is_factor = len(expression.columns_of(function.multiples[0][0])) > 0
      exact = np.exp(function.places) if is_factor else np.sin(function.places)
      told.append(function.error)
      true.append(np.mean((function.values - exact) ** 2))
  assert 0.3 < np.mean(told) / np.mean(true) < 3


def test_a_term_that_is_nothing_on_the_rows_that_are_kept_is_no_model():
  task = make("x**3*y + x**2", [(1, 2), (1, 2)])
  left_out = np.random.default_rng(0).permutation(256) % CONFIG.left_out_of == 0
  x = np.where([False, True] & ~left_out[:, None], 0.0, task.fit_rows.x)
  structure = exact_models.Structure("y", ((exact_models.ONE, 0), (parser.parse("y", NAMES[:2]), 0)))
  assert exact_models.sharpened(Rows(x, task.fit_rows.y, task.fit_rows.weights), structure, CONFIG) is None


def test_each_turn_asks_of_one_model(monkeypatch):
  source = registry.SOURCES["exact_factors"](None, OPTIONS)
  asked = []
  monkeypatch.setattr(type(source), "_models", lambda self, task: ["first", "second"])
  monkeypatch.setattr(type(source), "_formulas", lambda self, task, model, sources, clock: asked.append(
    (model, len(sources))) or [])
  task, state = make("x*y", [(1, 2)] * 2), None
  ended = []
  for turn in range(3):
    [proposal] = source.propose([Question(task, Pool(task.variance, 256), state)], turn=turn, num=9, clock=Clock())
    state = proposal.state
    ended.append(proposal.is_last)
  assert asked == [("first", len(CONFIG.early_sources)), ("first", len(CONFIG.sources)),
                   ("second", len(CONFIG.sources))]
  assert ended == [False, False, True]


@pytest.mark.parametrize("size", [1e-3, 1e3, -1e3])
def test_a_function_that_varies_within_its_errors_is_a_number_of_any_size(size, monkeypatch):
  monkeypatch.setattr(exact_factors.asked_tables, "table_of", lambda *given: None)
  source, places = registry.SOURCES["exact_factors"](None, OPTIONS), np.arange(16.0)
  within = np.sqrt(CONFIG.times_error * CONFIG.least_error) * np.where(places % 2, 1, -1)
  for share, expected in ((0.5, [pytest.approx(size)]), (2.0, [])):
    function = exact_models.Function(0, ((exact_models.ONE, 1.0),), places, size * (1 + share * within), 0.0)
    assert [node.value for _, node in source._forms(function, None, (), Clock())] == expected


def test_terms_that_are_multiples_share_a_function_also_where_one_row_counts_by_far_the_most():
  """The shortest solution: what is singular is so beside the largest direction; the second is as small as weights."""
  x = np.linspace(-1, 1, 30)
  rows = Rows(x[:, None], 3 + x, np.where(x == 1, 1.0, 1e-12))
  structure = exact_models.Structure("y", ((exact_models.ONE, 0), (number(2.0), 0)))
  fitted = exact_models.Fitted(structure, {0: exact_models.Scale(-1.0, 1.0, False)}, 1, 1e-9, 1e-9)
  [function], _ = exact_models.functions_of(rows, fitted, CONFIG)
  assert dict(function.multiples) == pytest.approx({exact_models.ONE: 1.0, number(2.0): 0.5}, rel=1e-6)
