"""Small data and formulas for tests of what the default config makes of them."""

import numpy as np

from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import sort_operands
from symformer_jax.language.tidy import tidy

NAMES = ("x", "z", "w", "v")
OPTIONS = SearchOptions()


def parse(text):
  return sort_operands(tidy(parser.parse(text, NAMES)))


def task_of(num_columns, num_rows=100, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.uniform(1, 3, (num_rows, num_columns))
  return make_task((x, rng.uniform(1, 3, num_rows)), None, OPTIONS)


def candidate(text, mse):
  return Candidate(parser.parse(text, NAMES), mse)


def nested(num_nodes, column=0):
  """A formula of so many nodes and no constant."""
  node = expression.variable(column)
  for _ in range(num_nodes - 1):
    node = expression.Node("sin", (node,))
  return node


def different(num):
  """Formulas of different skeletons and three nodes each."""
  return [expression.Node("*", (expression.variable(i), expression.variable(num + 1))) for i in range(num)]
