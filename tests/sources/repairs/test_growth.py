"""Growth: what a column promises at a place of a formula, against least squares; which formulas are grown."""

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import adjoints, expression, programs
from symformer_jax.language.parser import parse
from symformer_jax.sources import tangents
from symformer_jax.sources.repairs import growth
from symformer_jax.sources.repairs.fronts import first_fronts
from symformer_jax.sources.repairs.growth import Growth
from symformer_jax.sources.sums import pairs
from symformer_jax.sources.sums.library import Atoms

# Seeds that are far off are grown as well.
ANY = dataclasses.replace(DEFAULT, growth=dataclasses.replace(DEFAULT.growth, most_left=np.inf))


def task_of(text, bounds, num_rows=100, names=("x", "y")):
  rng = np.random.default_rng(3)
  x = np.column_stack([rng.uniform(*b, num_rows) for b in bounds])
  names = list(names[: len(bounds)])
  return make_task((x, expression.evaluate(parse(text, names), x)), names, SearchOptions()), names


def proposed(task, names, seeds, num=512):
  """Formulas grown from fitted seeds, and their errors after a fit, as shares of the variance."""
  pool = Pool(task.variance, len(task.fit_rows))
  fitted = refine.fit_constants([(task, [parse(seed, names) for seed in seeds])], method="lm", max_steps=100)[0]
  pool.insert(Candidate(node, mse) for node, mse in fitted)
  source = Growth(ANY)
  question = Question(task, pool, source.init(task, jax.random.key(0)))
  [proposal] = source.propose([question], turn=0, num=num, clock=_Clock())
  refitted = refine.fit_constants([(task, proposal.nodes)], method="lm", max_steps=40)[0]
  return proposal, [(node, mse / task.variance) for node, mse in refitted]


class _Clock:
  def measure(self, name):
    return np.errstate()


@pytest.mark.parametrize(("seed", "truth", "bounds"), [
  ("0.7*sin(1.8*x) + 0.1", "0.8*sin(1.9*x) + 0.003*x**2 + 0.2", [(0.0, 8.0)]),  # a term
  ("exp(-0.5*x)", "exp(-0.5*x)*(1 + 0.4*y)", [(0.1, 3.0), (0.2, 2.0)]),  # a factor
  ("x/(1.2 + x)", "x/(1.3 + x + 0.2*y**2)", [(0.2, 4.0), (0.2, 2.0)]),  # inside a fraction
  ("sin(1.1*x)", "sin(1.2*x + 0.2*y)", [(0.1, 4.0), (0.2, 2.0)]),  # inside a wave
])
def test_one_column_more_makes_the_law(seed, truth, bounds):
  task, names = task_of(truth, bounds)
  _, fitted = proposed(task, names, [seed])
  node, error = min(fitted, key=lambda pair: (pair[1] > 1e-22, expression.complexity(pair[0])))
  assert error < 1e-22
  assert expression.complexity(node) < 26


def test_gains_are_those_of_least_squares():
  task, names = task_of("exp(-0.5*x)*(1 + 0.4*y) + sin(x*y)", [(0.1, 3.0), (0.2, 2.0)], num_rows=64)
  rows = task.fit_rows
  atoms = Atoms(rows.x, [0, 1], config=DEFAULT.library)
  order = pairs.layout(atoms.groups)
  laid = growth._laid(atoms.columns, order)
  root = np.sqrt(rows.weights / rows.weights.sum())
  node = parse("0.9*exp(-0.6*x)", names)
  tangent = growth._tangent(node, rows, root, 1, DEFAULT.growth)
  grafts = [(tangent, graft) for graft in tangent.grafts]
  padded = growth._padded(grafts, root, laid.shape[2], DEFAULT.growth.max_directions)
  gains, members, multiples = growth._gains(laid, *padded)
  slopes = [place.adjoint for place in adjoints.places(node, rows.x) if programs.is_constant(place.node)]
  residual = root * (rows.y - expression.evaluate(node, rows.x))
  checked = 0
  for k, (_, graft) in enumerate(grafts):
    for block in np.argsort(-np.asarray(gains[k]))[:20]:
      column = atoms.columns[:, order[block, members[k, block]]]
      base = root[:, None] * np.column_stack([np.ones(64), expression.evaluate(node, rows.x), *slopes])
      more = np.column_stack([base, root * graft.weight * column])
      before, after = (np.sum((residual - a @ np.linalg.lstsq(a, residual, rcond=None)[0]) ** 2) for a in (base, more))
      assert gains[k, block] == pytest.approx(1 - after / before, abs=1e-3)
      if gains[k, block] > 0.01:
        unit = column / np.linalg.norm(column) * graft.weight / np.max(np.abs(graft.weight))
        factors = np.linalg.lstsq(np.column_stack([base, root * unit]), residual, rcond=None)[0]
        assert multiples[k, block] * tangent.size == pytest.approx(factors[-1], rel=0.05)
      checked += 1
  assert checked >= 40


def test_terms_of_a_sum_are_one_place():
  rows = task_of("x + y", [(0.1, 3.0), (0.2, 2.0)])[0].fit_rows
  found = adjoints.places(parse("sin(2*x) + y*x + 3", ["x", "y"]), rows.x)
  grafts = tangents.grafts(found, np.full(len(rows), 1.0))
  added = [graft.path for graft in grafts if not graft.is_product]
  # To the sum as a whole, to the wave's argument, to either factor; not to each term.
  assert () in added and (0,) not in added and len(added) == len(set(added))


