"""What a task hands on to its rule, shares that are measured apart, one ear for compilations."""

import jax
import numpy as np

from symformer_jax.engine import clock, criteria, screening
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language.rules import Rule
from symformer_jax.language.units import read_units


def test_the_rule_of_a_task_with_units_knows_their_dimensions():
  x, names = np.random.default_rng(0).uniform(1, 3, (20, 2)), ("x", "z")
  task = make_task((x, x[:, 0]), names, SearchOptions(units=read_units({"x": "1", "z": "1", "y": "1"})))
  assert task.units is not None and task.rule.dimensions == task.units.dimensions
  assert make_task((x, x[:, 0]), names, SearchOptions()).rule.dimensions is None


def test_what_columns_explain_is_a_share_of_what_is_left_of_values_and_of_ranks_each(monkeypatch):
  rng = np.random.default_rng(5)
  basis = np.linalg.qr(np.column_stack([np.ones(40), rng.normal(size=(40, 4))]))[0].T[1:]
  first, second, third, noise = basis
  # After the first column the second explains all that is left of y, the third two fifths of what is left of its ranks.
  y, ranks = first + 0.01 * second, 0.5 * first + 0.8 * third + noise
  monkeypatch.setattr(screening, "_ranks", lambda values: ranks)
  monkeypatch.setattr(screening, "_basis", lambda column, root, degree: column[:, None])
  rows = Rows(np.column_stack([first, second, third]), y, np.ones(40))
  assert screening.choose_columns(rows, Rule(3), num_columns=2) == (0, 1)


def test_what_is_compiled_is_listened_to_by_one_for_all_clocks(monkeypatch):
  watch = clock.Clock()
  jax.monitoring.record_event_duration_secs("/jax/core/compile/backend_compile_duration", 0.5)
  assert watch.compiled() > 0
  asked = []
  monkeypatch.setattr(jax.monitoring, "register_event_duration_secs_listener", asked.append)
  clock.Clock()
  assert not asked
  monkeypatch.setattr(clock.Clock, "_is_listening", False)
  clock.Clock()
  clock.Clock()
  assert len(asked) == 1


def test_exact_is_what_single_precision_leaves_of_the_spread():
  assert criteria.error_floor(2.0) == 2 * float(np.finfo(np.float32).eps) ** 2
