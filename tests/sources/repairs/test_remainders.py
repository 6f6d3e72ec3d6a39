"""Remainders: what near formulas leave, as sums of plain columns; against least squares over all sets."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, RemaindersConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, printing, programs
from symformer_jax.language.parser import parse
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import tangents
from symformer_jax.sources.repairs import remainders
from symformer_jax.sources.repairs.remainders import Remainders, State

NAMES = ["x", "y"]
# Seeds that are far off are looked at as well.
ANY = dataclasses.replace(DEFAULT, remainders=RemaindersConfig(near=np.inf))


def task_of(text, bounds, num_rows=120, noise=0.0, **options):
  rng = np.random.default_rng(5)
  x = np.column_stack([rng.uniform(*bound, num_rows) for bound in bounds])
  y = expression.evaluate(parse(text, NAMES), x)
  errors = noise * np.std(y) * rng.normal(size=num_rows)
  return make_task((x, y + errors), NAMES[: len(bounds)], SearchOptions(**options))


def pool_of(task, *seeds):
  fitted = refine.fit_constants([(task, [parse(seed, NAMES) for seed in seeds])], method="lm", max_steps=100)[0]
  pool = Pool(task.variance, len(task.fit_rows))
  pool.insert(Candidate(node, mse) for node, mse in fitted)
  return pool


def ask(task, pool, state=None, config=ANY, num=32):
  [proposal] = Remainders(config).propose([Question(task, pool, state or State())], turn=0, num=num, clock=Clock())
  return proposal


def errors_of(task, nodes):
  """After a fit to the end, as shares of the variance."""
  fitted = refine.fit_constants([(task, nodes)], method="lm", max_steps=150)[0]
  return [mse / task.variance for _, mse in fitted]


@pytest.mark.parametrize(("seed", "truth", "bounds"), [
  ("y**x*sin(y)", "y**x*sin(y) - 3", [(-5, 5), (0.01, 5)]),  # a constant
  ("2.5*x**9", "3.8*x**9 - 3.8*x - 3.8*cos(y)", [(0.1, 5), (-5, 5)]),  # two terms, a millionth of a millionth of it
  ("2.5*exp(3.1*x)", "2.4*exp(3.1*x) + 0.7*x*y - 1.2*y**2 + 0.3/x", [(0.1, 5), (-5, 5)]),  # three
  ("exp(1.1*x**2)", "exp(1.2*x**2 + 0.01*sin(y))", [(1, 3), (0, 6)]),  # inside
  ("1.4*x**7", "1.4*x**7*(1 + 0.001*y)", [(1, 5), (0.5, 2)]),  # a factor
])
def test_what_is_dominated_is_found(seed, truth, bounds):
  task = task_of(truth, bounds)
  pool = pool_of(task, seed)
  assert pool.best is not None and pool.best.mse > 1e-20 * task.variance
  proposal = ask(task, pool)
  assert min(errors_of(task, proposal.nodes)) < 1e-22
  assert min(errors_of(task, proposal.nodes[:8])) < 1e-22  # among the first


def test_terms_begin_with_the_factors_that_fit():
  task = task_of("2.5*x**5 - 3.5*y + 700*sin(x) + 0.2", [(0.1, 5), (-5, 5)])
  first = ask(task, pool_of(task, "2.6*x**5")).nodes[0]
  for factor in (-3.5, 700):
    assert min(abs(value / factor - 1) for value in programs.fitted_values(first)) < 1e-6


def test_sets_are_those_of_least_squares(rng):
  units = rng.normal(size=(40, 12))
  units /= np.linalg.norm(units, axis=0)
  target = units[:, [2, 5, 9]] @ [1.0, 0.6, -0.4] + 0.05 * rng.normal(size=40)
  target *= 0.9 / np.linalg.norm(target)

  def left(some):
    return np.linalg.lstsq(units[:, some], target, rcond=None)[1][0]

  found = remainders._sets(units, target, RemaindersConfig(num_kept=5, num_pairs=66))
  for some, share in found:
    assert share == pytest.approx(left(list(some)) if some else 0.81, rel=1e-9)
  for size in (1, 2, 3):  # with all pairs looked at the best triple is the best of all
    least = min((left(list(some)), some) for some in itertools.combinations(range(12), size))
    assert [some for some, _ in found if len(some) == size][0] == least[1]
    assert len([some for some, _ in found if len(some) == size]) == 5
  assert (2, 5, 9) in dict(found)


def test_columns_that_others_are_made_of_are_no_further_ones(rng):
  units = rng.normal(size=(40, 3))
  units[:, 2] = units[:, 0] + 1e-9 * rng.normal(size=40)
  units /= np.linalg.norm(units, axis=0)
  found = dict(remainders._sets(units, units[:, 1] + units[:, 0], RemaindersConfig()))
  assert (0, 2) not in found
  assert all(np.isfinite(share) and share > 0 for share in found.values())


def test_what_is_fitted_first_is_the_shortest_description():
  """Half N times the logarithm of what least squares leave of y, and nats for the nodes of formula and terms."""
  task = task_of("2.5*x**5 + 700*sin(x) + y", [(0.1, 5), (-5, 5)])
  rows, seed, config = task.fit_rows, parse("2.6*x**5", NAMES), RemaindersConfig()
  root = np.full(len(rows), len(rows) ** -0.5)
  plain = remainders._plain(task, rows, root, DEFAULT)
  found = [each for each in remainders._completed(seed, 1, plain, rows, root, config) if each.graft.path == ()]
  singles = [each for each in found if len(each.terms) == 1 and not each.graft.is_product]
  assert singles
  for each in singles:
    [(column, _)] = each.terms
    design = np.stack([rows.x[:, 0] ** 5, expression.evaluate(column, rows.x), np.ones(len(rows))], axis=1)
    scaled = design / np.linalg.norm(design, axis=0)
    left = np.linalg.lstsq(scaled, rows.y, rcond=None)[1][0] / len(rows)
    nodes = expression.complexity(seed) + expression.complexity(column) + 3
    assert each.nats == pytest.approx(0.5 * len(rows) * np.log(left) + 2 * nodes, rel=1e-4)


@pytest.mark.parametrize(("share", "is_new"), [(1.5e-6, True), (0.5e-6, False)])
def test_a_column_that_the_constant_nearly_makes_is_none(share, is_new):
  root = np.full(4, 0.5)
  beside, column = np.array([0.5, -0.5, 0.5, -0.5]), parse("x", NAMES)
  units = np.sqrt(1 - share) * root + np.sqrt(share) * beside
  plain = remainders.Plain((column,), np.ones(1), units[:, None])
  graft = tangents.Graft((), False, np.ones(4))
  found = list(remainders._at(graft, np.zeros((0, 4)), beside, plain, root, RemaindersConfig()))
  assert [terms for _, terms in found] == ([((column, pytest.approx(share**-0.5, rel=1e-6)),)] if is_new else [])


def test_a_column_is_one_beside_what_a_place_makes_much_larger():
  weight, part = np.repeat([1.0, 1e4], 4), np.array([0.5, -0.5, 0.5, -0.5])
  units = np.zeros((8, 2))
  units[:4, 0], units[4:, 1] = part, part
  plain = remainders.Plain((parse("x", NAMES), parse("y", NAMES)), np.ones(2), units)
  found = remainders._at(tangents.Graft((), False, weight), np.zeros((0, 8)), units[:, 0], plain, np.full(8, 8**-0.5),
                         RemaindersConfig())
  assert ((parse("x", NAMES), pytest.approx(1)),) in [terms for _, terms in found]


def test_formulas_as_near_as_is_asked_for_are_looked_at():
  task = task_of("x**5 + y", [(0, 3), (0, 1)])
  for share, is_asked in ((1.0, True), (1.001, False)):
    pool = Pool(task.variance, len(task.fit_rows))
    pool.insert([Candidate(parse("x**5", NAMES), share * DEFAULT.remainders.near * task.variance)])
    assert bool(ask(task, pool, config=DEFAULT).state.asked) is is_asked


def test_what_leaves_nothing_has_no_remainder():
  task = task_of("2.5*x", [(0.1, 5), (-5, 5)])
  rows = task.fit_rows
  root = np.full(len(rows), len(rows) ** -0.5)
  plain = remainders._plain(task, rows, root, DEFAULT)
  with np.errstate(all="ignore"):
    assert not list(remainders._completed(parse("2.5*x", NAMES), 1, plain, rows, root, RemaindersConfig()))


def test_of_noise_nothing_is_made():
  task = task_of("2*x + y", [(0, 1), (0, 1)], num_rows=256, noise=0.1)
  proposal = ask(task, pool_of(task, "2.1*x + 0.9*y + 0.1"))
  assert proposal.nodes == () and proposal.state.asked


def test_formulas_are_looked_at_once():
  task = task_of("x**5 + y", [(0, 3), (0, 1)])
  pool = pool_of(task, "1.1*x**5")
  first = ask(task, pool)
  assert first.nodes and ask(task, pool, first.state).nodes == ()
  pool.insert([Candidate(parse("x**5 + 0.01*x", NAMES), 0.3)])
  second = ask(task, pool, first.state)
  assert second.nodes and second.state.asked > first.state.asked
  assert second.state.plain is first.state.plain


def test_where_the_data_are_met_nothing_is_made():
  task = task_of("1.5*x + y", [(0, 3), (0, 1)])
  pool = pool_of(task, "1.4*x + y", "x**3")
  assert pool.exact() is not None and ask(task, pool).nodes == ()


def test_columns_are_plain_short_and_different():
  task = task_of("x + y", [(0.1, 3), (-1, 1)])
  rows = task.fit_rows
  config = dataclasses.replace(DEFAULT, remainders=RemaindersConfig(max_columns=60))
  plain = remainders._plain(task, rows, np.full(len(rows), len(rows) ** -0.5), config)
  assert len(plain.nodes) == 60 == len(set(plain.nodes))
  lengths = [expression.complexity(node) for node in plain.nodes]
  assert max(lengths) <= 5 and lengths == sorted(lengths)
  assert {"x", "y", "exp(x)", "sin(y)", "x*y", "1/x", "x**2"} <= {expression_text(node) for node in plain.nodes}
  np.testing.assert_allclose(np.linalg.norm(plain.units, axis=0), 1)
  values = expression.evaluate(plain.nodes[7], rows.x)
  np.testing.assert_allclose(plain.units[:, 7] * plain.lengths[7] * len(rows) ** 0.5, values)
  numbers = [part.value for node in plain.nodes for part in expression.walk(node) if part.is_number]
  assert numbers and all(float(2 * value).is_integer() for value in numbers)


def expression_text(node):
  return printing.to_text(node, NAMES)


def test_rules_and_few_rows_bound_what_is_made():
  truth, bounds = "x**5 + 2*y + 0.1*sin(y)", [(1, 3), (0, 6)]
  free = ask(task := task_of(truth, bounds), pool_of(task, "1.1*x**5")).nodes
  task = task_of(truth, bounds, restrictions=Restrictions(forbidden=("sin", "cos")))
  made = ask(task, pool_of(task, "1.1*x**5")).nodes
  waves = [{part.token for part in expression.walk(node)} & {"sin", "cos"} for node in (*free, *made)]
  assert made and any(waves[: len(free)]) and not any(waves[len(free) :])
  few = task_of(truth, bounds, num_rows=20)
  most = len(few.fit_rows) // DEFAULT.terms.points_per_part
  counts = [len(programs.fitted_values(node)) for node in ask(few, pool_of(few, "1.1*x**5")).nodes]
  assert counts and max(counts) <= most < max(len(programs.fitted_values(node)) for node in free)


def test_odd_formulas_are_left_out():
  task = task_of("x**5 + y", [(1, 3), (0, 6)])
  pool = Pool(task.variance, len(task.fit_rows))
  assert ask(task, pool).nodes == ()
  pool.insert([Candidate(parse("log(x - 2)", NAMES), 1.0)])  # undefined on rows
  long = "+".join(f"{i + 0.5}*sin({i}.5*x)" for i in range(1, 8))
  pool.insert([Candidate(parse(long, NAMES), 0.5)])
  longer = dataclasses.replace(DEFAULT, remainders=RemaindersConfig(max_nodes=99, near=np.inf))
  assert ask(task, pool, config=longer).nodes == ()


def test_needs_sums():
  task = task_of("x + y", [(0, 1), (0, 1)], restrictions=Restrictions(forbidden=("+",)))
  assert not Remainders().supports(task)
  assert Remainders().supports(task_of("x + y", [(0, 1), (0, 1)]))
