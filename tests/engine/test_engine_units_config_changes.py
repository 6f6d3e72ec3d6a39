"""What the default config makes of tables that neighbours tell of, of other coordinates, and of changes that are tried.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, reductions as reductions_config
from symformer_jax.language import expression
from symformer_jax.sources.reductions import coordinates, neighbours, reduced_tables, smaller_tables, tried_changes

NEAR, COORDINATES, TRIED = DEFAULT.reductions.neighbours, DEFAULT.reductions.coordinates, DEFAULT.reductions.tried


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


def test_eight_changes_are_tried_of_those_that_slopes_contradict_least(monkeypatch):
  smaller = SimpleNamespace(is_usable=True)
  changes = [SimpleNamespace(error=float(error), apply=lambda *given: (smaller, None)) for error in range(12, 0, -1)]
  monkeypatch.setattr(tried_changes, "_changes", lambda *given: changes)
  found = tried_changes._likely(SimpleNamespace(table=None, slopes=None), TRIED)
  assert [change.error for change, _ in found] == list(range(1, 9))
