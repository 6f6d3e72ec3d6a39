"""What the default config makes of curves of one column, and of what stands beside functions of sums."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import nested, task_of

from symformer_jax.engine.config import DEFAULT, CurvesConfig, RidgesConfig
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows
from symformer_jax.sources.curves import curves
from symformer_jax.sources.ridges import ridges

CURVES, RIDGES = DEFAULT.curves, DEFAULT.ridges


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert CurvesConfig() == CURVES and RidgesConfig() == RIDGES


def test_curves_between_those_of_the_grid_have_exponents_moved_by_three_fiftieths():
  x = np.linspace(1, 3, 40)
  grid = curves.Grid(Rows(x[:, None], x, np.ones(40)), 0, ["exp"], CURVES)
  [values] = grid._with_next([curves.Place("exp", 1.0, 0.5, 0.0, False)], 1, -1)
  np.testing.assert_allclose(values[0], np.exp(0.5 * x))
  np.testing.assert_allclose(values[1], np.exp(0.5 * x * 4000 ** (1 / 54)))  # half a step to the next factor
  np.testing.assert_allclose(values[2], np.exp(0.5 * x * (x / 2) ** -0.06))


@pytest.mark.parametrize(("gain", "is_long"), [(2.1, True), (1.9, False)])
def test_what_a_ridge_may_be_added_to_pays_two_nats_for_a_node(gain, is_long):
  task = task_of(1)
  short, long = Candidate(nested(3), 1.0), Candidate(nested(4), float(np.exp(-2 * gain / len(task.fit_rows))))
  question = SimpleNamespace(task=task, pool=SimpleNamespace(in_order=lambda: [long, short]))
  assert ridges._seeds(question, RIDGES) == [[(long if is_long else short).node]]


def test_arguments_of_arcsines_come_near_to_one():
  x = np.linspace(1, 3, 40)
  grid = curves.Grid(Rows(x[:, None], x, np.ones(40)), 0, [], CURVES)
  assert grid._sizes("asin").tolist() == [0.25, 0.5, 0.7, 0.85, 0.95, 0.99]
