"""What the default config makes of sums over groups of columns, and of sums with functions known to many digits."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, different, nested, parse, task_of

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, exact_factors as exact_config, partitions as partitions_config
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.sources import asked_tables
from symformer_jax.sources.reductions import additive_groups, partitions
from symformer_jax.sources.reductions.additive_groups import Partition
from symformer_jax.sources.unknowns import block_exchange, exact_factors, exact_models, varying
from symformer_jax.sources.unknowns.exact_models import Fitted, Function, Structure

GROUPS, EXACT = DEFAULT.partitions, DEFAULT.exact_factors


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert partitions_config.PartitionsConfig() == GROUPS and exact_config.ExactFactorsConfig() == EXACT


def test_polynomials_have_a_degree():
  with pytest.raises(InputError, match="degrees: expected at least one"):
    exact_config.ExactFactorsConfig(degrees=())


# --- groups of columns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "num_rows", "is_asked"), [
  (2, 24, True), (2, 23, False), (9, 108, True), (9, 107, False), (10, 200, False)])
def test_groups_are_looked_for_among_nine_columns_with_twelve_rows_each(num_columns, num_rows, is_asked):
  assert partitions.Partitions(OPTIONS, ()).supports(task_of(num_columns, num_rows=num_rows)) is is_asked


@pytest.mark.parametrize(("share", "is_noise"), [(0.0029, False), (0.0031, True), (0.49, True), (0.51, False)])
def test_noise_is_three_thousandths_to_half_of_the_spread_of_y(share, is_noise, monkeypatch):
  asked = []
  rows = task_of(2, num_rows=240).fit_rows

  def fit_sum(x, target, groups, config):
    asked.append((len(x), config.num_steps))
    return SimpleNamespace(errors=np.full(len(x), share * np.std(rows.y)))

  monkeypatch.setattr(additive_groups.gaussian_process, "fit_sum", fit_sum)
  assert bool(additive_groups.find_noise(rows.x, rows.y, GROUPS)) is is_noise
  assert asked == [(96, 20)]


def exponential(x):
  return np.exp(x[:, 0])


def found_in(monkeypatch, *, errors=(1e-3, 1e-3), link="y", noise=0.0, functions=(exponential,) * 2, y=None):
  """What is found of two columns with such errors of one group and of two, and what has been fitted to how many rows.
  """
  asked = []

  def fit_partition(x, y, link, groups, config, *, noise):
    asked.append((len(x), config.num_steps))
    found = SimpleNamespace(groups=groups, functions=functions, errors=np.full(len(x), 1e-3))
    return Partition(link, found, errors[len(groups) - 1])

  monkeypatch.setattr(additive_groups, "fit_partition", fit_partition)
  rows = task_of(2, num_rows=240).fit_rows
  return additive_groups.find_partition(rows.x, rows.y if y is None else y, link, GROUPS, noise), asked


@pytest.mark.parametrize(("whole", "parts", "is_sum"), [
  (1e-3, 1.19e-3, True), (1e-3, 1.21e-3, False), (1e-9, 0.9e-5, True), (1e-9, 1.1e-5, False),
  (0.03, 0.029, True), (0.035, 0.031, False)])
def test_a_finer_sum_is_about_as_good_or_nearly_exact(whole, parts, is_sum, monkeypatch):
  found, asked = found_in(monkeypatch, errors=(whole, parts))
  assert (found is not None) is is_sum
  # The one that is taken is fitted to all rows, in more steps.
  assert set(asked[:2]) == {(96, 20)} and (asked[2:] == [(240, 40)]) is is_sum


def test_a_group_of_six_is_parted_in_all_ways_and_one_of_seven_by_one_column():
  for size, sizes in ((6, [1] * 6 + [2] * 15 + [3] * 10), (7, [1] * 7)):
    assert sorted(len(groups[0]) for groups in additive_groups._finer((tuple(range(size)),), GROUPS)) == sizes


@pytest.mark.parametrize(("times", "share", "is_asked"), [
  (2.1, 0.51, True), (2.1, 0.49, False), (1.9, 1.0, False)])
def test_logarithms_are_of_rows_of_twice_the_noise_if_these_are_half_of_all(times, share, is_asked, monkeypatch):
  y = np.where(np.arange(240) < 240 * share, times, -1.0) + 1e-6 * np.arange(240)
  _, asked = found_in(monkeypatch, link="exp", noise=1.0, y=y)
  assert bool(asked) is is_asked


@pytest.mark.parametrize(("noise", "times", "is_power"), [
  (0.0, 2.9, True), (0.0, 3.1, False), (1e-9, 0.45, True), (1e-9, 0.55, False)])
def test_a_factor_is_a_power_within_three_errors_and_half_of_one_under_noise(noise, times, is_power, monkeypatch):
  rows = task_of(2, num_rows=240).fit_rows
  off = times * 1e-3 * np.where(np.argsort(np.argsort(rows.x[:, 0])) % 2, 1, -1)
  functions = (lambda x: 1.7 * np.log(x[:, 0]) + off, exponential)
  found, _ = found_in(monkeypatch, link="exp", noise=noise, functions=functions)
  assert (found is None) is is_power  # what is left is one group


@pytest.mark.parametrize(("times", "names"), [(2.9, ["y", "exp"]), (3.1, ["y"])])
def test_of_two_functions_of_y_one_with_three_times_the_errors_is_left_out(times, names, monkeypatch):
  asked, taken = [], []
  errors = {"y": 1e-3, "exp": times * 1e-3}
  monkeypatch.setattr(additive_groups, "find_noise", lambda x, y, config: asked.append(len(x)) or 1.0)
  monkeypatch.setattr(partitions.Partitions, "_partition", lambda source, task, rows, columns, name, noise: (
    asked.append(len(rows)) or Partition(name, None, errors[name])))
  monkeypatch.setattr(partitions.Partitions, "_split", lambda source, task, columns, partition, share: taken.append(
    (partition.link, share)))
  partitions.Partitions(OPTIONS, ())._splits(task_of(2, num_rows=400))
  # A function is known ten times better, in squares, than noise lets any row be predicted.
  assert set(asked) == {224} and taken == [(name, pytest.approx(0.1)) for name in names]


def test_sixteen_formulas_of_a_group_are_kept_and_a_node_costs_two_nats():
  rows = task_of(2).fit_rows
  found = [SimpleNamespace(node=nested(num), mse=1e-3) for num in range(1, 21)]
  part = partitions.Part((0, 1), search=SimpleNamespace(
    task=SimpleNamespace(fit_rows=rows), pool=SimpleNamespace(shortlist=lambda: found)))
  part.look(GROUPS)
  assert len(part.forms) == 16
  np.testing.assert_allclose(np.diff([nats for nats, _ in part.forms]), 2)


def test_ninety_six_formulas_of_a_sum_are_written():
  asked, task = [], task_of(2)
  split = SimpleNamespace(parts=(), new=lambda most: asked.append(most) or [
    parse(f"{k}.5*x + z") for k in range(300)])
  found = partitions.Partitions(OPTIONS, ())._propose(SimpleNamespace(task=task, state=[split]), 1, Clock())
  assert asked == [96] and len(found.nodes) == 96


# --- functions that are known to many digits -------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "num_rows", "is_asked"), [
  (1, 99, False), (2, 64, True), (2, 63, False), (5, 64, True), (6, 99, False)])
def test_up_to_five_columns_of_sixty_four_rows(num_columns, num_rows, is_asked):
  assert exact_factors.ExactFactors(OPTIONS, ()).supports(task_of(num_columns, num_rows=num_rows)) is is_asked


def test_sums_are_of_three_terms_of_thirty_two(monkeypatch):
  asked = []
  monkeypatch.setattr(block_exchange, "products_of", lambda *given: None)
  monkeypatch.setattr(block_exchange, "best_sets", lambda products, *, max_size, config: asked.append(max_size) or [])
  rows = task_of(5, num_rows=2000).fit_rows
  known = varying._known_terms(rows, (1, 2, 3, 4), (), None, EXACT.sums)
  assert len(known.nodes) == 32
  list(varying._models(rows, known, "y", 0, "plain", EXACT.sums))
  assert asked == [3]


@pytest.mark.parametrize(("left", "is_near"), [(0.9e-4, True), (1.1e-4, False)])
def test_what_leaves_a_ten_thousandth_is_looked_at_further_and_six_sums_at_most(left, is_near, monkeypatch):
  rows, asked = task_of(2).fit_rows, []
  models = [varying.Model(0.0, "y", 0, "plain", (parse("z"),), left)] * 10
  monkeypatch.setattr(varying, "find_models", lambda *given, **named: models)
  assert len(list(exact_models._varying(rows, (0, 1), ("y",), None, EXACT))) == 6 * is_near
  monkeypatch.setattr(exact_models, "sharpened", lambda rows, structure, config: asked.append(config.degrees) or Fitted(
    structure, {}, 8, left, left))
  assert len(list(exact_models._additive(rows, (0, 1), ("y",), EXACT))) is int(is_near)
  assert asked == [(8,)]


def sharpened_by(monkeypatch, errors, *, num_rows=200, ratio=2.0):
  """What is known of one function where polynomials of each degree leave so much; shapes of what was solved."""
  asked = []
  z = np.where(np.arange(num_rows) % 2, 1.0, -1.0)  # of variance 1, and every square is 1

  def design(x, structure, scales, degree):
    return np.column_stack([(1 - np.sqrt(errors.get(degree, 0.5))) * z, np.ones((num_rows, degree))])

  def solved(design, z, weights):
    asked.append(design.shape)
    return np.eye(design.shape[1])[0]

  monkeypatch.setattr(exact_models, "_design", design)
  monkeypatch.setattr(exact_models, "_solved", solved)
  rows = Rows(np.linspace(1, ratio, num_rows)[:, None], z, np.ones(num_rows))
  return exact_models.sharpened(rows, Structure("y", ((exact_models.ONE, 0),)), EXACT), asked


def test_polynomials_have_three_rows_for_each_constant_and_a_fourth_of_them_is_left_out(monkeypatch):
  _, asked = sharpened_by(monkeypatch, {}, num_rows=76)
  assert asked == [(57, 1 + degree) for degree in (8, 12, 16, 20, 24)]
  _, asked = sharpened_by(monkeypatch, {}, num_rows=74)
  assert [width for _, width in asked] == [9, 13, 17, 21]


@pytest.mark.parametrize(("ratio", "num_scales"), [(2.9, 1), (3.1, 2)])
def test_polynomials_are_of_logarithms_too_where_the_largest_value_is_three_times_the_least(
    ratio, num_scales, monkeypatch):
  _, asked = sharpened_by(monkeypatch, {}, ratio=ratio)
  assert len(asked) == 5 * num_scales


@pytest.mark.parametrize(("error", "least", "degree"), [
  (0.9e-8, 1e-9, 12), (1.1e-8, 1e-9, 20), (0.81e-24, 0.0, 12), (1.21e-24, 0.0, 20)])
def test_fewer_polynomials_do_that_leave_ten_times_the_least_or_rounding(error, least, degree, monkeypatch):
  fitted, _ = sharpened_by(monkeypatch, {12: error, 20: least})
  assert fitted.degree == degree and fitted.first == pytest.approx(0.5)


@pytest.mark.parametrize(("error", "first", "is_found"), [
  (0.9e-9, 1.0, True), (1.1e-9, 1.0, False), (0.9e-10, 1e-8, True), (1.1e-10, 1e-8, False),
  (0.9e-24, 1e-25, True), (1.1e-24, 1e-25, False)])
def test_two_models_whose_errors_fall_with_more_polynomials(error, first, is_found, monkeypatch):
  structures = [Structure("y", ((parse("x"), column),)) for column in range(5)]
  monkeypatch.setattr(exact_models, "_additive", lambda *given: structures)
  monkeypatch.setattr(exact_models, "_varying", lambda *given: [])
  monkeypatch.setattr(exact_models, "sharpened", lambda rows, structure, config: Fitted(structure, {}, 8, error, first))
  found = exact_models.find_models(task_of(2).fit_rows, (0, 1), ("y",), allows=None, config=EXACT)
  assert len(found) == 2 * is_found


@pytest.mark.parametrize(("middle", "num_places"), [(0.185, 64), (0.18, 62)])
def test_a_function_is_known_where_its_variance_is_thirty_times_the_median(middle, num_places):
  """Of a line through the middle the variance is the square of the place."""
  x = np.array([-1, *np.linspace(middle, middle + 1e-9, 62), 1])
  rows = Rows(x[:, None], x, np.ones(64))
  fitted = Fitted(Structure("y", ((exact_models.ONE, 0),)), {0: exact_models.Scale(-1.0, 1.0, False)}, 1, 0.0, 0.0)
  [function], _ = exact_models.functions_of(rows, fitted, EXACT)
  assert len(function.places) == num_places


def test_functions_are_looked_at_in_sixty_four_places():
  x = np.linspace(-1, 1, 300)
  rows = Rows(x[:, None], x**2, np.ones(300))
  fitted = Fitted(Structure("y", ((exact_models.ONE, 0),)), {0: exact_models.Scale(-1.0, 1.0, False)}, 3, 0.0, 0.0)
  [function], _ = exact_models.functions_of(rows, fitted, EXACT)
  assert len(function.places) == 64


@pytest.mark.parametrize(("error", "off", "is_multiple"), [
  (1e-6, 99.0, True), (1e-6, 101.0, False), (0.0, 0.9e-18, True), (0.0, 1.1e-18, False)])
def test_functions_are_multiples_within_a_hundred_times_their_errors_or_rounding(error, off, is_multiple):
  places, unit = np.arange(64.0), np.tile([1.0, 1.0, -1.0, -1.0], 16)
  known = Function(0, (), places, unit, error)
  size = np.sqrt(off * (5 * error or 4.0))  # of twice the other one: its error is four times that
  function = Function(0, (), places, 2 * unit + size * np.tile([1.0, -1.0], 32), error)
  found = exact_models._multiple(function, known, EXACT)
  assert found == (pytest.approx(2) if is_multiple else None)


def forms_of(monkeypatch, *, error, values=None, shortlist=()):
  """What a function is asked for, when it is met, and its forms."""
  asked = []

  def ask(table, sources, options, clock, *, num, is_met):
    asked.append((num, is_met))
    return SimpleNamespace(pool=SimpleNamespace(shortlist=lambda: shortlist))

  monkeypatch.setattr(asked_tables, "table_of", lambda *given: "table")
  monkeypatch.setattr(asked_tables, "ask", ask)
  values = np.tile([1.0, -1.0], 32) if values is None else values
  source, function = exact_factors.ExactFactors(OPTIONS, ()), Function(0, (), np.arange(64.0), values, error)
  return source._forms(function, task_of(2), (), Clock()), asked


@pytest.mark.parametrize(("error", "known"), [(1e-9, 1e-9), (0.0, 1e-24)])
def test_a_function_is_met_by_a_dozen_nodes_within_thirty_times_its_error(error, known, monkeypatch):
  _, [(num, is_met)] = forms_of(monkeypatch, error=error)
  assert num == 160
  for num_nodes, mse, does in ((12, 29, True), (13, 29, False), (12, 31, False)):
    found = [SimpleNamespace(node=nested(num_nodes), mse=mse * known)]
    assert is_met(SimpleNamespace(pool=SimpleNamespace(in_order=lambda found=found: found))) is does


def test_six_forms_are_kept_of_those_within_thirty_times_the_error_and_a_node_costs_two_nats(monkeypatch):
  near = [SimpleNamespace(node=nested(num), mse=29e-9) for num in range(1, 9)]
  far = [SimpleNamespace(node=nested(1), mse=31e-9)]
  forms, _ = forms_of(monkeypatch, error=1e-9, shortlist=[*far, *near])
  np.testing.assert_allclose(np.diff([nats for nats, _ in forms]), [2] * 5)


@pytest.mark.parametrize(("error", "is_constant"), [(1 / 29, True), (1 / 31, False)])
def test_a_function_is_a_constant_within_thirty_times_its_error(error, is_constant, monkeypatch):
  forms, asked = forms_of(monkeypatch, error=error)
  assert bool(forms) is is_constant is not bool(asked)


def test_twenty_four_formulas_of_a_model(monkeypatch):
  functions = [Function(column, ((exact_models.ONE, 1.0),), np.arange(9.0), np.arange(9.0), 1e-9) for column in (0, 1)]
  monkeypatch.setattr(exact_models, "functions_of", lambda *given: (functions, 0.0))
  monkeypatch.setattr(exact_factors.ExactFactors, "_forms", lambda *given: [(float(i), each) for i, each in enumerate(
    different(9))])
  fitted = Fitted(Structure("y", ()), {}, 8, 0.0, 0.0)
  assert len(exact_factors.ExactFactors(OPTIONS, ())._formulas(task_of(2), fitted, (), Clock())) == 24
