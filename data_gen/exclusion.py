"""Functions by what they compute: fingerprints of equations, and the test problems that must stay out of the data."""

from collections.abc import Sequence
import csv
import dataclasses
import functools
import hashlib
import itertools
import os
from typing import Protocol

import numpy as np

from data_gen import defaults, trees
from data_gen.config import GeneratorConfig
from data_gen.stored import read_tree
from symformer_jax.data import records
from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.files import check_regular
from symformer_jax.language.expression import VARIABLE, Node, walk
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary

# In place of a problem file: the equations of the paper's generator that ship as a list, of one and two variables.
FRESH = "fresh"
VARIABLE_NAMES = ("x", "y", "z", "u", "v", "w")
# Two writings of one function differ by rounding alone: constants are stored in float32, values are of any steepness.
MATCH_TOLERANCE = 1e-5
MIN_COMMON_POINTS = 6
NUM_PROBES = 48


@functools.cache
def _probe_points(num_variables: int, edge: float) -> np.ndarray:
  """Fixed points [D, 48] of the box; on a third of them all variables are positive, as roots and logarithms need."""
  rng = np.random.default_rng(20230101)
  points = rng.uniform(-edge, edge, (num_variables, NUM_PROBES))
  points[:, ::3] = np.abs(points[:, ::3])
  return points


class Space(Protocol):
  """What `probe` reads of a configuration: the number of columns, and the box's edge."""

  @property
  def num_variables(self) -> int: ...

  @property
  def box_edge(self) -> float: ...


def probe(node: Node, config: Space) -> np.ndarray:
  """Values of a formula on fixed points [48]."""
  with np.errstate(all="ignore"):
    return trees.values(node, _probe_points(config.num_variables, config.box_edge))


def fingerprint(values: np.ndarray) -> int:
  """64 bits of what a formula computes, from its `probe`: equal for two writings of one function.

  Values at 12 points are rounded to 12 bits. Where a value lies on the edge of rounding two writings may get two
  fingerprints: with constants stored in float32 (6e-8) in about one of 200 pairs. Functions that differ by less
  than 1e-4 everywhere may share one.
  """
  values = values[:12]
  is_finite = np.isfinite(values)
  mantissa, exponent = np.frexp(np.where(is_finite, values, 0))
  # Values below 1e-12 are what is left of a cancellation.
  rounded = np.round(np.ldexp(np.round(mantissa * 2**12), exponent - 12), 12) + 0.0
  text = np.where(is_finite, rounded, np.inf).tobytes()
  return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@dataclasses.dataclass(frozen=True)
class Exclusion:
  """Test problems as values on the probe points.

  Attributes:
    names: of the problems [R]; a problem of several variables occurs once per assignment of them.
    values: [R, 48].
  """

  names: tuple[str, ...]
  values: np.ndarray

  def matches(self, y: np.ndarray) -> str:
    """Name of the problem that has the values `y` [48] where both are finite, or the empty string."""
    if not self.names:
      return ""
    common = np.isfinite(self.values) & np.isfinite(y)  # [R, 48]
    is_close = np.abs(self.values - y) <= MATCH_TOLERANCE * np.abs(self.values)
    is_match = (common.sum(axis=1) >= MIN_COMMON_POINTS) & (is_close | ~common).all(axis=1)
    return self.names[int(np.argmax(is_match))] if is_match.any() else ""


def rename(node: Node, columns: tuple[int, ...]) -> Node:
  """The tree with column `columns[i]` in the place of column i."""
  if node.token == VARIABLE:
    return node._replace(value=columns[node.value])
  return node._replace(args=tuple(rename(arg, columns) for arg in node.args))


def read_problems(path: os.PathLike | str | None, config: GeneratorConfig) -> Exclusion:
  """Reads a problem file (columns family, name, n_vars, expression); None excludes nothing.

  Problems of more variables than the configuration has cannot occur and are skipped. Those of fewer are
  excluded in every variable, and under every exchange of variables.
  Raises:
    InputError: for a file that cannot be read or is no problem file.
  """
  names, values = [], []
  num_variables = config.num_variables
  for name, node in read_rows(path, VARIABLE_NAMES):
    used = 1 + max((n.value for n in walk(node) if n.token == VARIABLE), default=0)
    for columns in itertools.permutations(range(num_variables), used):  # none where that is too many
      names.append(name)
      values.append(probe(rename(node, columns), config))
  return Exclusion(tuple(names), np.reshape(values, (len(names), NUM_PROBES)))


def read_rows(paths: os.PathLike | str | None, variable_names: Sequence[str]) -> list[tuple[str, Node]]:
  """Name and tree of the problems of a file, or of several with commas between; `FRESH` stands for the fresh equations.

  Raises:
    InputError: see `read_problems`.
  """
  return [row for path in str(paths).split(",") for row in
          (_fresh_equations() if path == FRESH else _read_file(path, variable_names))] if paths else []


def _fresh_equations() -> list[tuple[str, Node]]:
  found = []
  for num_variables, folder in defaults.FRESH_EQUATIONS.items():
    vocab, [shard] = Vocabulary(num_variables), records.find_shards(folder, "validation")
    reader = records.ShardReader(shard)
    found += [(f"fresh of {num_variables}", read_tree(ids.tolist(), mantissas, vocab))
              for block in map(reader.__getitem__, range(len(reader)))
              for ids, mantissas in zip(block.ids, block.constants, strict=True)]
  return found


def _read_file(path: str, variable_names: Sequence[str]) -> list[tuple[str, Node]]:
  if not path:
    raise InputError("problem files: expected a name between two commas, got nothing")
  try:
    check_regular(path)
    with open(path, newline="", encoding="utf-8") as file:
      rows = list(csv.DictReader(file))
  except (OSError, UnicodeDecodeError, csv.Error) as error:
    raise InputError(f"cannot read problem file {path}: {error}") from None
  found = []
  for i, row in enumerate(rows):
    if not row.get("name") or not row.get("expression"):
      got = ",".join(filter(None, row))
      raise InputError(f"{path}, row {i + 2}: expected columns family,name,n_vars,expression, got {got}")
    try:
      found.append((row["name"], parse(row["expression"], variable_names)))
    except ExpressionError as error:
      raise InputError(f"{path}, row {i + 2}: {error}") from None
  return found
