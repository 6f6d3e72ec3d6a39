"""What the default config makes of sums of parts, of coefficients that are ratios and of forms that grow: sizes."""

import fractions
import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import candidate, nested, parse, task_of

from symformer_jax.engine.config import DEFAULT, rationals as rationals_config, sums, templates, unknown_functions
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.rules import Rule
from symformer_jax.sources import tangents
from symformer_jax.sources.fractions import factoring, quadratics, rational_forms, rationals
from symformer_jax.sources.repairs import growth
from symformer_jax.sources.sums import products, terms
from symformer_jax.sources.unknowns import single_index
from symformer_jax.templates import answer


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (DEFAULT.terms, sums.TermsConfig), (DEFAULT.rationals, rationals_config.RationalsConfig),
    (DEFAULT.single_index, unknown_functions.SingleIndexConfig), (DEFAULT.templates, templates.TemplatesConfig)):
    assert part == make()


# --- sums and products of parts --------------------------------------------------------------------------------------


def test_formulas_are_put_together_of_six_parts_and_with_exponents_near_half_numbers(monkeypatch):
  asked = []
  monkeypatch.setattr(terms, "_all_sums", lambda parts, rows, links, config: asked.append(config.max_columns) or [])
  monkeypatch.setattr(terms, "_products", lambda parts, rows, config, near_half: asked.append(near_half) or [])
  terms.recombine([parse("x")], task_of(1, num_rows=100).fit_rows, columns=(0,))
  # Exponents of .481 and .519 are a half, those of .479 and .521 are not.
  assert asked[0] == 6 and [abs(exponent - 0.5) < asked[1] for exponent in (0.479, 0.481, 0.519, 0.521)] == [
    False, True, True, False]


def test_of_all_products_192_are_fitted(monkeypatch):
  rows = task_of(1).fit_rows
  many = [parse(f"{k}.5*x") for k in range(300)]
  monkeypatch.setattr(products, "find_products", lambda *given, **named: [many])
  monkeypatch.setattr(terms, "scored", lambda formulas, rows, **named: [(node, 1.0) for node in formulas])
  assert len(terms.products_of(rows, (0,), rule=Rule(1))) == 192


@pytest.mark.parametrize(("gained", "is_first"), [(5.9, False), (6.1, True)])
def test_a_node_of_a_product_costs_two_nats(gained, is_first, monkeypatch):
  rows = task_of(1, num_rows=100).fit_rows
  short, long = nested(2), nested(5)
  monkeypatch.setattr(products, "find_products", lambda *given, **named: [[short, long]])
  monkeypatch.setattr(terms, "scored", lambda formulas, rows, **named: [
    (node, 1.0 if node == short else math.exp(-2 * gained / 100)) for node in formulas])
  assert (terms.products_of(rows, (0,), rule=Rule(1))[0] == long) is is_first


@pytest.mark.parametrize(("mse", "tiers"), [(1e-3, ["any", "basic", "monomial"]), (1e-25, ["monomial"])])
def test_beside_a_formula_that_meets_the_data_the_last_search_alone_is_made(mse, tiers, monkeypatch):
  asked = []
  monkeypatch.setattr(terms, "library_of", lambda *given: None)
  monkeypatch.setattr(terms, "sums_of", lambda columns, rows, *, links, searches, **rest: asked.append(
    [search.tier for search in searches]) or [])
  pool = Pool(1.0, 100)
  pool.insert([candidate("1.5*x", mse)])
  terms.LibrarySums()._nodes(SimpleNamespace(task=task_of(1), pool=pool), 0, 1)
  assert asked == [tiers]


# --- ratios ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "share"), [
  (356 / 999, fractions.Fraction(356, 999)), (356 / 1001, None), (0.1234567, fractions.Fraction(1234567, 10**7)),
  (0.12345678, None), (-2 / 3, fractions.Fraction(-2, 3)), (1 / 3 * (1 + 1.9e-9), fractions.Fraction(1, 3)),
  (1 / 3 * (1 + 2.1e-9), None)])
def test_coefficients_are_ratios_of_numbers_up_to_a_thousand_or_have_seven_digits(value, share):
  assert factoring._short(value, DEFAULT.rationals.factoring) == share


@pytest.mark.parametrize(("num_terms", "is_factored"), [(3, False), (4, True)])
def test_fractions_of_four_terms_are_factored(num_terms, is_factored, monkeypatch):
  monkeypatch.setattr(rationals, "_is_whole_powered", lambda fraction: True)
  monkeypatch.setattr(factoring, "quotient", lambda *given: parse("x"))
  fraction = SimpleNamespace(num_terms=num_terms, numerator={(1.0,): 1.0}, denominator={(0.0,): 1.0})
  assert bool(rationals._factored(fraction, np.ones(1), 1.0, DEFAULT.rationals)) is is_factored


