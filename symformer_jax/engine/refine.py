"""Fits the constants of formulas to their data sets: one compiled call for all, in double precision."""

from collections.abc import Sequence

import jax
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve

# Columns that the formulas of a task read are padded to one of these numbers; programs on a CPU to this one: padding is
# cheap (a program `0` takes one step).
COLUMN_BUCKETS = (1, 2, 4, 9, 18)
NUM_PROGRAMS = {"cpu": 128}


def fit_constants(
  asked: Sequence[tuple[Task, Sequence[Node]]], *, method: str, max_steps: int,
  max_constants: int = DEFAULT.pool.max_constants,
) -> list[list[tuple[Node, float]]]:
  """Fits trees to the rows of their tasks, in the user's units.

  Args:
    asked: tasks, each with trees of at most `programs.MAX_TOKENS` tokens.
    method, max_steps, max_constants: as in `solve.fit_candidates`.
  Returns:
    For each task its trees with fitted constants and their weighted mean squared errors, infinite where a formula is
    undefined on a row; then its constants are as they came.
  """
  found: list[list[tuple[Node, float]]] = [[] for _ in asked]
  groups: dict[tuple[int, int], list[int]] = {}
  columns = [columns_read(task, nodes) for task, nodes in asked]
  for place, (task, nodes) in enumerate(asked):
    if nodes:
      groups.setdefault((task.num_rows, compilation.bucket(len(columns[place]), COLUMN_BUCKETS)), []).append(place)
  for (_, num_columns), places in groups.items():
    flat = [(i, node) for i, place in enumerate(places) for node in asked[place][1]]
    extra = compilation.bucket(len(places), compilation.dataset_buckets()) - len(places)
    points = [asked[place][0].padded_points(columns[place], num_columns) for place in [*places, *[places[-1]] * extra]]
    shared = [np.stack(arrays) for arrays in zip(*points, strict=True)]
    where = [{column: i for i, column in enumerate(columns[place])} for place in places]
    are_all = [columns[place] == list(range(len(columns[place]))) for place in places]
    num_programs = _num_programs(len(flat))
    for begin in range(0, len(flat), num_programs):
      interruption.check()
      block = flat[begin : begin + num_programs]
      # Over the columns that are read: what is compiled does not depend on how many more there are.
      moved = [(i, node if are_all[i] else expression.with_columns(node, where[i])) for i, node in block]
      for (i, node), (values, mse) in zip(
        block, _fit_block(moved, shared, num_columns, num_programs, method, max_steps, max_constants), strict=True
      ):
        found[places[i]].append((programs.replace_values(node, values), mse))
  return found


def fit_programs(
  ids: np.ndarray, values: np.ndarray, points: tuple[np.ndarray, np.ndarray, np.ndarray], *, vocab: Vocabulary,
  method: str, max_steps: int, max_constants: int = DEFAULT.pool.max_constants,
) -> tuple[np.ndarray, np.ndarray]:
  """Fits programs to one data set by what `fit_constants` has compiled.

  Args:
    ids, values: programs of the base vocabulary [K, `programs.MAX_TOKENS`].
    points: `(x [N, D], y [N], weights [N])`, padded to the task's rows and one of `COLUMN_BUCKETS`.
    vocab: of D variables; method, max_steps, max_constants: as in `solve.fit_candidates`.
  Returns:
    `(numbers at constant tokens [K, L], weighted mean squared errors [K])`, infinite where a program is undefined.
  """
  if not len(ids):
    return np.zeros_like(values), np.zeros(0)
  shared = [array[None] for array in points]
  num = _num_programs(len(ids))
  found = []
  for begin in range(0, len(ids), num):
    interruption.check()
    block = [np.pad(array[begin : begin + num], ((0, num - len(array[begin : begin + num])), (0, 0)))
             for array in (ids, values)]
    fitted, fit = solve.polish(*block, *shared, vocab=vocab, method=method, max_steps=max_steps,
                               max_constants=max_constants, dataset=np.zeros(num, np.int32))
    found.append((fitted, fit.loss))
  fitted, loss = (np.concatenate(arrays)[: len(ids)] for arrays in zip(*found, strict=True))
  return fitted, loss


def _num_programs(num: int) -> int:
  """Programs of one compiled call, for so many."""
  return NUM_PROGRAMS.get(jax.default_backend()) or compilation.bucket(num, compilation.candidate_buckets())


def columns_read(task: Task, nodes: Sequence[Node]) -> list[int]:
  """Those of the task where they are few, else those that its formulas read, in their order."""
  if len(task.names) <= COLUMN_BUCKETS[-1]:
    return list(range(len(task.names)))
  return sorted({part.value for node in nodes for part in expression.walk(node) if part.token == expression.VARIABLE})


def _fit_block(
  block: Sequence[tuple[int, Node]], shared: Sequence[np.ndarray], num_columns: int, num_programs: int, method: str,
  max_steps: int, max_constants: int,
) -> list[tuple[list[float], float]]:
  """Constants and errors of `(data set, tree)`."""
  nodes = [node for _, node in block]
  vocab = programs.base_vocabulary(num_columns, has_requested=programs.has_requested(nodes))
  ids, values = programs.encode_programs(nodes, vocab, num_programs=num_programs, length=programs.MAX_TOKENS)
  dataset = np.zeros(num_programs, np.int32)
  dataset[: len(block)] = [i for i, _ in block]
  fitted, fit = solve.polish(
    ids, values, *shared, vocab=vocab, method=method, max_steps=max_steps, max_constants=max_constants,
    dataset=dataset)
  is_constant = np.asarray(vocab.is_constant)[ids]
  return [((fitted if np.isfinite(fit.loss[k]) else values)[k][is_constant[k]].tolist(), float(fit.loss[k]))
          for k in range(len(block))]
