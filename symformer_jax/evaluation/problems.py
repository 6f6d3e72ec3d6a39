"""Benchmark problems: a true formula, where its points are drawn, and the files that list them."""

from collections.abc import Iterator, Sequence
import csv
import dataclasses
import functools
from importlib import resources
import itertools
import math
import os
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.evaluation import choices
from symformer_jax.evaluation.metrics import Box
from symformer_jax.files import check_regular, shorten
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import VARIABLE, Node, walk
from symformer_jax.selection import scoring

if TYPE_CHECKING:  # as in `_vocabulary`
  from symformer_jax.language.vocabulary import Vocabulary

COLUMNS = choices.PROBLEM_COLUMNS
OPTIONAL_COLUMNS = ("n_points", "spacing")
LISTS = choices.LISTS
UNIFORM, GRID = "uniform", "grid"
POINTS_PER_VARIABLE = 100
NUM_SCORING_POINTS = 10_000
MAX_VARIABLES = 26
LARGEST_VALUE = choices.LARGEST_VALUE
# Draws for one set of points before a range counts as empty.
MAX_DRAWS = 50
# Fewer scoring points than this outside the box say nothing.
MIN_POINTS_OUTSIDE = 100
# A box is finite when it is at so many random points; the training protocol asks the same of 4 x 100.
NUM_BOX_POINTS = 1000


@dataclasses.dataclass(frozen=True)
class Problem:
  """One row of a problem file.

  Attributes:
    family, name: how it is reported.
    truth: the formula, over columns 0 ... num_variables - 1.
    text: the formula as the file has it.
    box: `(low, high)` per column.
    num_points: of the training set.
    spacing: `uniform` (random) or `grid` (evenly spaced, one variable).
    largest: points whose value is larger in size are left out, as in training.
    unusable: why it cannot be asked; empty where it can.
  """

  family: str
  name: str
  truth: Node
  text: str
  box: Box
  num_points: int
  spacing: str = UNIFORM
  largest: float = LARGEST_VALUE
  unusable: str = ""

  @property
  def num_variables(self) -> int:
    return len(self.box)

  @property
  def names(self) -> tuple[str, ...]:
    return variable_names(self.num_variables)


def variable_names(count: int) -> tuple[str, ...]:
  """x, y, z, then the letters before them: w, v, ..."""
  return tuple("xyzwvutsrqponmlkjihgfedcba"[:count])


# --- files -----------------------------------------------------------------------------------------------------


def load_list(name: str) -> list[Problem]:
  """A list that ships with the package, one of `LISTS`.

  Raises:
    InputError: for an unknown name.
  """
  if name not in LISTS:
    raise InputError(f"unknown problem list {name!r}: expected one of {', '.join(LISTS)}")
  text = resources.files(__package__).joinpath("problem_lists", f"{name}.csv").read_text(encoding="utf-8")
  return _read(text, f"{name}.csv")


def read_problems(path: str | os.PathLike) -> list[Problem]:
  """Reads a problem file: CSV with columns family,name,n_vars,expression,ranges.

  Variables are x, y, z, ...; ranges `lo:hi;lo:hi`, or empty for the largest finite box made of {-5, 0, 5}.
  Optional columns: n_points (100 per variable), spacing (`uniform` or `grid`).
  Raises:
    InputError: names the row and says what is wrong with it.
  """
  try:
    check_regular(path)
    text = pathlib.Path(path).read_text(encoding="utf-8-sig")
  except (OSError, UnicodeDecodeError) as error:
    reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
    raise InputError(f"cannot read problem file {str(path)!r}: {reason}") from None
  try:
    return _read(text, pathlib.Path(path).name)
  except csv.Error as error:
    raise InputError(f"cannot read problem file {str(path)!r}: {error}") from None


def _read(text: str, file: str) -> list[Problem]:
  rows = csv.DictReader(text.splitlines())
  header = [name.strip() for name in rows.fieldnames or ()]
  missing = [name for name in COLUMNS if name not in header]
  if missing:
    raise InputError(f"{file}: no column {missing[0]!r}, expected {','.join(COLUMNS)}, got {','.join(header)!r}")
  if twice := [name for i, name in enumerate(header) if name in header[:i]]:
    raise InputError(f"{file}: two columns are called {twice[0]!r}")
  rows.fieldnames = header
  problems = [_problem(row, _check_cells(row, header, f"{file}, row {i}")) for i, row in enumerate(rows, 1)]
  if not problems:
    raise InputError(f"{file}: no problems below the header")
  repeated = [p.name for i, p in enumerate(problems) if p.name in {q.name for q in problems[:i]}]
  if repeated:
    raise InputError(f"{file}: the name {repeated[0]!r} stands in two rows, expected different names")
  return problems


