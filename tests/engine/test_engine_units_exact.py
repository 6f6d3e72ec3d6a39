"""What a task hands on: the dimensions that its rule asks for."""

import numpy as np

from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.language.units import read_units


def test_the_rule_of_a_task_with_units_knows_their_dimensions():
  x, names = np.random.default_rng(0).uniform(1, 3, (20, 2)), ("x", "z")
  task = make_task((x, x[:, 0]), names, SearchOptions(units=read_units({"x": "1", "z": "1", "y": "1"})))
  assert task.units is not None and task.rule.dimensions == task.units.dimensions
  assert make_task((x, x[:, 0]), names, SearchOptions()).rule.dimensions is None
