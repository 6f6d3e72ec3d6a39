"""Functions of y with a constant of their own that are fractions: an angle tells the constant, the rest is linear."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, LinkedFractionsConfig
from symformer_jax.engine.config.names import LINK_FAMILIES
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.fractions import linked_fractions
from symformer_jax.sources.fractions.linked_fractions import FAMILIES, LinkedFractions, _Equation

CONFIG = DEFAULT.linked_fractions
NAMES = ("x", "y", "z", "w")


def task_of(text, box, options=None, *, num_rows=200, noise=0.0):
  rng = np.random.default_rng(2)
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  y = expression.evaluate(parser.parse(text, NAMES), x)
  y = y + noise * np.std(y) * rng.normal(size=num_rows)
  return make_task((x, y), NAMES[: len(box)], options or SearchOptions())


def ask(task):
  source = LinkedFractions()
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=0, num=source.turns[0], clock=Clock())[0].nodes


@pytest.mark.parametrize(("text", "box"), [
  ("(3.1 + 0.2*x*y)**0.37", [(1, 9)] * 2), ("2.7*((x + 2)/(y + 0.3*z))**(-1.63)", [(0.5, 4)] * 3),
  ("-0.5*log((1 - 2*x - y)**2*(1 - 2*y))", [(0.01, 0.2)] * 2), ("2.3*log((1 + 3*x)/(x + 0.4)) - 7", [(0.1, 6)]),
  ("7.64*arccos((x + y)/z)", [(1, 2), (1, 2), (5, 9)]), ("3.2*arcsin(x*y/(z + 2))", [(-1, 1), (1, 2), (3, 4)]),
  ("0.31*arctan(x*y/(z - w))", [(-2, 2), (1, 2), (2, 4), (0.1, 1)]),
  ("7.64*arccos(-tan(x)*tan(y))", [(-1.1, 1.1), (-0.4, 0.4)]),
  ("6371*arccos(sin(x)*sin(y) + cos(x)*cos(y)*cos(z))", [(-1.2, 1.2), (-1.2, 1.2), (0.05, 2.8)])])
def test_laws_are_found(text, box):
  task = task_of(text, box)
  nodes = ask(task)
  fitted = refine.fit_constants([(task, nodes)], method="lm", max_steps=50)[0]
  assert min(mse for _, mse in fitted) < 1e-20 * task.variance


def test_rows_that_differ_in_other_columns_alone_are_one(rng):
  x = np.column_stack([np.tile(np.linspace(0.5, 30, 12), 10), rng.uniform(0, 1, 120)])
  rows, few = Rows(x, np.ones(120), np.ones(120)), Rows(x[:12], np.ones(12), np.ones(12))
  sizes = [[each.above.shape[1] + each.below.shape[1]
            for _, each in linked_fractions._equations(some, (0,), Rule(2), CONFIG)] for some in (rows, few)]
  assert sizes[0] == sizes[1] and max(sizes[0]) * CONFIG.rows_per_term <= 12


def test_waves_stand_in_the_place_of_angles_alone():
  """Of two columns one of which is none, and of a rule without waves."""
  x = np.random.default_rng(0).uniform(0, 1, (200, 2)) * (1, 1e4)
  rows = Rows(x, np.ones(200), np.ones(200))
  found = [view for view, _ in linked_fractions._views(rows, (0, 1), Rule(2), CONFIG)]
  assert [[expression.to_tokens(part.node) for part in view] for view in found] == [
    [["x0"], ["x1"]], [["sin", "x0"], ["cos", "x0"], ["x1"]]]
  options = SearchOptions(restrictions=Restrictions(operators=("+", "*", "/", "acos", "sin")))
  task = task_of("x*y", [(0, 1)] * 2, options)
  assert len(list(linked_fractions._views(rows, (0, 1), task.rule, CONFIG))) == 1
  of_none = Rows(x * 1e4, rows.y, rows.weights)
  assert len(list(linked_fractions._views(of_none, (0, 1), Rule(2), CONFIG))) == 1


@pytest.mark.parametrize(("text", "box", "noise"), [
  ("x**0.3 + 2*exp(0.3*y)*x", [(1, 6)] * 2, 0.0), ("(3.1 + 0.2*x*y)**0.37", [(1, 9)] * 2, 1e-6)])
def test_what_is_none_gives_nothing(text, box, noise):
  assert ask(task_of(text, box, noise=noise)) == ()


def test_a_rounded_target_gives_nothing():
  x = np.random.default_rng(0).uniform(1, 9, (200, 2))
  y = np.round((3.1 + 0.2 * x[:, 0] * x[:, 1]) ** 0.37, 3)
  assert ask(make_task((x, y), ("x", "y"), SearchOptions())) == ()


def test_what_has_no_such_function_is_not_looked_at(monkeypatch, rng):
  def fail(*given):
    raise ArithmeticError

  monkeypatch.setattr(linked_fractions, "_equations", fail)
  x, rule = rng.uniform(1, 9, (60, 2)), task_of("x*y", [(1, 9)] * 2).rule
  y = (3.1 + 0.2 * x[:, 0] * x[:, 1]) ** 0.37
  for columns, target in ((np.ones((60, 2)), y), (x, np.full(60, np.pi)), (x, np.round(y, 3))):
    assert linked_fractions.fractions_of(Rows(columns, target, np.ones(60)), (0, 1), rule) == []
  with pytest.raises(ArithmeticError):
    linked_fractions.fractions_of(Rows(x, y, np.ones(60)), (0, 1), rule)


def test_terms_that_are_not_needed_do_not_blur_the_constant():
  """Ten monomials on each side make up for a wrong constant in the sixth digit; three do not."""
  task = task_of("3.82*arccos(1 - 2*((1 + x)**2 - y**2)/z**2)", [(0.05, 0.3), (0.1, 0.8), (4, 12)], num_rows=300)
  rows = task.fit_rows.sample(CONFIG.num_rows, seed=0)
  equation = next(each for _, each in linked_fractions._equations(rows, (0, 1, 2), task.rule, CONFIG)
                  if each.above.shape[1] == each.below.shape[1] == 10)
  place = next(place for place in equation.places(FAMILIES["cosines"]) if place.low < 1 / 3.82 < place.high)
  assert equation.best(place) == pytest.approx(1 / 3.82, rel=1e-8)
  assert equation._needed(FAMILIES["cosines"], 1 / 3.82).below.shape[1] == 1


@pytest.mark.parametrize("name", LINK_FAMILIES)
def test_a_function_and_what_undoes_it(name, rng):
  family, y = FAMILIES[name], rng.uniform(0.3, 4, 30)
  constants = family.constants(y, CONFIG)
  assert len(constants) == CONFIG.num_constants and np.all(np.diff(constants) > 0)
  for constant in constants[[0, 7, -1]].tolist():
    values = family.of(np.array([constant]), y)[0]
    back = expression.evaluate(family.undo(variable(0), constant, float(np.max(y))), values[:, None])
    np.testing.assert_allclose(back, y, rtol=1e-5)


def test_of_which_targets_there_are_functions(rng):
  signed, narrow = rng.uniform(-1, 2, 30), rng.uniform(1, 1.05, 30)
  assert FAMILIES["powers"].constants(signed, CONFIG) is None is FAMILIES["powers"].constants(narrow, CONFIG)
  assert FAMILIES["cosines"].constants(signed, CONFIG) is None
  assert FAMILIES["sines"].constants(signed, CONFIG)[-1] * 2 == pytest.approx(np.pi / 2, rel=0.1)


def test_the_share_is_that_of_the_angle_between_spaces(rng):
  """Against SciPy's angles between subspaces."""
  import scipy.linalg

  y, above, below = rng.uniform(1, 2, 40), rng.normal(size=(40, 4)), rng.normal(size=(40, 3))
  equation = _Equation(y, above, below, CONFIG)
  shares = equation.shares(FAMILIES["powers"], np.array([0.5, 2.0]))
  for exponent, share in zip((0.5, 2.0), shares, strict=True):
    angles = scipy.linalg.subspace_angles(above, (y[:, None] ** exponent) * below)
    assert share == pytest.approx(np.sin(angles.min()) ** 2, rel=1e-9)


