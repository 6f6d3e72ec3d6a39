"""A config of reductions with few simple numbers, and slopes to look for relations in."""

import dataclasses
import functools

import numpy as np

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, printing

NAMES = ("x", "y", "z", "w")
CONFIG = dataclasses.replace(DEFAULT.reductions, least_chance=0.125, denominators=(1, 2, 4), power_denominators=(1, 3))
SHOWN = functools.partial(printing.to_text, names=NAMES)


def with_config(**changes):
  return dataclasses.replace(CONFIG, **changes)


def slopes_of(node, x, step=1e-6):
  """By central differences [N, D]."""
  return np.column_stack([(expression.evaluate(node, x + step * unit) - expression.evaluate(node, x - step * unit))
                          / (2 * step) for unit in np.eye(x.shape[1])])