def test_each_set_of_fractions_is_looked_at_four_times(monkeypatch):
  rng, asked = np.random.default_rng(0), []
  argsort = np.argsort

  class Looked:
    def __init__(self, order):
      self.order = order

    def __getitem__(self, some):
      asked.append(some.stop)
      return self.order[some]

  monkeypatch.setattr(rational_forms.np, "argsort", lambda *given, **named: Looked(argsort(*given, **named)))
  next(rational_forms._few_columns(rng.normal(size=(100, 60)), rng.normal(size=100), np.ones(100), DEFAULT.rationals))
  assert asked == [4 * 32]


def root_of(missed, more, monkeypatch):
  """Whether sqrt(x**2) is written for a y that it misses by a share of the variance, by a formula that misses more of
  it by a factor; and the tolerances within which terms count as cancelled.
  """
  x = np.linspace(1, 3, 60)
  signs = np.where(np.arange(60) % 2, 1.0, -1.0)
  off = math.sqrt(missed * np.var(x))  # next to nothing of the variance
  asked = []
  offset = expression.Node("+", (expression.variable(0), expression.number(off * math.sqrt(more - 1))))
  for name in ("_written", "_written_below", "_written_beside"):
    monkeypatch.setattr(quadratics, name, lambda quadratic, sign, x, tolerance: asked.append(tolerance) or offset)
  quadratic = {(0.0,): 1.0}, {}, {(2.0,): -1.0}
  return quadratics._root(quadratic, x[:, None], x + off * signs, DEFAULT.quadratics) is not None, asked


@pytest.mark.parametrize(("missed", "more", "is_found"), [
  (0.99e-6, 3.9, True), (1.01e-6, 3.9, False), (0.99e-6, 4.1, False)])
def test_a_root_misses_a_millionth_and_its_formula_four_times_as_much(missed, more, is_found, monkeypatch):
  found, asked = root_of(missed, more, monkeypatch)
  assert found is is_found and bool(asked) is (missed < 1e-6)


def test_terms_of_which_a_thousandth_is_left_are_cancelled_under_noise(monkeypatch):
  _, asked = root_of(0.5e-6, 2.0, monkeypatch)
  for left, stays in ((0.9e-3, False), (1.1e-3, True)):
    assert bool(quadratics._sum({(1.0,): 1.0}, {(1.0,): 1.0}, left - 1, asked[0])) is stays


# --- growth, indices, templates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_constants", "is_grown"), [(10, True), (11, False)])
def test_formulas_of_ten_constants_grow(num_constants, is_grown):
  rows = task_of(1, num_rows=60).fit_rows
  node = parse(" + ".join(f"sin({k}.5*x)" for k in range(1, num_constants + 1)))
  found = growth._tangent(node, rows, np.ones(60), 1, DEFAULT.growth)
  assert (found is not None) is is_grown


@pytest.mark.parametrize(("front", "num"), [(1, 12), (2, 6), (3, 4), (12, 1), (20, 1)])
def test_twelve_places_of_a_formula_are_looked_at_fewer_in_later_fronts(front, num, monkeypatch):
  monkeypatch.setattr(tangents, "grafts", lambda found, root: list(range(40)))
  found = growth._tangent(parse("1.5*x"), task_of(1, num_rows=60).fit_rows, np.ones(60), front, DEFAULT.growth)
  assert len(found.grafts) == num


def test_sixty_four_products_are_compared_on_all_rows(monkeypatch):
  rng = np.random.default_rng(0)
  x = rng.uniform(1, 3, (60, 2))
  asked = []
  roughness = single_index._roughness
  monkeypatch.setattr(single_index, "_roughness", lambda target, order: asked.append(len(order)) or roughness(
    target, order))
  single_index.find_indices(Rows(x, np.sin(x[:, 0] * x[:, 1]), np.ones(60)), (0, 1), DEFAULT)
  assert asked.count(1) == 64


def test_constants_of_a_template_are_settled_on_twenty_thousand_rows(monkeypatch):
  class Enough(Exception):
    pass

  class Many:
    def sample(self, num_rows, *, seed):
      asked.append((num_rows, seed))
      raise Enough

  asked = []
  monkeypatch.setattr(answer, "Form", lambda template: None)
  with pytest.raises(Enough):
    answer.answer(SimpleNamespace(template=None, rows=Many()), [], SearchOptions(seed=7), None)
  assert asked == [(20_000, 7)]