def test_no_formula_has_an_operator_that_is_forbidden():
  for without, families in ((("pow",), 4), (("ln", "acos", "asin", "atan"), 1)):
    allowed = tuple(each for each in ("+", "*", "/", "pow", "ln", "acos", "asin", "atan") if each not in without)
    task = task_of("(3.1 + 0.2*x*y)**0.37", [(1, 9)] * 2, SearchOptions(restrictions=Restrictions(operators=allowed)))
    nodes = ask(task)
    assert all(map(task.rule, nodes)) and bool(nodes) is (families == 1)


@pytest.mark.parametrize("y", [np.r_[np.full(59, 2.0), 2 + 1e-15], np.r_[np.ones(59), 1e59],
                               np.linspace(-1e-59, 1e-59, 60), np.r_[np.zeros(30), np.ones(30)]])
def test_odd_targets_are_no_error(y, rng):
  x = rng.uniform(0, 1, (60, 2))
  x[:, 1] = np.round(x[:, 1])
  nodes = ask(make_task((x, y), ("x", "y"), SearchOptions()))
  assert all(np.isfinite(expression.evaluate(node, x)).all() for node in nodes)


@pytest.mark.parametrize("wrong", [{"families": ("cubes",)}, {"num_rows": 0}, {"num_constants": 0}, {"num_first": -1}])
def test_a_config_that_cannot_be_is_refused(wrong):
  with pytest.raises(ValueError, match=next(iter(wrong))):
    LinkedFractionsConfig(**wrong)
  assert dataclasses.replace(CONFIG, families=("powers",)).families == ("powers",)
