"""Formulas and rows written by hand, for the tests of the selection's parts."""

import numpy as np

from symformer_jax.engine.rows import Rows
from symformer_jax.language import parser

NAMES = ("x", "z")


def parse(text):
  return parser.parse(text, NAMES)


def rows_of(x, y, weights=None):
  x = np.asarray(x, float)
  x = x[:, None] if x.ndim == 1 else x
  return Rows(x, np.asarray(y, float), np.ones(len(x)) if weights is None else np.asarray(weights, float))
