"""What the default config makes of tables that neighbours tell of, of other coordinates, of changes that are tried."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize
from small_data import OPTIONS, task_of

from symformer_jax.engine import gaussian_process
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, reductions as reductions_config
from symformer_jax.language import expression
from symformer_jax.sources import registry
from symformer_jax.sources.reductions import (
  coordinates,
  invariances,
  neighbours,
  reduced_tables,
  reductions,
  relations,
  shifted_changes,
  smaller_tables,
  tried_changes,
)

CONFIG = DEFAULT.reductions
NEAR, COORDINATES, TRIED = CONFIG.neighbours, CONFIG.coordinates, CONFIG.tried


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert reductions_config.NeighboursConfig() == NEAR and reductions_config.CoordinatesConfig() == COORDINATES
  assert reductions_config.TriedChangesConfig() == TRIED


def columns_of(num_columns, num_rows=80):
  return np.random.default_rng(0).uniform(1, 3, (num_rows, num_columns))


def values_of(nodes, *at):
  return sorted(float(expression.evaluate(node, np.array([at], float))[0]) for node in nodes)


# --- nearest neighbours ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_factors", "power"), [
  *((1, p) for p in (-4, -3, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3, 4)),
  *((2, p) for p in (-3, -2, -1, -0.5, 0.5, 1, 2, 3)), *((3, p) for p in (-2, -1, -0.5, 0.5, 1, 2, 3))])
def test_y_is_divided_by_products_of_these_powers(num_factors, power):
  x = columns_of(num_factors + 1)
  factor = np.prod(x[:, :-1] ** power, axis=1)
  table = reduced_tables.whole(x, factor * np.sin(x[:, -1]))
  [step] = [smaller.steps[-1] for _, smaller in neighbours._divided(table, NEAR)
            if smaller.columns == (expression.variable(num_factors),)]
  np.testing.assert_allclose(expression.evaluate(step, x), factor)


def test_columns_that_are_joined_are_sums_and_products_of_these_powers():
  found = values_of(neighbours._joins((0, 1), NEAR), 2, 3)
  assert found == pytest.approx(sorted([5, -1, 6, 2 / 3, 18, 2 / 9, 2 * 3**0.5, 2 / 3**0.5]))
  found = values_of(neighbours._joins((0, 1, 2), NEAR), 2, 3, 5)
  assert found == pytest.approx(sorted([30, 10 / 3, 6 / 5, 2 / 15]))


@pytest.mark.parametrize(("num_columns", "num_joined"), [(6, 15 + 20), (7, 21)])
def test_of_six_columns_at_most_three_are_joined(num_columns, num_joined):
  x = columns_of(num_columns, num_rows=9)
  assert len(list(neighbours._joined(reduced_tables.whole(x, x[:, 0]), NEAR))) == num_joined


@pytest.mark.parametrize(("whole", "rough", "is_found"), [
  (1.0, 0.2, True), (1.0, 0.201, False), (0.1, 0.06, True), (0.1, 0.0601, False)])
def test_neighbours_differ_by_a_fifth_and_by_six_tenths_of_what_they_did_and_four_tables_are_kept(
    whole, rough, is_found, monkeypatch):
  table = reduced_tables.whole(columns_of(2), np.arange(80.0))
  monkeypatch.setattr(neighbours, "roughness", lambda x, targets: np.array([whole]))
  monkeypatch.setattr(neighbours, "_divided", lambda *given: [(rough, table)] * 3)
  monkeypatch.setattr(neighbours, "_joined", lambda *given: [(rough, table)] * 3)
  assert len(neighbours.find_smaller(table, NEAR)) == 4 * is_found


def followed(monkeypatch, *errors):
  """Whether neighbours lead from a table with errors of 1 to one that is far better, and how many steps that takes."""
  asked = []
  found = iter(errors)
  monkeypatch.setattr(smaller_tables.neighbours, "find_smaller", lambda table, config: asked.append(table) or [table])
  monkeypatch.setattr(smaller_tables.gaussian_process, "fit", lambda *given: None)
  way = SimpleNamespace(_config=DEFAULT.reductions, table=SimpleNamespace(x=None, y=None), _surrogate=None,
                        _errors=np.ones(2), _errors_of=lambda *given: np.array([next(found), 1.0]),
                        _is_small=lambda *given: True)
  return smaller_tables._Way.follow_neighbours(way), len(asked)


def test_neighbours_lead_in_three_steps_to_half_of_the_errors(monkeypatch):
  assert followed(monkeypatch, 0.5) == (True, 1)
  assert followed(monkeypatch, 0.51, 0.49) == (True, 2)
  assert followed(monkeypatch, 0.9, 0.8, 0.7, 0.1) == (False, 3)


# --- other coordinates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("logarithm", "num_powers"), [(39.9, 2), (40.1, 1)])
def test_powers_have_logarithms_up_to_forty(logarithm, num_powers):
  x = np.array([[np.exp(2.0), logarithm / 2], [1.0, -1.0]])  # the second is no base
  nodes = [node for _, node in coordinates._joined(x, COORDINATES) if node.token == "pow"]
  assert len(nodes) == num_powers


def found_in_coordinates(monkeypatch, *, whole, alone, joined):
  """Whether other coordinates are found where sums leave such errors, and what has been fitted to how many rows."""
  asked = []
  x = columns_of(2, num_rows=90)

  def fit_partition(shown, *, groups, y, link, config):
    asked.append((link, len(y), config.num_steps))
    is_whole, is_alone = groups == ((0, 1),), np.isin(shown, x).all()
    return SimpleNamespace(error=whole if is_whole else alone if is_alone else joined)

  monkeypatch.setattr(coordinates, "fit_partition", fit_partition)
  found = coordinates.find_coordinates(x, np.arange(1.0, 91), COORDINATES, DEFAULT.reductions.surrogate)
  assert set(asked) == {("y", 72, 20), ("exp", 72, 20)}
  return found is not None


@pytest.mark.parametrize(("whole", "alone", "joined", "is_found"), [
  (0.03, 1.0, 0.015, True), (0.031, 1.0, 0.001, False),  # nothing is known of y
  (0.02, 0.0241, 0.01, True), (0.02, 0.0239, 0.01, False),  # it is a sum as it is
  (0.02, 1.0, 0.0101, False), (1e-6, 1.0, 0.99e-5, True), (1e-6, 1.0, 1.01e-5, False),
  (1e-6, 1.01e-5, 1e-7, True), (1e-6, 0.99e-5, 1e-7, False)])
def test_a_sum_in_other_coordinates_leaves_half_of_the_errors(whole, alone, joined, is_found, monkeypatch):
  assert found_in_coordinates(monkeypatch, whole=whole, alone=alone, joined=joined) is is_found


# --- changes that are tried ------------------------------------------------------------------------------------------


def test_forty_changes_are_weighed_of_those_that_slopes_contradict_least(monkeypatch):
  changes = [SimpleNamespace(error=float(error), dropped=0, replaced={}, complexity=0,
                             apply=lambda *given, error=error: (error, None)) for error in range(50, 0, -1)]
  monkeypatch.setattr(tried_changes, "_changes", lambda *given: changes)
  told = tried_changes._Told(SimpleNamespace(columns=(0,), steps=()), None, None)
  assert [step.table for step in tried_changes._steps(told, TRIED)] == list(range(1, 41))


def test_ways_begin_at_or_lead_to_one_and_a_hundred():
  x = columns_of(2)
  told = tried_changes._Told(reduced_tables.whole(x, x[:, 0]), np.full((80, 2), np.nan), np.ones(80))
  ends = [[expression.evaluate(getattr(step, "node", step), x)[0] for step in weighed.table.steps]
          for weighed in tried_changes._steps(told, TRIED) if weighed.dropped == (1,)]
  y = x[0, 1]
  np.testing.assert_allclose(ends, [[y, 1], [1, y], [1, y - 1], [100, y], [100, y - 100]])


class Smooth:
  """A function with no errors, as likely as it says."""

  bend = 0.0

  def __init__(self, nats):
    self.nats = lambda: nats

  def errors(self):
    return np.zeros(1)


def found_by_tries(monkeypatch, first, *tries):
  """The complexity of the table that is taken, where tables are so likely and changes so complex."""
  def known(nats, columns, taken=None):
    table = SimpleNamespace(columns=columns, _replace=lambda *, error: taken)
    return tried_changes._Known(table, None, Smooth(nats), nats)

  monkeypatch.setattr(tried_changes._Way, "begin", lambda way: known(first, (0, 1)))
  monkeypatch.setattr(tried_changes._Way, "likely", lambda way, at: [
    (SimpleNamespace(complexity=complexity), known(nats, (0,), complexity)) for nats, complexity in tries])
  return tried_changes.find_smaller(columns_of(2), np.arange(80.0), TRIED)


def test_a_node_costs_half_a_nat(monkeypatch):
  assert found_by_tries(monkeypatch, 7.0, (9.01, 4)) == [4] and found_by_tries(monkeypatch, 7.0, (8.99, 4)) == []
  assert found_by_tries(monkeypatch, 7.0, (12.0, 4), (11.01, 2)) == [2]
  assert found_by_tries(monkeypatch, 7.0, (12.0, 4), (10.99, 2)) == [4]


@pytest.mark.parametrize(("error", "is_known"), [(0.499, True), (0.501, False)])
def test_nothing_is_known_where_half_of_the_variance_is_left(error, is_known, monkeypatch):
  asked = []
  smooth = SimpleNamespace(errors=lambda: np.full(60, error**0.5))
  monkeypatch.setattr(tried_changes._Way, "begin", lambda way: tried_changes._Known(
    SimpleNamespace(columns=(0, 1)), None, smooth, 0.0))
  monkeypatch.setattr(tried_changes._Way, "likely", lambda way, at: asked.append(at) or [])
  assert not tried_changes.find_smaller(columns_of(2, 60), np.resize([1.0, -1.0], 60), TRIED)
  assert bool(asked) is is_known


def test_the_likeliest_four_of_half_of_224_rows_ascend_by_six_steps(monkeypatch):
  rows, steps = [], []

  class Made(Smooth):
    parameters = np.zeros(5)

    def __init__(self, x, y, *given, **named):
      super().__init__(-1.0 if given else 0.0)  # no table is likelier than the first
      rows.append(len(y))

    def climbed(self, num_steps):
      steps.append(num_steps)
      return self

    def slopes(self):
      return np.ones((224, 2))

  monkeypatch.setattr(tried_changes, "Likely", Made)
  monkeypatch.setattr(tried_changes.gaussian_process, "likeliest", lambda x, y, config, bend: Made(x, y))
  x = columns_of(2, 300)
  assert tried_changes.find_smaller(x, x[:, 0] * np.exp(x[:, 1]), TRIED) == []
  of_half = rows.count(112)
  assert of_half > 20 and rows == [224, *[112] * of_half, *[224] * 4] and steps == [6] * 4


def test_beyond_three_standard_deviations_of_its_errors_the_logarithm_of_y_may_be_smooth(monkeypatch):
  asked = []

  def likeliest(x, y, config, bend):
    asked.append((config, bend))
    return SimpleNamespace(bend=0.0, nats=lambda: 0.0, errors=lambda: np.full(len(y), np.nan))

  monkeypatch.setattr(tried_changes.gaussian_process, "likeliest", likeliest)
  assert not tried_changes.find_smaller(columns_of(2), np.arange(80.0), TRIED) and asked == [(TRIED.surrogate, 3.0)]


def test_sources_that_come_first_are_asked_of_tables_under_noise():
  assert {name for name, _ in TRIED.first} == {
    "closed_forms", "product_units", "short_forms", "fraction_pursuit", "separable", "rationals", "library"}
  assert {name for name, _ in TRIED.first} < set(TRIED.sources)


def test_where_y_has_errors_these_turns_of_a_table_of_several_columns_come_first(monkeypatch):
  """Then all others, in the order of a table."""
  source = source_of()
  names = ("separable", "library", "rationals", "closed_forms", "fraction_pursuit", "short_forms", "product_units",
           "curves")
  turns = [SimpleNamespace(source=SimpleNamespace(name=name), number=number) for name in names for number in range(3)]
  monkeypatch.setattr(reductions.Reductions, "_turns_of", lambda self, search: turns)
  found = source._turns_under_errors(SimpleNamespace(is_of_one=False, states=dict.fromkeys(names)))
  first = [("closed_forms", 0), ("product_units", 0), ("short_forms", 0), ("fraction_pursuit", 0),
           ("fraction_pursuit", 1), ("rationals", 0), ("library", 0), ("separable", 0)]
  asked = [(turn.source.name, turn.number) for turn in found]
  assert asked == [*first, *(pair for name in names for number in range(3) if (pair := (name, number)) not in first)]
  assert source._turns_under_errors(SimpleNamespace(is_of_one=True, states=dict.fromkeys(names))) == turns


def test_three_columns_grow_together_at_most(monkeypatch):
  sizes = []
  monkeypatch.setattr(tried_changes, "_scalings", lambda told, chosen, config: sizes.append(len(chosen)) or [])
  for name in ("_of_one", "_products", "_sums"):
    monkeypatch.setattr(tried_changes, name, lambda *given: [])
  list(tried_changes._changes(SimpleNamespace(table=SimpleNamespace(columns=range(5))), TRIED))
  assert set(sizes) == {2, 3}


@pytest.mark.parametrize(("share", "is_term"), [(0.031, True), (0.029, False)])
def test_a_term_that_is_tried_varies_by_three_hundredths_of_y(share, is_term):
  x = np.resize([1.0, -1.0], 60)
  y = np.resize([1.0, 1.0, -1.0, -1.0], 60)
  told = tried_changes._Told(reduced_tables.whole(x[:, None], y), np.full((60, 1), share), np.ones(60))
  assert any(change.summand is not None for change in tried_changes._of_one(told, 0, TRIED)) is is_term


# --- the smooth function, and which tables are known -----------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "expected"), [(159, [(159, 40)]), (160, [(80, 40), (160, 10)])])
def test_from_160_rows_on_the_likelihood_ascends_with_half_of_them_and_ten_steps_more(num_rows, expected, monkeypatch):
  asked = []

  def kernel(z, *given):
    return SimpleNamespace(z=z, target=z, groups=[(0,)], variances=z, solve=lambda parameters: True)

  monkeypatch.setattr(gaussian_process, "_Kernel", kernel)
  monkeypatch.setattr(gaussian_process, "_ascend", lambda kernel, start, num_steps, config: asked.append(
    (len(kernel.z), num_steps)) or start)
  gaussian_process._most_likely(kernel(columns_of(1, num_rows)), CONFIG.surrogate)
  assert asked == expected


def test_where_changes_are_tried_the_likelihood_ascends_in_twenty_five_steps_from_more_noise(monkeypatch):
  asked = []
  monkeypatch.setattr(optimize, "minimize", lambda loss, start, *, options, **rest: asked.append(
    (np.exp(start), options)) or SimpleNamespace(x=start))
  rng = np.random.default_rng(0)
  gaussian_process.fit(rng.normal(size=(20, 2)), rng.normal(size=20), TRIED.surrogate)
  [(start, options)] = asked
  np.testing.assert_allclose(start, [2, 2, 3, 1, 0.03])
  assert options == {"maxiter": 25, "maxfun": 50}


def source_of():
  return registry.SOURCES["reductions"](None, OPTIONS)


def test_other_coordinates_are_looked_for_after_twenty_turns(monkeypatch):
  asked, source = [], source_of()
  monkeypatch.setattr(reductions.Reductions, "_ask", lambda *given: ())
  monkeypatch.setattr(reductions.Reductions, "_in_other_columns", lambda *given: asked.append(turn) or ())
  tables = (SimpleNamespace(turns=[None] * 99, is_done=False),)
  for turn in range(1, 30):
    source._propose(SimpleNamespace(task=task_of(2), state=tables), turn, Clock())
  assert asked == [20]


@pytest.mark.parametrize(("error", "is_tried"), [(3.9e-3, False), (4.1e-3, True)])
def test_changes_are_tried_where_no_table_is_known_to_four_thousandths(error, is_tried, monkeypatch):
  asked = []
  x = columns_of(2)
  table = reduced_tables.whole(x, x[:, 0])._replace(error=error)
  monkeypatch.setattr(reductions, "find_reductions", lambda *given: [table])
  monkeypatch.setattr(tried_changes, "find_smaller", lambda *given: asked.append(True) or [])
  assert len(source_of()._tables(x, x[:, 0])) == 1 and bool(asked) is is_tried


@pytest.mark.parametrize(("error", "is_exact"), [(4.9e-3, True), (5.1e-3, False)])
def test_a_table_that_was_tried_is_asked_of_sources_of_exact_ones_below_five_thousandths(error, is_exact, monkeypatch):
  x = columns_of(2)
  monkeypatch.setattr(reductions, "find_reductions", lambda *given: [])
  monkeypatch.setattr(tried_changes, "find_smaller", lambda *given: [
    reduced_tables.whole(x, x[:, 0])._replace(error=error)])
  [(_, names)] = source_of()._tables(x, x[:, 0])
  assert names == (CONFIG.sources if is_exact else TRIED.sources)


@pytest.mark.parametrize(("error", "is_rounded"), [(0.9e-5, False), (1.1e-5, True)])
def test_short_forms_are_asked_of_tables_that_are_known_no_better_than_a_hundred_thousandth(error, is_rounded):
  assert ("short_forms" in reductions._asked_of(SimpleNamespace(error=error), CONFIG)) is is_rounded


# --- relations of slopes ---------------------------------------------------------------------------------------------


def with_a_small_part(monkeypatch, *shares):
  """What a relation of three slopes is, one of which is small, where it leaves such shares with that and without."""
  found, asked, null_vector = iter(shares), [], relations.robust_null_vector
  monkeypatch.setattr(relations, "share_left", lambda *given: next(found))
  monkeypatch.setattr(relations, "robust_null_vector", lambda rows, num: asked.append(num) or null_vector(rows, num))
  one, other = np.random.default_rng(0).choice([-1.0, 1.0], (2, 200))
  weights = relations.relation(np.column_stack([one, -one + 0.01 * other, -0.01 * other]), CONFIG)
  assert asked == [8, 8]  # rows are weighed eight times
  return weights


@pytest.mark.parametrize(("without", "counts"), [(0.0201, True), (0.0199, False)])
def test_a_small_part_counts_with_which_a_tenth_is_left(without, counts, monkeypatch):
  assert (with_a_small_part(monkeypatch, 0.002, without) is not None) is counts


# --- changes with numbers --------------------------------------------------------------------------------------------


def sum_of_powers(p, q, num_odd=0):
  """What slopes tell of a function of a**p + b**q, of which so many of a hundred rows have another sign."""
  a, b = columns_of(2, 100).T
  of_a, of_b = p * a ** (p - 1), q * b ** (q - 1)
  return invariances._sums_of_any_powers(a, b, of_a * np.where(np.arange(100) < num_odd, -1, 1), of_b, CONFIG)


def test_powers_of_any_exponent_have_slopes_of_one_sign_in_nine_tenths_of_the_rows():
  assert len(sum_of_powers(1.37, 2.41, num_odd=10)) == 1 and not sum_of_powers(1.37, 2.41, num_odd=11)


def test_exponents_below_a_tenth_are_of_a_logarithm():
  [(_, p, q, _)] = sum_of_powers(0.11, 2.41)
  assert (p, q) == (0.11, 2.41) and not sum_of_powers(0.09, 2.41)  # which this is not


@pytest.mark.parametrize(("value", "is_short"), [(273.15, True), (1.2345, True), (1.23456, False), (6.54321, False)])
def test_numbers_with_a_unit_have_five_digits(value, is_short):
  assert relations.shortest(value, lambda _: 0.0, CONFIG) == (value, is_short)


@pytest.mark.parametrize(("error", "is_told"), [(0.99e-3, True), (1.01e-3, False)])
def test_a_change_with_a_number_errs_by_a_thousandth(error, is_told, monkeypatch):
  monkeypatch.setattr(shifted_changes, "relation", lambda growths, config: np.array([1.0, 1.0, -3.0]))
  monkeypatch.setattr(shifted_changes, "share_left", lambda *given: error)
  x, y = columns_of(2), np.arange(80.0)
  slopes = np.ones((80, 2))
  told = shifted_changes._power_and_offset(slopes[:, 0], y, y, 1.0, CONFIG)
  others = [shifted_changes._lines_through_a_point(x, y, slopes, 0, CONFIG),
            shifted_changes._exponents(x, slopes, 0, 1, CONFIG),
            shifted_changes._moved_together(x, y, slopes, 0, 1, CONFIG)]
  assert [told is not None, *map(bool, map(list, others))] == [is_told] * 4


@pytest.mark.parametrize(("logarithm", "is_found"), [(39.9, True), (40.1, False)])
def test_powers_whose_exponent_is_a_column_have_logarithms_up_to_forty(logarithm, is_found, monkeypatch):
  monkeypatch.setattr(shifted_changes, "relation", lambda growths, config: np.array([1.0, 1.0, 0.0]))
  monkeypatch.setattr(shifted_changes, "share_left", lambda *given: 0.0)
  x = np.column_stack([np.full(9, np.e), np.linspace(1, logarithm, 9)])
  assert bool(list(shifted_changes._exponents(x, np.ones((9, 2)), 0, 1, CONFIG))) is is_found