def _check_cells(row: dict, header: Sequence[str], where: str) -> str:
  """Refuses a row without a cell for each column, or without a name that can be printed; where it stands, with its
  name.
  """
  num_cells = sum(cell is not None for name, cell in row.items() if name is not None) + len(row.get(None, ()))
  where = f"{where} ({shorten(row['name'] or 'without a name', 60)})"
  if num_cells != len(header):
    raise InputError(f"{where}: expected {len(header)} cells ({','.join(header)}), got {num_cells}")
  if not row["name"].strip():
    raise InputError(f"{where}: name: expected a name, got nothing")
  for key in ("family", "name"):  # a line of the report, of a table and of a figure each
    if not row[key].isprintable():
      raise InputError(f"{where}: {key}: expected signs that can be printed, got {shorten(repr(row[key]), 60)}")
  return where


def _problem(row: dict[str, str], where: str) -> Problem:
  count = _whole_number(row["n_vars"], where, "n_vars", at_most=MAX_VARIABLES)
  try:
    truth = parser.parse(row["expression"], variable_names(count))
  except ExpressionError as error:
    raise InputError(f"{where}: {error}") from None
  box = _parse_ranges(row["ranges"], count, where) if row["ranges"].strip() else largest_finite_box(truth, count)
  unusable = ""
  if box is None:
    box, unusable = (_SIDES[0],) * count, "no box made of -5, 0 and 5 on which the formula is finite; give its ranges"
  num_points = POINTS_PER_VARIABLE * count
  if (row.get("n_points") or "").strip():
    num_points = _whole_number(row["n_points"], where, "n_points", at_most=1_000_000)
  spacing = (row.get("spacing") or UNIFORM).strip()
  if spacing not in (UNIFORM, GRID) or (spacing == GRID and count > 1):
    raise InputError(f"{where}: spacing: expected uniform, or grid with one variable, got {spacing!r}")
  # Whether its ranges hold usable points is seen when it is asked: other rows have theirs.
  return Problem(
    row["family"], row["name"], truth, row["expression"], box, num_points, spacing, unusable=unusable)


def _whole_number(text: str, where: str, column: str, *, at_most: int) -> int:
  digits = text.strip().lstrip("0")
  if not digits.isdecimal() or len(digits) > len(str(at_most)) or not 1 <= int(digits) <= at_most:
    raise InputError(f"{where}: {column}: expected a whole number from 1 to {at_most}, got {shorten(repr(text))}")
  return int(text)


