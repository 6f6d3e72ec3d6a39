"""Fits the constants of formulas to their data sets: one compiled call for all, in double precision."""

from collections.abc import Sequence

import numpy as np

from symformer_jax import compilation
from symformer_jax.engine.task import Task
from symformer_jax.language import programs
from symformer_jax.language.expression import Node
from symformer_jax.refinement import solve

# One compiled shape: padding is cheap (a program `0` takes one step). Formulas of more constants are none that a person
# would read.
NUM_PROGRAMS, MAX_CONSTANTS = 128, 16


def fit_constants(
  asked: Sequence[tuple[Task, Sequence[Node]]], *, method: str, max_steps: int
) -> list[list[tuple[Node, float]]]:
  """Fits trees to the rows of their tasks, in the user's units.

  Args:
    asked: tasks, each with trees of at most `programs.MAX_TOKENS` tokens.
    method, max_steps: as in `solve.fit_candidates`.
  Returns:
    For each task its trees with fitted constants and their weighted mean squared errors, infinite where a formula is
    undefined on a row; then its constants are as they came.
  """
  found: list[list[tuple[Node, float]]] = [[] for _ in asked]
  groups: dict[tuple[int, int], list[int]] = {}
  for place, (task, nodes) in enumerate(asked):
    if nodes:
      groups.setdefault((task.num_rows, task.num_columns), []).append(place)
  for (_, num_columns), places in groups.items():
    flat = [(i, node) for i, place in enumerate(places) for node in asked[place][1]]
    extra = compilation.bucket(len(places), compilation.dataset_buckets()) - len(places)
    points = [asked[place][0].padded_points() for place in [*places, *[places[-1]] * extra]]
    shared = [np.stack(arrays) for arrays in zip(*points, strict=True)]
    for begin in range(0, len(flat), NUM_PROGRAMS):
      block = flat[begin : begin + NUM_PROGRAMS]
      for (i, _), fitted in zip(block, _fit_block(block, shared, num_columns, method, max_steps), strict=True):
        found[places[i]].append(fitted)
  return found


def _fit_block(block, shared, num_columns: int, method: str, max_steps: int) -> list[tuple[Node, float]]:
  nodes = [node for _, node in block]
  vocab = programs.base_vocabulary(num_columns)
  ids, values = programs.encode_programs(nodes, vocab, num_programs=NUM_PROGRAMS, length=programs.MAX_TOKENS)
  dataset = np.zeros(NUM_PROGRAMS, np.int32)
  dataset[: len(block)] = [i for i, _ in block]
  fitted, fit = solve.polish(
    ids, values, *shared, vocab=vocab, method=method, max_steps=max_steps, max_constants=MAX_CONSTANTS,
    dataset=dataset)
  is_constant = np.asarray(vocab.is_constant)[ids]
  return [(programs.replace_values(node, fitted[k][is_constant[k]].tolist()) if np.isfinite(fit.loss[k]) else node,
           float(fit.loss[k])) for k, node in enumerate(nodes)]
