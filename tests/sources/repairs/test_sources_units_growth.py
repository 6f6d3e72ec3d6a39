"""The steps of growth by themselves, and guesses whose constants have names."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, GuessesConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.language import adjoints, expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import guesses, tangents
from symformer_jax.sources.repairs import growth
from symformer_jax.sources.repairs.fronts import first_fronts
from symformer_jax.sources.sums import pairs, terms

NAMES = ("x", "z")


def parse(text):
  return parser.parse(text, NAMES)


def config_of(**changes):
  return dataclasses.replace(DEFAULT.growth, **changes)


@pytest.fixture
def rows(rng):
  x = rng.uniform(0.5, 2, (30, 2))
  return Rows(x, np.exp(-x[:, 0]) + 0.3 * x[:, 1] + 0.1 * rng.normal(size=30), rng.uniform(0.5, 2, 30))


def root_of(rows):
  return np.sqrt(rows.weights / rows.weights.sum())


# --- which formulas --------------------------------------------------------------------------------------------------


def seeds_of(errors, grown=(), **changes):
  candidates = sorted((Candidate(parse(text), mse) for text, mse in errors.items()), key=lambda c: c.mse)
  found = first_fronts(candidates, frozenset(map(parse, grown)), config_of(**changes))
  texts = {parse(text): text for text in errors}
  return {texts[node]: front for node, front in found.items()}


ERRORS = {"x": 4.0, "sin(x)": 3.0, "cos(x)": 3.0, "exp(x)": 3.5, "x*z": 3.0, "sin(x)*z": 1.0, "x + sin(z)": 2.0}


def test_formulas_that_no_shorter_one_beats_are_grown_first():
  """Equal errors beat as well: of two formulas of one length and error the first is of an earlier front."""
  assert seeds_of(ERRORS) == {"x": 1, "sin(x)": 1, "sin(x)*z": 1, "cos(x)": 2, "x + sin(z)": 2, "exp(x)": 3, "x*z": 3}
  assert list(seeds_of(ERRORS)) == ["x", "sin(x)", "sin(x)*z", "cos(x)", "x + sin(z)", "exp(x)", "x*z"]
  assert set(seeds_of(ERRORS, num_fronts=2)) == {"x", "sin(x)", "sin(x)*z", "cos(x)", "x + sin(z)"}
  assert list(seeds_of(ERRORS, num_seeds=3)) == ["x", "sin(x)", "sin(x)*z"]
  # What has been grown beats others all the same.
  assert list(seeds_of(ERRORS, grown=["sin(x)"], num_fronts=2)) == ["x", "sin(x)*z", "cos(x)", "x + sin(z)"]


def test_of_formulas_that_differ_in_constants_the_best_is_grown_and_of_long_ones_none():
  assert seeds_of({"1.5*x": 2.0, "2.5*x": 1.0, "x": 3.0}) == {"x": 1, "2.5*x": 1}
  for most, expected in ((3, {"x", "1.5*x"}), (4, {"x", "1.5*x", "sin(1.5*x)"})):
    assert set(seeds_of({"x": 3.0, "1.5*x": 2.0, "sin(1.5*x)": 1.0}, max_nodes=most)) == expected


# --- where a column may go -------------------------------------------------------------------------------------------


def test_directions_are_orthonormal_and_what_is_nearly_none_is_left_out(rng):
  a, b = rng.normal(size=(2, 20))
  a /= np.linalg.norm(a)
  b -= a * (a @ b)
  b /= np.linalg.norm(b)
  for (share, count), size in itertools.product(((0.8e-9, 1), (1.6e-9, 2)), (1e-3, 1e3)):  # in any unit
    basis = tangents.orthonormal([3 * a, size * (a + share * b), 0 * a, np.full(20, np.nan), np.full(20, np.inf)])
    assert len(basis) == count
    np.testing.assert_allclose(basis @ basis.T, np.eye(count), atol=1e-6)
  assert len(tangents.orthonormal([np.array([1.0, 0]), np.array([1.0, 1e-9])])) == 1  # what is just the least as well
  near = [a + 1e-7 * k * each for k, each in enumerate(rng.normal(size=(4, 20)))]
  basis = tangents.orthonormal(near)  # rounding is taken away twice
  np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)
  assert len(basis) == 4


def test_a_tangent_is_what_constants_a_factor_and_a_summand_can_do(rows):
  node, root = parse("2.5*exp(-1.5*x)"), root_of(rows)
  tangent = growth._tangent(node, rows, root, 1, config_of(max_directions=4))
  values = expression.evaluate(node, rows.x)
  design = root[:, None] * np.column_stack([np.ones(30), values, rows.x[:, 0] * values])
  assert len(tangent.basis) == 3  # the factor moves it as the first of its constants does
  np.testing.assert_allclose(tangent.basis.T @ (tangent.basis @ design), design, atol=1e-9)
  rest = root * (rows.y - values)
  rest = rest - design @ np.linalg.lstsq(design, rest)[0]
  assert tangent.size == pytest.approx(np.linalg.norm(rest)) and tangent.node is node
  np.testing.assert_allclose(tangent.residual, rest / np.linalg.norm(rest), atol=1e-9)
  assert growth._tangent(node, rows, root, 1, config_of(max_directions=3)) is None
  assert growth._tangent(parse("log(x - 1)"), rows, root, 1, config_of()) is None
  with np.errstate(all="raise"):
    exact = Rows(np.zeros((5, 2)), np.zeros(5), np.ones(5))
    assert growth._tangent(parse("x"), exact, root_of(exact), 1, config_of()) is None  # nothing is left


@pytest.mark.parametrize(("front", "num"), [(1, 7), (2, 3), (3, 2), (7, 1), (8, 1)])
def test_fewer_places_of_formulas_of_later_fronts_the_outer_ones_first(front, num, rows):
  node = parse("2.5*exp(-1.5*x)/(z + 3.5*x) + sin(x)")
  every = growth._tangent(node, rows, root_of(rows), 1, config_of(num_places=99)).grafts
  found = growth._tangent(node, rows, root_of(rows), front, config_of(num_places=7)).grafts
  assert len(every) > 7 and [(graft.path, graft.is_product) for graft in found] == [
    (graft.path, graft.is_product) for graft in every[:num]]


def grafts_at(weights, root=None, nodes=None):
  count = len(weights)
  places = [adjoints.Place((i,), parse("x") if nodes is None else nodes[i], np.ones(len(weights[0])), np.array(w))
            for i, w in enumerate(weights)]
  return [(graft.path[0], graft.is_product) for graft in tangents.grafts(
    places, np.ones(len(weights[0])) if root is None else root)], count


def test_places_where_a_column_does_the_same_are_one():
  for angle, is_other in ((3.5e-5, False), (5e-5, True)):  # 1 - cos is half the square: 6e-10, 1.25e-9
    found, _ = grafts_at([[1.0, 0], [-np.cos(angle), np.sin(angle)]])
    assert ((1, False) in found) is is_other and found[0] == (0, False)
  found, _ = grafts_at([[np.nan, 1], [0.0, 0], [1, np.inf], [1, 2]])
  assert found == [(3, False)]
  places = [adjoints.Place((0,), expression.number(2.0), np.array([2.0, 3]), np.array([1.0, 1]))]
  assert [graft.is_product for graft in tangents.grafts(places, np.ones(2))] == [False]  # a number has its own factor
  places = [places[0]._replace(node=parse("x"))]
  found = tangents.grafts(places, np.ones(2))
  assert [graft.is_product for graft in found] == [False, True]
  assert found[0].weight.tolist() == [1, 1] and found[1].weight.tolist() == [2, 3]
  assert len(tangents.grafts(places, np.array([1.0, 0]))) == 1  # in the row that counts they are one


# --- which column ----------------------------------------------------------------------------------------------------


def test_the_best_columns_and_the_best_of_each_tier():
  gains = np.array([0.5, 0.9, 0.02, 0.4, 0.3, 0.021, 0.2])
  tiers = np.array([0, 0, 0, 2, 1, 1, 2])
  best = growth._best
  assert best(gains, tiers, config_of(num_per_place=2, num_per_tier=1)) == [1, 0, 4, 3]
  assert best(gains, tiers, config_of(num_per_place=1, num_per_tier=2)) == [1, 0, 4, 5, 3, 6]
  assert best(gains, tiers, config_of(num_per_place=9, num_per_tier=1)) == [1, 0, 3, 4, 6, 5]  # 0.02 is not enough


def test_columns_lie_in_blocks_of_unit_vectors(rng):
  columns, groups = rng.normal(size=(70, 20)).astype(np.float32), np.arange(20) // 9
  order = pairs.layout(groups)
  laid = growth._laid(columns, order)
  assert laid.shape == (pairs.TILE_BLOCKS * 4, pairs.BLOCK, 128) and laid.dtype == np.float32
  units = columns / np.linalg.norm(columns, axis=0)
  for block, place in np.argwhere(order >= 0):
    np.testing.assert_allclose(laid[block, place, :70], units[:, order[block, place]], rtol=1e-5)
  used = np.zeros(laid.shape[:2], bool)
  used[: len(order)] = order >= 0
  assert not laid[~used].any() and not laid[:, :, 70:].any()
  many = np.arange(5 * pairs.TILE)
  assert len(growth._laid(np.ones((2, len(many)), np.float32), pairs.layout(many))) == 12 * pairs.TILE_BLOCKS


def test_arguments_of_a_compiled_call_are_padded(rows):
  root, config = root_of(rows), config_of()
  tangent = growth._tangent(parse("2.5*exp(-1.5*x)"), rows, root, 1, config)
  weights, targets, directions = growth._padded([(tangent, graft) for graft in tangent.grafts], root, 64, 12)
  num = growth.NUM_PLACES
  assert weights.shape == targets.shape == (num, 64) and directions.shape == (num, 12, 64)
  assert weights.dtype == targets.dtype == directions.dtype == np.float32
  for k, graft in enumerate(tangent.grafts):
    np.testing.assert_allclose(weights[k, :30], root * graft.weight / np.abs(graft.weight).max(), rtol=1e-5)
    np.testing.assert_allclose(targets[k, :30], tangent.residual, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(directions[k, :3, :30], tangent.basis, rtol=1e-4, atol=1e-7)
  assert not weights[len(tangent.grafts):].any() and not weights[:, 30:].any() and not directions[:, 3:].any()


def test_of_each_block_the_column_that_explains_most_beside_the_directions(rng):
  columns = rng.normal(size=(3, pairs.BLOCK, 12)).astype(np.float32)
  columns /= np.linalg.norm(columns, axis=2)[..., None]
  columns[0, 5:], columns[1] = 0, 0  # of the second block there is nothing
  weights = rng.uniform(0.5, 1, (2, 12)).astype(np.float32)
  directions = np.stack([np.linalg.qr(rng.normal(size=(12, 3)))[0].T for _ in range(2)]).astype(np.float32)
  columns[2, 4] = directions[0, 1] / weights[0]  # which the first formula can do already
  targets = rng.normal(size=(2, 12))
  targets -= np.einsum("icn,ic->in", directions, np.einsum("icn,in->ic", directions, targets))
  targets = (targets / np.linalg.norm(targets, axis=1)[:, None]).astype(np.float32)
  targets[0] += 0.5 * directions[0, 1]  # as rounding would
  gains, members, multiples = (np.asarray(each) for each in growth._gains(columns, weights, targets, directions))
  assert gains.shape == members.shape == multiples.shape == (2, 3) and gains[:, 1].tolist() == [0, 0]
  for i, block in ((0, 0), (0, 2), (1, 0), (1, 2)):
    weighted = columns[block] * weights[i]
    apart = weighted - weighted @ directions[i].T @ directions[i]
    squares = np.sum(apart**2, axis=1)
    is_new = squares > 1e-3
    products = weighted @ targets[i]
    by_hand = np.where(is_new, products**2 / np.where(is_new, squares, 1), 0)
    best = int(np.argmax(by_hand))
    assert members[i, block] == best and gains[i, block] == pytest.approx(by_hand[best], rel=1e-4)
    assert multiples[i, block] == pytest.approx(products[best] / squares[best], rel=1e-4)


@pytest.mark.parametrize(("share", "is_new"), [(0.8e-4, False), (1.6e-4, True)])
def test_a_column_of_which_a_formulas_directions_leave_a_hundredth_is_new(share, is_new):
  columns = np.zeros((1, pairs.BLOCK, 2), np.float32)
  columns[0, 0] = np.sqrt(1 - share), np.sqrt(share)
  gains, _, _ = growth._gains(columns, np.ones((1, 2), np.float32), np.array([[0, 1]], np.float32),
                              np.array([[[1, 0]]], np.float32))
  assert float(gains[0, 0]) == (pytest.approx(1, abs=0.01) if is_new else 0)


@pytest.mark.parametrize("is_product", [False, True])
def test_a_column_is_grafted_in_units_of_its_largest_value(is_product, rows):
  columns, x = Few(rows.x), rows.x[:, 0]
  found = growth._grafted(parse("exp(x) + z"), tangents.Graft((0, 0), is_product, np.ones(30)), columns, 2, 0.3)
  column = 0.3 * x**2 / np.max(x**2)
  expected = np.exp(x * (1 + column) if is_product else x + column) + rows.x[:, 1]
  np.testing.assert_allclose(expression.evaluate(found, rows.x), expected)


class Few:
  """A library of three columns, each of its own group."""

  texts = ("z", "sin(3*x)", "x**2")

  def __init__(self, x, tiers=(2, 1, 2)):
    values = np.column_stack([expression.evaluate(parse(text), x) for text in self.texts])
    self._scales = np.abs(values).max(axis=0)
    self.columns, self.groups, self.tiers = (values / self._scales).astype(np.float32), np.arange(3), np.array(tiers)

  def node(self, index):
    return parse(self.texts[index])

  def scale(self, index):
    return float(self._scales[index])


def test_what_promises_most_for_each_formula_comes_first_with_the_multiple_that_fits(rows):
  """Of two formulas in turn; each is the best of its own by least squares of the first order."""
  y = 0.8 * np.exp(-1.3 * rows.x[:, 0]) + 0.4 * rows.x[:, 1] + 0.03 * np.sin(3 * rows.x[:, 0])
  rows = dataclasses.replace(rows, y=y)
  seeds = {parse("0.8*exp(-1.3*x)"): 1, parse("0.5*x"): 2, parse("log(x - 1)"): 1}
  columns, root, config = Few(rows.x), root_of(rows), config_of(min_gain=1e-6)
  found = list(growth._grown(seeds, columns, rows, config))
  ranked = []
  for node, front in list(seeds.items())[:2]:
    tangent = growth._tangent(node, rows, root, front, config)
    promised = []
    for graft in tangent.grafts:
      for i in range(3):
        column = root * graft.weight * columns.columns[:, i]
        design = np.column_stack([*tangent.basis, column])
        factors = np.linalg.lstsq(design, tangent.residual)[0]
        gain = 1 - np.sum((tangent.residual - design @ factors) ** 2)
        promised.append((gain, growth._grafted(node, graft, columns, i, factors[-1] * tangent.size)))
    ranked.append(sorted(promised, key=lambda each: -each[0]))
  for k in range(4):  # the best two of each
    gain, expected = ranked[k % 2][k // 2]
    assert gain > 0.02
    np.testing.assert_allclose(expression.evaluate(found[k], rows.x), expression.evaluate(expected, rows.x), rtol=1e-2)
  assert len(found) == len({*found}) and not any(part.token == "ln" for node in found
                                                 for part in expression.walk(node))


def test_places_of_several_calls_are_all_looked_at(rows, monkeypatch):
  node, columns, config = parse("2.5*exp(-1.5*x)/(z + 3.5*x) + sin(x)"), Few(rows.x), config_of(num_places=40)
  assert len(growth._tangent(node, rows, root_of(rows), 1, config).grafts) > 10
  found = []
  for num in (64, 5):
    monkeypatch.setattr(growth, "NUM_PLACES", num)
    found.append(list(growth._grown({node: 1}, columns, rows, dataclasses.replace(config, min_gain=1e-4))))
  assert found[0] == found[1] and len(found[0]) > 5


def question_of(task, errors, state):
  pool = Pool(task.variance, len(task.fit_rows))
  pool.insert([Candidate(parse(text), mse) for text, mse in errors.items()])
  return Question(task, pool, state)


def test_a_turn_needs_a_formula_that_leaves_little_and_a_shorter_description_than_the_last(rows, monkeypatch):
  task = make_task((rows.x, rows.y, rows.weights), NAMES, SearchOptions())
  monkeypatch.setattr(terms, "library_of", lambda task, config: Few(rows.x))
  asked = []
  monkeypatch.setattr(growth, "_grown", lambda seeds, columns, some, config: (
    asked.append((dict(seeds), columns.columns.shape)), iter([parse("x"), parse("1.5*x")]))[1])
  source = growth.Growth(DEFAULT)
  most, step = DEFAULT.growth.most_left * task.variance, DEFAULT.growth.nats_per_node

  def ask(errors, state):
    [proposal] = source.propose([question_of(task, errors, state)], turn=0, num=9, clock=Clock())
    return proposal
  first = source.init(task, None)
  assert first == growth.State(frozenset(), np.inf) and source.turns == DEFAULT.growth.turns
  assert ask({}, first).state is first and ask({"x": 1.01 * most}, first).state is first and not asked
  found = ask({"x": most}, first)
  assert found.nodes == (parse("x"), parse("1.5*x")) and asked == [({parse("x"): 1}, (30, 3))]
  nats = terms.nats(parse("x"), most, num_rows=30, nats_per_node=step)
  assert found.state.grown == {parse("x")} and found.state.nats == pytest.approx(nats)
  # As good as asked for, and just not.
  for gain, is_grown in ((1.0, True), (0.999, False)):
    again = ask({"sin(x)": 0.5 * most}, growth.State(frozenset([parse("x")]), terms.nats(
      parse("sin(x)"), 0.5 * most, num_rows=30, nats_per_node=step) + gain * step))
    assert bool(again.nodes) is is_grown
  assert again.state.grown == {parse("x")}
  # The least of all descriptions counts, not that of the best.
  both = ask({"sin(x)": 0.5 * most, "z": 0.5000001 * most}, first)
  assert both.state.nats == pytest.approx(terms.nats(
    parse("z"), 0.5000001 * most, num_rows=30, nats_per_node=step))
  assert source.supports(task)
  assert not source.supports(make_task((rows.x, rows.y), NAMES, SearchOptions(
    restrictions=Restrictions(forbidden=("*",)))))


# --- guesses ---------------------------------------------------------------------------------------------------------


def read(text, names=("length", "t"), **options):
  x = np.random.default_rng(0).uniform(0.5, 2, (20, 2))
  task = make_task((x, x[:, 0] + 1), names, SearchOptions(**options))
  source = guesses.Guesses((text,))
  assert source.supports(task) and not guesses.Guesses(()).supports(task)
  [node] = nodes = source.init(task, None)
  [proposal] = source.propose([Question(task, None, nodes)], turn=0, num=1, clock=Clock())
  assert proposal.nodes == proposal.state == nodes and source.turns == (1,)
  return node


def test_names_that_are_nearly_those_of_columns_are_slips(monkeypatch):
  for name in ("lenght", "lengths"):
    with pytest.raises(InputError, match="did you mean 'length'"):
      read(f"{name}*t")
  with pytest.raises(InputError, match="no column"):
    read("2*column_a + t", names=("column_b", "t"))
  monkeypatch.setattr(guesses, "_fill_in", lambda node, task, config: node)
  for name in ("leng_abc", "width", "le"):  # three quarters of the letters, and fewer
    assert any(part.token == expression.SYMBOL for part in expression.walk(read(f"{name}*t")))


def test_guesses_are_no_longer_than_programs():
  def text(num):
    return "+".join(["length"] * num)
  assert programs.size(read(f"-({text(32)})")) == programs.MAX_TOKENS
  with pytest.raises(InputError, match="more than 64 tokens"):
    read(f"-(-({text(32)}*t))")


def test_functions_that_the_rules_have_not_are_written_by_those_that_they_have():
  bend = read("tanh(t)", restrictions=Restrictions(add_operators=("tanh",)))
  assert bend == expression.Node("tanh", (expression.variable(1),))
  plain = read("tanh(t)", restrictions=Restrictions(operators=("+", "-", "*", "/", "exp")))
  assert "tanh" not in {part.token for part in expression.walk(plain)}
  t = np.random.default_rng(0).uniform(0.5, 2, (20, 2))
  np.testing.assert_allclose(expression.evaluate(plain, t), np.tanh(t[:, 1]))
  with pytest.raises(InputError, match="breaks the rules"):
    read("sin(t)", restrictions=Restrictions(forbidden=("sin",)))


def test_constants_with_names_get_few_steps_from_many_starts_and_more_from_the_nearest(monkeypatch):
  """A start is a number; it leaves its distance from 3, and each step takes it a little nearer."""
  asked = []

  def fit_constants(of_tasks, *, method, max_steps):
    [(_, nodes)] = of_tasks
    values = [programs.fitted_values(node)[0] for node in nodes]
    asked.append((method, max_steps, values))
    moved = [3 + (value - 3) / (1 + max_steps) for value in values]
    return [[(programs.replace_values(node, [value]), abs(value - 3))
             for node, value in zip(nodes, moved, strict=True)]]
  monkeypatch.setattr(guesses.engine_refine, "fit_constants", fit_constants)
  drawn = [9.5, 2.5, 5.5, 3.25, -1.5]
  monkeypatch.setattr(guesses.refine, "draw_fillings", lambda node, *, num: [
    expression.substitute(parse("x*1.5"), {0: expression.variable(1)})._replace(
      args=(expression.variable(1), expression.number(value))) for value in drawn[:num]])
  x = np.random.default_rng(0).uniform(0.5, 2, (20, 2))
  task = make_task((x, 3 * x[:, 1]), ("length", "t"), SearchOptions())
  config = GuessesConfig(stages=((5, 1), (2, 3)))
  [node] = guesses.Guesses(("a*t",), config).init(task, None)
  assert asked[0] == ("lm", 1, drawn) and asked[1] == ("lm", 3, [3.125, 2.75])
  assert programs.fitted_values(node) == [3.03125]


def test_a_name_that_stands_twice_gets_a_fit_of_its_own(monkeypatch):
  x = np.random.default_rng(0).uniform(0.5, 2, (20, 2))
  task = make_task((x, 3 * x[:, 1]), ("length", "t"), SearchOptions())
  asked = []
  monkeypatch.setattr(guesses.refine, "fill_in", lambda node, x, y, weights: (
    asked.append((x.shape, y.tolist(), weights.tolist())), parse("z"))[1])
  [node] = guesses.Guesses(("a*t + a",)).init(task, None)
  assert node == parse("z") and asked == [((20, 2), (3 * x[:, 1]).tolist(), [1.0] * 20)]