def _parse_ranges(text: str, count: int, where: str) -> Box:
  parts = text.split(";")
  if len(parts) != count:
    raise InputError(f"{where}: ranges: expected {count} of the form lo:hi with ';' between, got {text!r}")
  box = []
  for part in parts:
    try:
      low, high = (float(end) for end in part.split(":"))
    except ValueError:
      raise InputError(f"{where}: ranges: expected lo:hi with numbers, got {part!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
      raise InputError(f"{where}: ranges: expected lo < hi, both finite, got {part!r}")
    box.append((low, high))
  return tuple(box)


# Of the paper's boxes, the largest first.
_SIDES = ((-5.0, 5.0), (0.0, 5.0), (-5.0, 0.0))

# --- points ----------------------------------------------------------------------------------------------------


def largest_finite_box(truth: Node, num_variables: int) -> Box | None:
  """The largest box made of {-5, 0, 5} on which the formula is finite (the paper's rule); None where none is."""
  rng = np.random.default_rng(0)
  unit = rng.uniform(size=(NUM_BOX_POINTS, num_variables))
  # Only columns that the formula uses have a say: beyond a few of them the choices would be too many.
  used = sorted({n.value for n in walk(truth) if n.token == VARIABLE})
  boxes = itertools.product(_SIDES, repeat=len(used))
  for choice in sorted(boxes, key=lambda box: -math.prod(high - low for low, high in box)):
    box = tuple(dict(zip(used, choice, strict=True)).get(d, _SIDES[0]) for d in range(num_variables))
    low, high = np.array(box).T
    if np.isfinite(expression.evaluate(truth, low + (high - low) * unit)).all():
      return box
  return None


def _is_usable(y: np.ndarray, problem: Problem) -> np.ndarray:
  """Points beside a pole are left out, as in training: their values would be all that a score sees."""
  return np.isfinite(y) & (np.abs(y) <= problem.largest)


def _describe_no_point(problem: Problem, where: str) -> str:
  return (f"no point of {problem.text!r} {where} has a finite value of at most {problem.largest:g} in size; "
          "--max_abs_value moves that bound")


def draw_points(
  problem: Problem, num_points: int | None = None, *, rng: np.random.Generator, spacing: str | None = None
) -> np.ndarray:
  """Points of a problem with finite true values, float64.

  Args:
    num_points: the problem's own number by default.
    rng: draws them; a grid needs none.
    spacing: the problem's own by default. Points of a grid where the truth is undefined are left out.
  Returns:
    points [N, D+1], y in the last column.
  Raises:
    InputError: when (almost) no point in the ranges has a usable value.
  """
  if problem.unusable:
    raise InputError(problem.unusable)
  num_points = num_points or problem.num_points
  if (spacing or problem.spacing) == GRID:
    blocks = iter([np.linspace(*problem.box[0], num_points)[:, None]])
  else:
    blocks = _uniform_blocks(problem.box, num_points, rng)
  found, total = [], 0
  for x in blocks:
    y = scoring.evaluate(problem.truth, x)
    found.append(np.column_stack([x, y])[_is_usable(y, problem)])
    total += len(found[-1])
    if total >= num_points:
      break
  if total < min(num_points, 5):
    raise InputError(_describe_no_point(problem, f"in {format_box(problem.box)}"))
  return np.concatenate(found)[:num_points]


def draw_points_outside(
  problem: Problem, num_points: int, *, distance: float, rng: np.random.Generator
) -> np.ndarray:
  """Points with finite true values outside the box but within `distance` of it (SymFormer, sec. 4.4).

  With several variables a point lies outside when one of its coordinates does.
  Raises:
    InputError: when (almost) no such point has a finite value.
  """
  low, high = np.array(problem.box).T
  wide = tuple((float(a), float(b)) for a, b in zip(low - distance, high + distance, strict=True))
  found, total = [], 0
  for x in _uniform_blocks(wide, num_points, rng):
    x = x[((x < low) | (x > high)).any(axis=1)]
    y = scoring.evaluate(problem.truth, x)
    found.append(np.column_stack([x, y])[_is_usable(y, problem)])
    total += len(found[-1])
    if total >= num_points:
      return np.concatenate(found)[:num_points]
  if total < MIN_POINTS_OUTSIDE:
    raise InputError(_describe_no_point(problem, f"outside {format_box(problem.box)} within {distance:g}"))
  return np.concatenate(found)


def _uniform_blocks(box: Box, num_points: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
  low, high = np.array(box).T
  for _ in range(MAX_DRAWS):
    yield rng.uniform(low, high, (num_points, len(box)))


def format_box(box: Box) -> str:
  """`lo:hi;lo:hi`, as in a problem file."""
  return ";".join(":".join(printing.format_number(end) for end in side) for side in box)


def move_box(problem: Problem, *, scale: float = 1.0, shift: float = 0.0) -> Problem:
  """The same function in other units: x' = scale * x + shift for every column, on the box moved with it."""
  inner = {d: _moved(expression.variable(d), scale, shift) for d in range(problem.num_variables)}
  box = tuple((low * scale + shift, high * scale + shift) for low, high in problem.box)
  truth = expression.substitute(problem.truth, inner)
  return dataclasses.replace(problem, truth=truth, box=box, text=printing.to_text(truth, problem.names))


def _moved(column: Node, scale: float, shift: float) -> Node:
  shifted = Node("+", (column, expression.number(-shift))) if shift else column
  return Node("*", (expression.number(1 / scale), shifted)) if scale != 1 else shifted


# --- fresh equations of the generator --------------------------------------------------------------------------


# 1024 equations of the generator, by the number of variables, whose functions occur in no training data of the
# shipped models.
_FRESH = pathlib.Path(__file__).parent / "fresh_equations" / "symformer_equations"
FRESH_EQUATIONS = {1: _FRESH / "univariate", 2: _FRESH / "bivariate"}


def load_equations(directory: str | os.PathLike, *, num_equations: int, split: str = "validation") -> list[Problem]:
  """Equations of a generated data set, never trained on when `split` is validation.

  Args:
    directory: what `data_gen.generate --out` was given.
    num_equations: the first so many; fewer when there are fewer.
  Raises:
    DataError: when there are no shards, or a damaged one.
  """
  from symformer_jax.data import records  # the lists above need no record reader

  problems: list[Problem] = []
  for shard in records.find_shards(directory, split):
    reader = records.ShardReader(shard)
    for block in map(reader.__getitem__, range(len(reader))):
      for e in range(len(block.ids)):
        if len(problems) == num_equations:
          return problems
        problems.append(_equation(block.ids[e], block.constants[e], block.domains[e], len(problems)))
  return problems


def _equation(ids: np.ndarray, mantissas: np.ndarray, domain: np.ndarray, index: int) -> Problem:
  vocab = _vocabulary(len(domain))
  # Stored in float32: read to the digits it holds, or x**6 would become x**6.0000002, undefined at negative x.
  scales = np.array(vocab.constant_scale)[ids].tolist()
  values = [float(f"{mantissa * scale:.7g}") for mantissa, scale in zip(mantissas.tolist(), scales, strict=True)]
  truth = expression.decode(ids, values, vocab)
  # Variables that an equation does not have are the last, in [0, 0]: a table of it has no such columns.
  box = tuple((float(low), float(high)) for low, high in domain if low < high)
  text = printing.to_text(truth, variable_names(len(box)))
  return Problem("fresh", f"fresh-{index + 1}", truth, text, box, POINTS_PER_VARIABLE * len(box))


@functools.cache
def _vocabulary(num_variables: int) -> "Vocabulary":
  from symformer_jax.language.vocabulary import Vocabulary

  return Vocabulary(num_variables)
