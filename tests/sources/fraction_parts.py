"""Formulas of three columns and configs of exact fractions."""

import dataclasses
import functools

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import parser, printing

NAMES = ("x", "y", "z")
CONFIG = DEFAULT.exact_fractions
SHOWN = functools.partial(printing.to_text, names=NAMES)


def parse(text):
  return parser.parse(text, NAMES)


def with_config(**changes):
  return dataclasses.replace(CONFIG, **changes)
