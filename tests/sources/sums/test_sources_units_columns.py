"""Parts of functions on request, of sums by exchange and of what evolution begins with, by themselves."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, TIERS, Search
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.evolution import stock
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.sums import (
  exchange,
  library,
  pair_sums,
  products,
  pursuit,
  requested_functions as requested,
  subset_sums,
  terms,
)
from symformer_jax.sources.sums.families import ANY, BASIC, Space

NAMES = ("x", "z", "w", "v")
FUNCTIONS = {"tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "abs": np.abs, "sign": np.sign, "min": np.minimum,
             "max": np.maximum}


def parse(text):
  return parser.parse(text, NAMES)


# --- functions on request --------------------------------------------------------------------------------------------

CONFIG = dataclasses.replace(
  DEFAULT.library, num_places=3, integers=(1.0, 2.0), rates=(0.5, 4.0, 3), widths=(0.1, 1.0, 2), max_variables=2,
  max_pairs=3)
X = np.random.default_rng(0).uniform(-1, 3, (30, 4))


def space_of(*tokens, num_columns=2, x=X, **changes):
  return Space(x, range(num_columns), dataclasses.replace(CONFIG, **changes), tokens)


@pytest.mark.parametrize("token", FUNCTIONS)
def test_functions_of_a_variable_have_their_places_within_the_data(token):
  f, u = FUNCTIONS[token], X[:, 0]
  places = u.min() + np.ptp(u) * np.array([0.25, 0.5, 0.75])
  if token in ("tanh", "sinh", "cosh"):
    rates = [1.0, 2.0, *(np.array([0.5, np.sqrt(2), 4]) / np.abs(u).max())]
    expected = [f(rate * u) for rate in rates]
    if token == "tanh":
      expected += [f((u - place) / (np.ptp(u) * width)) for place in places for width in (0.1, 1.0)]
  elif token in ("min", "max"):
    expected = [f(u, place) for place in places]
  else:
    expected = [f(u - place) for place in (0, *places)]
  found = list(requested._of_variable(token, expression.variable(0), u, space_of()))
  np.testing.assert_allclose([expression.evaluate(node, X) for node in found], expected, rtol=1e-9)


def test_multiples_of_a_variable_part_the_rows_evenly():
  v, w = expression.variable(0), expression.variable(1)
  x = X.copy()
  x[3, 1] = 0.0  # a ratio that is none
  plain, *more = requested._multiples(v, w, space_of(x=x))
  assert plain == w and len(more) == 3
  ratios = np.delete(x[:, 0] / np.where(x[:, 1] == 0, 1, x[:, 1]), 3)
  for node, share in zip(more, (0.25, 0.5, 0.75), strict=True):
    np.testing.assert_allclose(expression.evaluate(node, x), np.quantile(ratios, share) * x[:, 1])
  assert requested._multiples(v, w, space_of(num_columns=3)) == [w]
  assert requested._multiples(v, w, space_of(x=np.zeros((9, 2)))) == [w]
  assert requested._multiples(v, w, space_of(x=np.tile([[0.0, 2.0]], (9, 1)))) == [w]  # a factor of 0 says nothing
  assert len(requested._multiples(v, w, space_of(x=np.tile([[3.0, 2.0]], (9, 1))))) == 2  # the same is there once


def test_products_of_few_variables():
  x, z, w = X[:, :3].T
  found = requested._products(space_of(num_columns=3, max_variables=3))
  expected = [x * z, x / z, x * w, x / w, z * w, z / w]
  np.testing.assert_allclose([expression.evaluate(node, X) for node in found], expected)
  assert requested._products(space_of(num_columns=3)) == []


def test_families_on_request_alone_times_and_over_others_and_of_products():
  x, z = X[:, :2].T
  found = list(requested.make_families(space_of("abs", "tanh")))
  assert [family.tier for family in found] == [BASIC, ANY, ANY] * 4 + [ANY] * 4 + [BASIC]
  assert [family.is_mixed for family in found] == [False] * 16 + [True]
  steps, kinks = found[0], found[3]  # in the order of the table, not of the request
  assert steps.build(0).token == "tanh" and kinks.build(0).token == "abs"
  for family, factor in zip(found[3:6], (np.ones(30), z, 1 / z), strict=True):
    np.testing.assert_allclose(family.values[:, 0], np.abs(x) * factor)
  for family, product in zip(found[14:16], (x * z, x / z), strict=True):
    np.testing.assert_allclose(family.values[:, 0], np.abs(product))
  for family in found:
    for index in (0, family.values.shape[1] - 1):
      np.testing.assert_allclose(expression.evaluate(family.build(index), X), family.values[:, index])
  many = list(requested.make_families(space_of("abs", num_columns=3)))
  assert len(many) == 4
  assert all(not list(requested.make_families(space)) for space in (space_of("sin"), space_of()))


def test_pairs_on_request():
  x, z, w = X[:, :3].T
  [family] = requested._of_pairs(["tanh", "max"], space_of(num_columns=3))
  expected = [np.tanh(each) for a, b in ((x, z), (x, w), (z, w)) for each in (a * b, a / b, b / a)]
  expected += [np.maximum(a, b) for a, b in ((x, z), (x, w), (z, w))]
  np.testing.assert_allclose(family.values.T, expected)
  assert family.is_mixed and family.tier == BASIC
  for index in (0, 11):
    np.testing.assert_allclose(expression.evaluate(family.build(index), X), family.values[:, index])
  assert not list(requested._of_pairs(["max"], space_of(num_columns=3, max_pairs=2)))
  assert not list(requested._of_pairs([], space_of()))
  assert not list(requested._of_pairs(["tanh"], space_of(num_columns=1)))
  # Of few also squares, inverses, sines and cosines beside each variable, of kinks alone.
  [family] = requested._of_pairs(["cosh", "abs"], space_of())
  multiples = 1 + CONFIG.num_places
  assert family.values.shape[1] == 3 + multiples + 2 * 2 * 4 * multiples
  bent = family.values[:, 3 + multiples :: multiples]
  functions = (np.square, np.reciprocal, np.sin, np.cos)
  np.testing.assert_allclose(bent.T, [np.abs(f(a) - b) for b in (x, z) for a in (x, z) for f in functions])


def test_atoms_of_a_family_are_a_group_and_those_of_a_mixed_one_each_their_own(monkeypatch, rng):
  values = rng.uniform(1, 2, (9, 8))
  sizes = ((2, False), (3, True), (0, False), (1, False), (2, True))
  ends = np.cumsum([size for size, _ in sizes])
  monkeypatch.setattr(library.families, "plain_columns", lambda *_: ())
  monkeypatch.setattr(library.requested_functions, "make_families", lambda *_: ())
  monkeypatch.setattr(library.families, "make_families", lambda *_: [
    library.families.Family(values[:, end - size : end], lambda i: parse("x"), is_mixed=is_mixed)
    for end, (size, is_mixed) in zip(ends, sizes, strict=True)])
  groups = library.Atoms(rng.uniform(1, 2, (9, 1)), (0,)).groups.tolist()
  assert groups[0] == groups[1] and len(set(groups)) == 7


# --- sums by exchange ------------------------------------------------------------------------------------------------


def columns_of(values, groups=None):
  return SimpleNamespace(
    columns=values.astype(np.float32), groups=np.arange(values.shape[1]) if groups is None else np.array(groups),
    tiers=np.zeros(values.shape[1], int), node=expression.variable, scale=lambda i: 1.0)


def test_sums_are_of_the_rows_that_say_something(rng):
  x = rng.normal(size=(24, 4)).astype(np.float32).astype(np.float64)
  y = 2 * x[:, 1] - 3 * x[:, 3] + 1
  weights = np.where(np.arange(24) < 4, 0.0, rng.uniform(0.5, 2, 24))
  y[:4] = np.nan
  source = subset_sums.SubsetSums()
  target = subset_sums._Target(y, weights, lambda node: expression.Node("sin", (node,)))
  found = source._sums(columns_of(x), target)
  node = next(iter(found[0]))
  assert node.token == "sin" and len(found) == 1
  np.testing.assert_allclose(expression.evaluate(node.args[0], x)[4:], y[4:], rtol=1e-5)
  for change, num in (({"values": np.full(24, np.inf)}, 0), ({"weights": np.zeros(24)}, 0),
                      ({"weights": np.where(np.arange(24) == 5, np.inf, weights)}, 0),
                      ({"weights": np.where(np.arange(24) == 5, np.nan, weights)}, 1)):  # NaN is not above 0
    assert len(source._sums(columns_of(x), dataclasses.replace(target, **change))) == num


def test_the_most_terms_of_a_sum_follow_from_the_rows_and_starts_from_the_config(rng, monkeypatch):
  x, asked = rng.normal(size=(24, 4)), []

  def best_subsets(some, groups, values, weights, *, max_size, config):
    asked.append(max_size)
    return [np.array([[0, 2], [1, 2], [0, 3], [1, 3]])]
  monkeypatch.setattr(exchange, "best_subsets", best_subsets)
  for num_rows, max_size, expected in ((24, 5, 4), (24, 3, 3), (20, 5, 4), (19, 5, 3)):
    own = dataclasses.replace(DEFAULT.subsets, max_size=max_size, fits_per_sum=1)
    config = dataclasses.replace(DEFAULT, subsets=own)
    weights = np.where(np.arange(24) < num_rows, 1.0, 0.0)
    [sums] = subset_sums.SubsetSums(config)._sums(
      columns_of(x, [0, 0, 1, 1]), subset_sums._Target(x[:, 0], weights, lambda node: node))
    assert len(list(sums)) == 1 and asked.pop() == expected


def test_targets_are_y_itself_or_its_functions_and_y_under_monomials(rng):
  x, y = rng.uniform(1, 2, (12, 2)), np.linspace(-1, 2, 12)
  rows = Rows(x, y, rng.uniform(0.5, 2, 12))
  [plain] = subset_sums.SubsetSums()._targets(None, rows, 0)
  assert plain.values is y and plain.weights is rows.weights
  inside = dataclasses.replace(DEFAULT.subsets_inside, links=("inv", "exp", "ln"), turns=(4, 4), max_multipliers=4,
                               multiplier_powers=((1, -1),))
  source = subset_sums.SubsetSumsInside(dataclasses.replace(DEFAULT, subsets_inside=inside))
  assert source.turns == (4, 4) and source._own is inside
  task = SimpleNamespace(columns=(0, 1))
  links = [LINKS[name] for name in inside.links if LINKS[name].is_defined(y)]
  assert len(links) == 2 and subset_sums.SubsetSums().turns == DEFAULT.subsets.turns
  both = [target for turn in (0, 1) for target in source._targets(task, rows, turn)]
  assert len(both) == len(links) + 4
  in_order = [None] * 6
  in_order[0::2], in_order[1::2] = both[:3], both[3:]  # the turns share them out
  for target, link in zip(in_order, links, strict=False):
    z, weights = terms.weighted(link, rows)
    np.testing.assert_array_equal(target.values, z)
    np.testing.assert_array_equal(target.weights, weights)
    assert target.undo == link.undo
  sizes = (x[:, 0], 1 / x[:, 0], x[:, 1], 1 / x[:, 1])
  for target, m in zip(in_order[2:], sizes, strict=True):
    np.testing.assert_allclose(target.values, y / m)
    np.testing.assert_allclose(target.weights, rows.weights * m**2)
    node = target.undo(parse("sin(x)"))
    np.testing.assert_allclose(expression.evaluate(node, x), m * np.sin(x[:, 0]))
  wide = dataclasses.replace(DEFAULT, subsets_inside=dataclasses.replace(inside, max_multipliers=30, links=()))
  of_three = Rows(rng.uniform(1, 2, (12, 3)), y, rows.weights)
  assert sum(len(subset_sums.SubsetSumsInside(wide)._targets(SimpleNamespace(columns=(0, 1, 2)), of_three, turn))
             for turn in (0, 1)) == 6 + 12  # of two columns at most
  x[5, 1] = 0.0
  with np.errstate(all="ignore"):
    assert sum(len(source._targets(task, rows, turn)) for turn in (0, 1)) == 4  # without those of a column with a 0
    few = dataclasses.replace(DEFAULT, subsets_inside=dataclasses.replace(
      inside, max_multipliers=2, multiplier_powers=((1, -1), (1,))))
    assert sum(len(subset_sums.SubsetSumsInside(few)._targets(task, rows, turn)) for turn in (0, 1)) == 3


def test_plain_columns_and_all_of_them_have_their_turn(rng, monkeypatch):
  x = rng.uniform(1, 2, (40, 3))
  task = make_task((x, rng.normal(size=40)), ("x", "z", "w"), SearchOptions())
  library = columns_of(x)
  library.complexities, asked = np.array([3, 1, 5]), []
  monkeypatch.setattr(terms, "library_of", lambda task, config: library)
  monkeypatch.setattr(pair_sums, "subset", lambda columns, most: asked.append(most) or library)

  def sums(self, columns, target):
    asked.append(columns.columns.shape[1])
    return [iter([parse(f"{len(asked)}.5*x"), parse(f"{len(asked)}.5*z")])]
  monkeypatch.setattr(subset_sums.SubsetSums, "_sums", sums)
  nodes = subset_sums.SubsetSums()._nodes(SimpleNamespace(task=task), 0, 9)
  assert asked == [DEFAULT.pairs.max_columns, 2, 3, 3] and DEFAULT.subsets.plain == (3, 5)
  assert nodes == tuple(parse(text) for text in ("2.5*x", "3.5*x", "4.5*x", "2.5*z", "3.5*z", "4.5*z"))


# --- sums of columns and of parts ------------------------------------------------------------------------------------


def question_of(*texts, exact=None, source="guesses"):
  candidates = [SimpleNamespace(node=parse(text), source=source if i else "library") for i, text in enumerate(texts)]
  x = np.random.default_rng(0).uniform(1, 2, (40, 2))
  task = make_task((x, x[:, 0] * x[:, 1] + 1), ("x", "z"), SearchOptions())
  return SimpleNamespace(task=task, pool=SimpleNamespace(exact=lambda: exact, in_order=lambda: candidates))


@pytest.mark.parametrize(("turn", "exact"), [(0, None), (0, "law"), (1, None), (2, None), (2, "law")])
def test_turns_of_the_library_are_sums_for_y_products_and_sums_for_its_functions(turn, exact, monkeypatch):
  asked, question = [], question_of(exact=exact)
  monkeypatch.setattr(terms, "products_of", lambda rows, columns, *, rule, config: asked.append(
    ("products", rows, columns, rule, config)) or [1])
  monkeypatch.setattr(terms, "library_of", lambda task, config: "library")
  monkeypatch.setattr(terms, "sums_of", lambda columns, rows, *, links, searches, rule, config: asked.append(
    ("sums", rows, tuple(links), tuple(searches))) or [2])
  found = terms.LibrarySums()._nodes(question, turn, 1)
  [(kind, rows, *how)] = asked
  assert rows is question.task.fit_rows and terms.LibrarySums().turns == (1, 1, 1)
  if turn == 1:
    assert (kind, found, how) == ("products", [1], [question.task.columns, question.task.rule, DEFAULT])
  else:
    links = ("y",) if turn == 0 else tuple(name for name in DEFAULT.terms.links if name != "y")
    searches = DEFAULT.terms.searches if exact is None else DEFAULT.terms.searches[-1:]
    assert (kind, found, how) == ("sums", [2], [links, searches]) and len(searches) == (3 if exact is None else 1)


def test_parts_are_of_formulas_that_are_no_sums_of_columns(monkeypatch):
  question, asked = question_of("x + z", "sin(x)*z", "exp(x) + z", "log(z)"), []
  monkeypatch.setattr(terms, "sums_of", lambda columns, rows, *, links, searches, rule, config: asked.append(
    (columns, links, searches)) or [parse("x")])
  monkeypatch.setattr(terms, "library_of", lambda task, config: columns_of(np.ones((40, 3))))
  config = dataclasses.replace(DEFAULT, pool=dataclasses.replace(DEFAULT.pool, num_donors=2))
  proposal = terms.PartSums(config)._propose(question, 0)
  [(columns, links, searches)] = asked
  nodes = [columns.node(i) for i in range(columns.columns.shape[1] - 3)]
  assert parse("sin(x)") in nodes and parse("exp(x)") in nodes and parse("log(z)") not in nodes
  assert columns.columns.shape[0] == 40 and links == DEFAULT.terms.links and searches == DEFAULT.terms.searches[:1]
  assert proposal.nodes == (parse("x"),) and not proposal.candidates and terms.PartSums().turns == (1, 1)
  for source in terms._OF_COLUMNS:
    assert terms.PartSums()._propose(question_of("x", "sin(x)", source=source), 0).nodes == ()
  assert len(asked) == 1
  monkeypatch.setattr(terms, "recombine", lambda nodes, rows, *, columns, config: [(node, 2.0) for node in nodes])
  second = terms.PartSums(config)._propose(question, 1)
  assert [(each.node, each.mse, each.source) for each in second.candidates] == [
    (candidate.node, 2.0, "parts") for candidate in question.pool.in_order()] and not second.nodes


def test_the_library_of_a_data_set_is_made_once(monkeypatch):
  made, question = [], question_of()
  monkeypatch.setattr(library, "Atoms", lambda *given, **how: made.append((given, how)) or object())
  other = dataclasses.replace(DEFAULT, library=CONFIG)
  one = terms.library_of(question.task, DEFAULT)
  assert terms.library_of(question.task, DEFAULT) is one is not terms.library_of(question.task, other)
  assert len(made) == 2 and made[0][1] == {"config": DEFAULT.library, "requested": []}
  assert made[0][0][1:] == (question.task.columns, None) and len(made[0][0][0]) == 40


def test_all_operators_are_allowed_where_no_rule_names_them():
  def rule_of(**rules):
    return Restrictions(**rules).for_columns(("x",))
  assert terms.allowed_operators(rule_of()) is None and terms.allowed_operators(rule_of(max_depth=3)) is None
  assert not terms.allowed_operators(rule_of(forbidden=("sin",)))("sin")
  assert terms.allowed_operators(rule_of(max_exponent=2.0)) is not None


def test_weights_of_a_function_of_y_are_those_of_its_errors(rng):
  y, weights = rng.uniform(1, 2, 9), rng.uniform(0.5, 2, 9)
  rows = Rows(np.ones((9, 1)), y, weights)
  z, found = terms.weighted(LINKS["inv"], rows)
  np.testing.assert_allclose(z, 1 / y)
  expected = weights * y**4  # an error of 1/y makes one of y**2 times as much of y
  np.testing.assert_allclose(found, expected / expected.max())
  np.testing.assert_array_equal(terms.whole(LINKS["inv"], rows)[1], found)
  np.testing.assert_allclose(terms.weighted(LINKS["y"], rows)[1], weights / weights.max())
  np.testing.assert_allclose(
    terms.weighted(LINKS["y"], Rows(rows.x, rows.y, weights / 1e3))[1], weights / weights.max())
  zero = Rows(rows.x, np.r_[0.0, y[1:]], weights)
  assert terms.weighted(LINKS["sqrt"], zero)[1][0] == 0 and terms.whole(LINKS["sqrt"], zero) is None
  assert not terms.weighted(LINKS["sqrt"], Rows(rows.x, np.zeros(9), weights))[1].any()
  assert terms.whole(LINKS["y"], Rows(rows.x, np.full(9, 3.0), weights)) is None
  with np.errstate(all="ignore"):
    assert terms.whole(LINKS["exp"], zero) is None and terms.whole(LINKS["ln"], Rows(rows.x, 900 * y, weights)) is None


def test_rows_whose_function_of_y_is_beyond_numbers_say_nothing(rng):
  x = rng.uniform(1, 2, (12, 1))
  y = np.log(3 * x[:, 0])
  y[5] = 800.0
  columns = columns_of(x)
  columns.columns = x
  with np.errstate(all="ignore"):
    [(size, formula)] = terms._sums(columns, LINKS["ln"], Rows(x, y, np.ones(12)), DEFAULT.pursuit)
  assert size == 1
  np.testing.assert_allclose(expression.evaluate(formula, x), 3 * x[:, 0])


def test_sums_of_each_size_and_search_have_their_turn(monkeypatch):
  """The best of one part, of two, ...; then the second best."""
  x = np.random.default_rng(0).uniform(1, 2, (40, 2))
  rows, asked = Rows(x, x[:, 0] + 2 * x[:, 1], np.ones(40)), []
  columns = columns_of(np.ones((40, 4)))
  columns.tiers = np.array([0, 1, 2, 1])

  def all_sums(parts, rows, names, config):
    asked.append((parts.columns.shape[1], config.max_columns, config.num_first, config.num_pairs))
    return [("y", 2, parse("x + 2*z")), ("y", 1, parse("3*z")), ("y", 1, parse("2*z")), ("y", 2, parse("x + z")),
            ("inv", 3, parse("sin(x)"))]
  monkeypatch.setattr(terms, "_all_sums", all_sums)
  searches = [Search("any", 2, 5), Search("basic", 9, 6, 7), Search("monomial", 3, 8)]
  for num, expected in ((5, ["3*z", "x + 2*z", "2*z", "x + z"]), (2, ["3*z", "x + 2*z"])):
    config = dataclasses.replace(DEFAULT, terms=dataclasses.replace(DEFAULT.terms, num_fitted=num))
    found = terms.sums_of(columns, rows, links=("y",), searches=searches, rule=lambda node: node.token != "sin",
                          config=config)
    assert [expression.sort_operands(node) for node in found] == [
      expression.sort_operands(parse(text)) for text in expected]
  assert TIERS == ("any", "basic", "monomial")
  assert asked[:3] == [(4, 2, 5, 16), (3, 8, 6, 7), (1, 3, 8, 16)]


def test_functions_of_y_that_are_named_and_defined_are_asked(monkeypatch):
  monkeypatch.setattr(terms, "_sums", lambda parts, link, rows, config: [(2, parse("x"))])
  rows = Rows(np.ones((4, 1)), np.array([-1.0, 2, 3, 4]), np.ones(4))
  found = terms._all_sums(None, rows, ("y", "inv", "exp"), None)
  assert [(name, size) for name, size, _ in found] == [("y", 2), ("inv", 2)]  # y is negative on a row
  assert [node for _, _, node in found] == [LINKS[name].undo(parse("x")) for name in ("y", "inv")]


def test_products_go_out_by_their_nats(monkeypatch):
  x = np.random.default_rng(0).uniform(1, 2, (40, 2))
  rows = Rows(x, 2 * x[:, 0], np.ones(40))
  made = [[parse("sqrt(x)*2.5"), parse("2*x"), parse("x*z")], [parse("sin(x)"), parse("1.5*z")]]
  monkeypatch.setattr(products, "find_products", lambda some, columns, allows, *, config, pursuit_config: made)

  class Rule:
    tokens = max_exponent = None

    def __call__(self, node):
      return node.token != "sin"

  def found(num=9, nats_per_node=2.0, **how):
    config = dataclasses.replace(DEFAULT, terms=dataclasses.replace(
      DEFAULT.terms, num_fitted=num, nats_per_node=nats_per_node, **how))
    return terms.products_of(rows, (0, 1), rule=Rule(), config=config)
  assert found()[:2] == [parse("2*x"), parse("1.5*z")] and len(found()) == 4
  assert len(found(num=1)) == 1 and parse("sqrt(x)*2.5") not in found(max_nodes=3)
  # With dear nodes the shortest come first, whatever they miss.
  lengths = [expression.complexity(node) for node in found(nats_per_node=1e6)[::2]]
  assert lengths == sorted(lengths)


def test_parts_are_summed_and_multiplied(monkeypatch):
  x = np.random.default_rng(0).uniform(1, 2, (60, 2))
  rows = Rows(x, x[:, 0] ** 1.51 * np.sin(x[:, 1]) * 3, np.ones(60))
  nodes = [parse("sin(z) + x")]

  def best(use_products=True, **how):
    config = dataclasses.replace(DEFAULT, terms=dataclasses.replace(
      DEFAULT.terms, use_products=use_products, links=("y",), **how))
    found = terms.recombine(nodes, rows, columns=(0, 1), config=config)
    return min(found, key=lambda pair: pair[1])
  assert best()[1] < 1e-3 * np.var(rows.y) and best(near_half=0.001)[1] < 1e-20 < best(near_half=0.02)[1]
  assert best(use_products=False)[1] > 1e-6 * np.var(rows.y)
  powers = {part.args[1].value for part in expression.walk(best()[0]) if part.token == "pow"}
  assert powers == {1.5}
  assert max(len(expression.flatten(node, "+")) for node, _ in terms.recombine(
    nodes, rows, columns=(0, 1), config=dataclasses.replace(DEFAULT, terms=dataclasses.replace(
      DEFAULT.terms, max_parts=1)))) <= 2


def test_products_of_parts_are_told_where_neither_is_zero(monkeypatch):
  x = np.random.default_rng(0).uniform(1, 2, (30, 2))
  x[:3, 0] = 0.0
  y, weights = x[:, 0] ** 2 / x[:, 1], np.random.default_rng(1).uniform(0.5, 2, 30)
  parts, asked = columns_of(np.column_stack([x, x[:, 0] - x[7, 0]])), []
  parts.columns = parts.columns.astype(np.float64)
  real = pursuit.select_columns
  monkeypatch.setattr(pursuit, "select_columns", lambda columns, z, weights, *, config: asked.append(
    (columns, z, weights)) or real(columns, z, weights, config=config))
  found = terms._products(parts, Rows(x, -y, weights), DEFAULT.pursuit, 0.02)
  [(columns, z, own)] = asked
  assert columns.shape == (27, 2)  # the third is 0 on a row
  np.testing.assert_allclose(z, np.log(y[3:] / y.max()))
  np.testing.assert_allclose(own, weights[3:] * (y[3:] / y.max()) ** 2)
  assert any(np.allclose(expression.evaluate(node, x), -y) for node in found)
  with np.errstate(all="ignore"):
    assert terms._products(parts, Rows(x, 0 * y, weights), DEFAULT.pursuit, 0.02) == []


# --- what evolution begins with --------------------------------------------------------------------------------------

VOCAB = programs.base_vocabulary(2)


def shares(**allowed):
  found = np.zeros(VOCAB.size)
  for token, share in allowed.items():
    found[VOCAB.ids[{"plus": "+"}.get(token, token)]] = share
  return found


def tree(rng, size, weights, far=1.0):
  return stock._random_tree(rng, size, weights, VOCAB, np.asarray(VOCAB.arity), far)


def test_random_trees_have_all_sizes_and_shapes():
  rng, weights = np.random.default_rng(0), shares(sin=1, x0=1)
  config = dataclasses.replace(DEFAULT.evolution, random_nodes=4)
  found = list(stock.random_trees(rng, 200, weights, VOCAB, config))
  sizes = [programs.size(node) for node in found]
  assert len(found) == 200 and set(sizes) == {1, 2, 3, 4} and min(map(sizes.count, set(sizes))) > 30
  weights = shares(plus=1, x0=1)
  splits = {tuple(programs.size(arg) for arg in tree(rng, 7, weights).args) for _ in range(60)}
  assert splits == {(1, 3), (1, 5), (3, 3), (5, 1), (3, 1)}  # what is even loses a node
  assert {tree(rng, 2, weights).token for _ in range(9)} == {"variable"}  # no operator of one argument
  either = shares(plus=1, sin=1, x0=1, x1=3)
  assert {tree(rng, 2, either).token for _ in range(9)} == {"sin"}
  assert {tree(rng, 3, either).token for _ in range(20)} == {"+", "sin"}
  assert {tree(rng, 1, either).token for _ in range(9)} == {"variable"}
  leaves = [tree(rng, 1, either).value for _ in range(400)]
  assert 60 < leaves.count(0) < 140 and leaves.count(0) + leaves.count(1) == 400


def test_numbers_of_random_trees_are_of_both_signs_around_one():
  rng, weights = np.random.default_rng(0), shares(C=1)
  assert {tree(rng, 1, weights, far=0.0).value for _ in range(40)} == {1.0, -1.0}
  values = np.array([tree(rng, 1, weights, far=0.5).value for _ in range(800)])
  assert 0.45 < np.mean(values > 0) < 0.55
  logs = np.log(np.abs(values))
  assert abs(logs.mean()) < 0.06 and logs.std() == pytest.approx(0.5, rel=0.08)
  powers = [tree(rng, 3, shares(pow=1, x0=1)) for _ in range(300)]
  assert {node.token for node in powers} == {"pow"} and {node.args[0].token for node in powers} == {"variable"}
  exponents = [node.args[1].value for node in powers]
  assert -2.5 <= min(exponents) < -2.3 and 2.3 < max(exponents) <= 2.5
  assert {programs.size(tree(rng, 4, shares(pow=1, sin=1, x0=1))) for _ in range(30)} == {4}


def test_formulas_become_genomes_as_far_as_there_is_room():
  nodes = [parse("sin(x) + z"), parse("x"), parse("x*z"), parse("z")]
  found = stock.encode(iter(nodes), VOCAB, num=2, size=3)
  assert [expression.decode(*each, VOCAB) for each in zip(found.ids, found.values, strict=True)] == nodes[1:3]
  more = stock.encode(nodes, VOCAB, num=6, size=4)
  assert more.ids.shape == more.values.shape == (6, 4)
  assert [bool(ids.any()) for ids in more.ids] == [True] * 4 + [False] * 2
  assert not stock.encode([], VOCAB, num=2, size=3).ids.any()


def test_tokens_are_written_as_often_as_the_config_says_and_the_rules_allow():
  x = np.random.default_rng(0).uniform(1, 2, (20, 3))
  task = make_task((x, x[:, 0]), ("a", "b", "c"), SearchOptions(restrictions=Restrictions(
    forbidden=("sin",), excluded=("b",), add_operators=("tanh",))))
  vocab = programs.base_vocabulary(3, has_requested=True)
  config = dataclasses.replace(DEFAULT.evolution, requested_weight=0.7, constant_weight=0.9)
  weights = stock.token_weights(task.rule, vocab, stock.Units((2, 1, 0), (1.0, 1.0, 1.0)), config)
  expected = {name: share for name, share in config.operators if name != "sin"}
  expected |= {"tanh": 0.7, "C": 0.9, "x0": 0.5, "x2": 0.5}
  assert {token: weights[i] for i, token in enumerate(vocab.tokens) if weights[i]} == pytest.approx(expected)


def test_columns_in_their_own_unit_have_no_factor():
  units = stock.Units((1, 0), (1.0, 4.0))
  assert units.to_genome(parse("z")) == units.to_user(parse("x"))._replace(value=0) == parse("x")
  assert [part.value for part in expression.walk(units.to_genome(parse("x"))) if part.is_number] == [4.0]


def test_units_are_the_typical_size_of_a_column():
  x = np.column_stack([np.r_[np.zeros(10), np.full(10, 200.0)], np.full(20, 0.05), np.full(20, 20.0)])
  rows = Rows(x, np.arange(20.0), np.r_[np.full(10, 3.0), np.full(10, 1.0)])
  units = stock.make_units(SimpleNamespace(fit_rows=rows), (0, 1, 2))
  assert units.columns == (0, 1, 2) and units.scales == (pytest.approx(100.0), 1.0, 1.0)


def test_terms_without_factors_and_numbers():
  found = stock.bare_terms(parse("2.5*x*z - 3*sin(x) + 4.5"))
  assert {expression.sort_operands(node) for node in found} == {
    expression.sort_operands(parse("x*z")), expression.sort_operands(parse("sin(x)"))}
  assert stock.bare_terms(parse("2.5")) == []


def test_an_answer_is_what_remains_of_a_formula(rng):
  rows = Rows(rng.uniform(1, 2, (9, 2)), 10 * rng.normal(size=9), np.ones(9))
  units = stock.Units((1, 0), (100.0, 1.0))
  node = stock.answer(parse("2.5*x + z"), units, rows)
  np.testing.assert_allclose(expression.evaluate(node, rows.x), 0.025 * rows.x[:, 1] + rows.x[:, 0])
  least = stock.NEGLIGIBLE * np.ptp(rows.y)
  for factor, num in ((0.99, 1), (1.01, 2)):
    size = float(factor * least / np.max(rows.x[:, 0]))
    found = stock.answer(parse(f"2.5*x + {size!r}*z"), units, rows)
    assert len(expression.flatten(found, "+")) == num
  # What is undefined on a row is for others to judge; of nothing but what is negligible the first stays.
  assert len(expression.flatten(stock.answer(parse("x + log(z - 1.5)"), units, rows), "+")) == 2
  assert stock.answer(parse("1e-30*x + 1e-30*z"), units, rows).token == "*"
