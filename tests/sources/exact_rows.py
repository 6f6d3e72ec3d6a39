"""Rows that a formula gives, and what another leaves of them."""

import numpy as np

from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser

NAMES = ("x", "y", "z", "w", "v")


def rows_of(text, box, *, num_rows=256, noise=0.0):
  rng = np.random.default_rng(3)
  x = np.column_stack([rng.uniform(low, high, num_rows) for low, high in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return Rows(x, y + noise * np.std(y) * rng.normal(size=num_rows), np.ones(num_rows))


def share_left(node, rows):
  return np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) / np.var(rows.y)