@pytest.mark.parametrize(("is_product", "place"), [
  (False, lambda x, f: x + 0.3 * f), (True, lambda x, f: x * (1 + 0.3 * f))])
def test_a_column_is_put_where_it_is_to_go(is_product, place):
  x = np.random.default_rng(0).uniform(1, 2, (9, 2))
  column = SimpleNamespace(node=lambda i: parse("sin(y)", ["x", "y"]), scale=lambda i: 4.0)
  graft = tangents.Graft((0, 0), is_product, np.ones(9))
  found = growth._grafted(parse("exp(x) + y", ["x", "y"]), graft, column, 0, 1.2)
  expected = np.exp(place(x[:, 0], np.sin(x[:, 1]))) + x[:, 1]  # a column's values are counted in its scale
  np.testing.assert_allclose(expression.evaluate(found, x), expected, rtol=1e-12)


def test_no_two_grafts_do_the_same_and_none_is_missing(rng):
  x, root = rng.uniform(1, 2, (30, 2)), rng.uniform(0.1, 2, 30)
  found = adjoints.places(parse("3*sin(2*x)*y + y/x", ["x", "y"]), x)

  def unit(weight):
    return root * weight / np.linalg.norm(root * weight)
  kept = np.array([unit(graft.weight) for graft in tangents.grafts(found, root)])
  alike = np.abs(kept @ kept.T) - np.eye(len(kept))
  assert len(kept) > 5 and alike.max() < 1 - tangents.SAME
  for place in found:
    for weight in (place.adjoint, *([] if place.node.is_number else [place.adjoint * place.values])):
      assert np.abs(kept @ unit(weight)).max() > 1 - 2 * tangents.SAME


def test_fronts_come_one_after_another():
  texts = {"x": 4.0, "sin(x)": 3.0, "cos(x)": 3.5, "x + exp(x)": 5.0, "x*x*x": 2.0, "x*sin(x)": 1.0}
  candidates = [Candidate(parse(text, ["x"]), mse) for text, mse in texts.items()]
  seeds = first_fronts(sorted(candidates, key=lambda c: c.mse), frozenset(), DEFAULT.growth)
  fronts = {text: seeds[parse(text, ["x"])] for text in texts}
  assert fronts["x"] == fronts["sin(x)"] == 1 and fronts["cos(x)"] == 2
  assert fronts["x + exp(x)"] == 2 or fronts["x + exp(x)"] == 3
  again = first_fronts(sorted(candidates, key=lambda c: c.mse), frozenset([parse("sin(x)", ["x"])]), DEFAULT.growth)
  assert parse("sin(x)", ["x"]) not in again and again[parse("cos(x)", ["x"])] == 2


def test_what_has_been_grown_is_not_grown_again():
  task, names = task_of("0.8*sin(1.9*x) + 0.03*x**2", [(0.0, 8.0)])
  pool = Pool(task.variance, len(task.fit_rows))
  pool.insert([Candidate(parse("0.7*sin(1.7*x) + 0.1", names), 0.1)])
  source = Growth(ANY)
  [first] = source.propose([Question(task, pool, source.init(task, jax.random.key(0)))], turn=0, num=8, clock=_Clock())
  assert len(first.state.grown) == 1 and len(first.nodes) == 8
  # Nothing has been gained since: the next turn makes nothing.
  [second] = source.propose([Question(task, pool, first.state)], turn=1, num=8, clock=_Clock())
  assert second.nodes == () and second.state == first.state
  # Something has: what is new is grown.
  pool.insert([Candidate(parse("0.8*sin(1.8*x) + 0.1*x", names), 1e-4)])
  [third] = source.propose([Question(task, pool, second.state)], turn=1, num=8, clock=_Clock())
  assert len(third.state.grown) == 2 and third.nodes


def test_formulas_that_cannot_be_grown_are_left_out():
  task, names = task_of("x**2", [(-1.0, 2.0)])
  rows = task.fit_rows
  root = np.sqrt(rows.weights / rows.weights.sum())
  assert growth._tangent(parse("log(x)", names), rows, root, 1, DEFAULT.growth) is None  # undefined
  many = parse("+".join(f"{c}*x**{c}" for c in np.arange(1.5, 9, 0.5)), names)
  assert growth._tangent(many, rows, root, 1, DEFAULT.growth) is None  # more constants than directions


def test_a_graft_begins_with_the_multiple_that_fits():
  task, names = task_of("2*x + 0.7*sin(3*x)", [(0.0, 5.0)])
  proposal, _ = proposed(task, names, ["2.03*x + 0.013"])
  errors = [np.mean((expression.evaluate(node, task.fit_rows.x) - task.fit_rows.y) ** 2) for node in proposal.nodes]
  assert np.nanmin(errors) < 0.05 * 0.7**2 / 2  # before any fit


@pytest.mark.parametrize(("mse", "num_rows", "is_grown"), [(1e-6, 100, True), (1e-2, 100, False), (1e-6, 9, False)])
def test_noise_and_few_rows_are_no_ground(mse, num_rows, is_grown):
  """What is left may be noise; of nine rows no formula may have two constants."""
  task, names = task_of("0.8*sin(1.9*x) + 0.03*x**2", [(0.0, 8.0)], num_rows=num_rows)
  pool = Pool(task.variance, len(task.fit_rows))
  pool.insert([Candidate(parse("0.7*sin(1.7*x) + 0.1", names), mse * task.variance)])
  source = Growth(DEFAULT)
  question = Question(task, pool, source.init(task, jax.random.key(0)))
  [proposal] = source.propose([question], turn=0, num=8, clock=_Clock())
  assert bool(proposal.nodes) is is_grown
