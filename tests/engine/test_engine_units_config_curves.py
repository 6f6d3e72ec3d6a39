"""What the default config makes of curves of one column, closed forms, and what stands beside functions of sums."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import nested, task_of

from symformer_jax.engine.config import DEFAULT, ClosedFormsConfig, CurvesConfig, PlainWavesConfig, RidgesConfig
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows
from symformer_jax.sources import closed_forms, plain_waves
from symformer_jax.sources.curves import curves
from symformer_jax.sources.ridges import ridges

CURVES, RIDGES = DEFAULT.curves, DEFAULT.ridges


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert CurvesConfig() == CURVES and RidgesConfig() == RIDGES
  assert ClosedFormsConfig() == FORMS and PlainWavesConfig() == FORMS.waves


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


# --- waves and logarithms beside straight lines ----------------------------------------------------------------------

FORMS = DEFAULT.closed_forms


@pytest.mark.parametrize(("num_rows", "num_lines"), [(15, 0), (16, 1), (19, 1), (20, 2)])
def test_a_wave_has_four_rows_for_each_constant_of_it_and_of_the_line_beside_it(num_rows, num_lines, monkeypatch):
  asked = []
  monkeypatch.setattr(plain_waves, "_best_frequency", lambda *given: asked.append(1))
  x = np.arange(float(num_rows))
  assert not list(plain_waves.waves_beside_lines(Rows(x[:, None], x, np.ones(num_rows)), (0,), FORMS.waves))
  assert len(asked) == num_lines


@pytest.mark.parametrize(("place", "is_tried"), [(1, True), (80, True), (81, False), (33.4, False)])
def test_frequencies_are_a_fourth_of_a_period_apart_up_to_half_a_period_a_row(place, is_tried):
  x = np.append(np.sort(np.random.default_rng(0).uniform(0, 1, 38)), [-0.1, 1.1])
  frequency = 2 * np.pi / (4 * 1.2) * place
  rows = Rows(x[:, None], np.cos(frequency * x + 1), np.ones(40))
  found = plain_waves._best_frequency(rows, 0, np.full((40, 1), 40**-0.5), FORMS.waves)
  assert (abs(found / frequency - 1) < 1e-12) is is_tried


@pytest.mark.parametrize(("num_rows", "num_found"), [(3, 2), (2, 0)])
def test_a_power_and_an_exponential_have_three_rows_for_each_term(num_rows, num_found):
  x = np.array([1.0, 2.0, 4.0])[:num_rows]
  rows = Rows(x[:, None], 3 * x**2.5, np.ones(num_rows))
  found = closed_forms.log_linear(rows, (0,), FORMS)
  assert len(found) == num_found


def test_closed_forms_are_lines_of_logarithms_products_with_exponentials_and_waves(monkeypatch):
  asked = []
  for module, name in ((closed_forms, "log_linear"), (closed_forms, "products_with_exponentials"),
                       (plain_waves, "waves_beside_lines")):
    monkeypatch.setattr(module, name, lambda *given, name=name, **named: asked.append(name) or [])
  closed_forms.ClosedForms()._proposal(task_of(1))
  assert asked == ["log_linear", "products_with_exponentials", "waves_beside_lines"]
