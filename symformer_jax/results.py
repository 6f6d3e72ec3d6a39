"""What a search returns, and its JSON form (docs/design.md, contracts)."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.language import expression, loosened, printing, programs, source_code
from symformer_jax.language.expression import Node

OK, FAILED = "ok", "failed"


@dataclasses.dataclass(frozen=True)
class Constant:
  """A constant of a formula: fitted, or a whole number.

  Attributes:
    value: in the digits that the formula is written with.
    stderr: standard error of the fit; None where the data give none.
    exact: what the number is, as `2*pi` or `1/3`, where the data leave no doubt and decimals cannot say it.
    unit: as `m/s**2`, 1 for none, where the units of the columns were given and the formula leaves it no choice.
  """

  value: float
  stderr: float | None
  exact: str | None = None
  unit: str | None = None


@dataclasses.dataclass(frozen=True)
class Filled:
  """What a formula of a template has in the place of what was unknown.

  Attributes:
    functions: `("f(x)", "2*x/(x + 1.5)")` for each unknown function.
    parameters: `("k", constant)` for each parameter; its `stderr` is of the fit of all constants together.
  """

  functions: tuple[tuple[str, str], ...]
  parameters: tuple[tuple[str, Constant], ...]

  def to_json(self) -> dict[str, Any]:
    return {"functions": dict(self.functions),
            "parameters": {name: dataclasses.asdict(constant) for name, constant in self.parameters}}


@dataclasses.dataclass(frozen=True, repr=False)
class Equation:
  """One formula of a front.

  Attributes:
    node: the tree, over column indices, in the user's units.
    names: names of the columns.
    mse: mean squared error, squared units of y, each row counting as its weight; rmse: its root.
    r2: 1 - mse / weighted variance of y; None where it does not exist.
    relative_error: mean |error| / |y|, weighted as well; None where every y is 0.
    constants: those that were fitted, in the order in which they stand in the tree.
    filled: where a template was given, its unknown functions and parameters.
    number_units: the unit of each number of the tree in their order, whole ones as well; None where it is left open,
      and for all where units are not known.
    whole: of data that are not met exactly the whole numbers that may be parameters (`loosened.whole_numbers`), in the
      order of the tree, with the errors that they have as free constants: None where other numbers make up for one, or
      a template gives it; empty where none has an error.
    log_r2: with loss `log` that of log|y|, rows counting as the user has it; None where a value has another sign than
      y, and with other losses.
  """

  node: Node
  names: tuple[str, ...]
  mse: float
  r2: float | None
  relative_error: float | None
  constants: tuple[Constant, ...]
  filled: Filled | None = None
  number_units: tuple[str | None, ...] | None = None
  whole: tuple[Constant, ...] = ()
  log_r2: float | None = None

  def __repr__(self) -> str:
    # A tree's own form has a node in a node in a node.
    is_near = self.r2 is not None and 0.999999 <= self.r2 < 1  # where six digits would show a perfect fit
    r2 = "" if self.r2 is None else f", R2 1 - {1 - self.r2:.1e}" if is_near else f", R2 {self.r2:.6g}"
    return f"Equation({self.expression}, complexity {self.complexity}{r2})"

  def with_units(self, number_units: Sequence[str | None]) -> "Equation":
    """With the unit of each number of the tree."""
    kinds = loosened.kinds_of_numbers(self.node)

    def with_own(constants: Sequence[Constant], kind: int) -> tuple[Constant, ...]:
      own = [unit for other, unit in zip(kinds, number_units, strict=True) if other == kind]
      return tuple(dataclasses.replace(constant, unit=unit) for constant, unit in zip(constants, own, strict=True))

    whole = with_own(self.whole, loosened.WHOLE) if self.whole else ()
    return dataclasses.replace(self, constants=with_own(self.constants, loosened.FITTED), whole=whole,
                               number_units=tuple(number_units))

  @property
  def all_constants(self) -> tuple[Constant, ...]:
    """The fitted constants and the whole numbers that have an error, in the order in which they stand in the tree."""
    if not self.whole:
      return self.constants
    of_kind = {loosened.FITTED: iter(self.constants), loosened.WHOLE: iter(self.whole)}
    kinds = [kind for kind in loosened.kinds_of_numbers(self.node) if kind is not None]
    found = [(kind, next(of_kind[kind])) for kind in kinds]
    return tuple(each for kind, each in found if kind == loosened.FITTED or each.stderr is not None)

  @property
  def whole_numbers(self) -> list[tuple[float, str]]:
    """Whole numbers that were not fitted and have a unit, as the 2 of `2*x` in metres for seconds, and the unit;
    without those of `all_constants`.
    """
    numbers = [node for node in expression.walk(self.node) if node.is_number]
    whole = iter(self.whole)
    has_error = [kind == loosened.WHOLE and next(whole, Constant(0.0, None)).stderr is not None
                 for kind in loosened.kinds_of_numbers(self.node)]
    return [(node.value, unit) for node, unit, is_told in zip(numbers, self.number_units or (), has_error, strict=False)
            if unit not in (None, "1") and not programs.is_constant(node) and not is_told]

  @property
  def expression(self) -> str:
    """Python syntax with bare NumPy names, in the column names; with units, a factor 1 that has one is written."""
    return printing.to_text(self.node, self.names, has_ones=self.number_units is not None)

  @property
  def latex(self) -> str:
    return printing.to_latex(self.node, self.names)

  def source(self, language: str, *, cells: Sequence[str] | None = None) -> str:
    """The formula as text of another language, see `source_code.write`."""
    return source_code.write(self.node, self.names, language, cells=cells)

  @property
  def complexity(self) -> int:
    """Nodes of the expression tree."""
    return expression.complexity(self.node)

  @property
  def rmse(self) -> float:
    return math.sqrt(self.mse)

  def to_json(self) -> dict[str, Any]:
    return {
      "expression": self.expression, "latex": self.latex, "complexity": self.complexity, "r2": self.r2,
      "mse": self.mse, "rmse": self.rmse, "relative_error": self.relative_error,
      "constants": [dataclasses.asdict(c) for c in self.constants],
      "whole": [dataclasses.asdict(c) for c in self.whole],
    } | ({} if self.filled is None else {"filled": self.filled.to_json()}) | (
      {} if self.number_units is None else {"number_units": list(self.number_units)}) | (
      {} if self.log_r2 is None else {"log_r2": self.log_r2})


def whole_constants(node: Node, errors: Sequence[float | None]) -> tuple[Constant, ...]:
  """`Equation.whole` of a tree, from the errors of its whole numbers; none without errors."""
  values = loosened.whole_numbers(node) if errors else []
  return tuple(Constant(value, error) for value, error in zip(values, errors, strict=True))


@dataclasses.dataclass(frozen=True)
class Guess:
  """What became of a formula of the user's.

  Attributes:
    text: as it was given.
    expression: with fitted numbers, in the digits of a line of the front; empty where it is undefined on a row, or was
      not looked at.
    constants: fitted values by name, in all their digits; empty where nothing may be fitted. Numbers in the text stay
      as they are beside names; where there is no name they are fitted, but for whole ones.
    errors: standard errors by name, the form taken as given; None where the data give none.
    r2, rmse: of the fit, as those of `Equation`; None where it is undefined on a row, or was not looked at.
    line: the number in the front of the line that it is, perhaps in other terms; None where it is not listed.
    reason: why it is not recommended, a phrase; empty where it is.
    log_r2: as that of `Equation`.
  """

  text: str
  expression: str
  constants: dict[str, float]
  errors: dict[str, float | None]
  r2: float | None
  rmse: float | None
  line: int | None
  reason: str
  log_r2: float | None = None


@dataclasses.dataclass(frozen=True)
class Rejected:
  """A formula that describes the rows better than the recommended one, and is not listed.

  Attributes:
    expression: in the column names; r2: on the rows; complexity: nodes.
    reason: what is wrong with it, a phrase.
  """

  expression: str
  complexity: int
  r2: float | None
  reason: str


@dataclasses.dataclass(frozen=True)
class Seen:
  """What was seen of a data set on the way to the answer.

  Attributes:
    ranges: `(least, largest)` of each column in the rows: outside of it the formulas were not tested.
    unused: columns that do not stand in the recommended formula.
    noise: root mean squared error of the recommended formula as a share of y's standard deviation, both weighted.
    loss: which errors were made small; exponent: p where rows count as 1/|y|**(2 p); None where they do not count by
      |y|; num_light: rows that count less for being far from the formula.
    rejected: a few formulas that were left out for a fault, at most one for each reason.
    num_far: under squares and equal weights, rows that lie far from a formula and from all others; is_growing: whether
      errors grow with its values there; decades: that y spans where it misses the small values, else 0; see
      `selection.residuals`. The formula is the recommended one or, where that is
      a constant, the most accurate one first.
  """

  ranges: dict[str, tuple[float, float]]
  unused: tuple[str, ...]
  noise: float | None
  loss: str = "squared"
  exponent: float | None = 0.0
  num_light: int = 0
  rejected: tuple[Rejected, ...] = ()
  num_far: int = 0
  is_growing: bool = False
  decades: float = 0.0


@dataclasses.dataclass(frozen=True)
class Counts:
  """Candidates at each stage: drawn, valid formulas, different formulas, with fitted constants."""

  sampled: int = 0
  valid: int = 0
  distinct: int = 0
  refined: int = 0

  def __add__(self, other: "Counts") -> "Counts":
    return Counts(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))


@dataclasses.dataclass(frozen=True)
class Seconds:
  """Wall-clock time. `compile` is inside the others: `total` is from start to end of the search.

  Attributes:
    compile: tracing and compiling; encode, decode: sampling from the model; deduplicate: leaving out what is equal;
      refine: fitting constants; recombine: sums of library columns and of parts of others; evolve: breeding formulas,
      their constants fitted; select: reducing what was found to the front; search: all but compiling; total: all.
  """

  compile: float = 0.0
  encode: float = 0.0
  decode: float = 0.0
  deduplicate: float = 0.0
  refine: float = 0.0
  recombine: float = 0.0
  evolve: float = 0.0
  select: float = 0.0
  search: float = 0.0
  total: float = 0.0


# Why no further turn was begun: all turns over, met exactly or to their noise by a formula that a further turn did not
# improve, accurate enough, out of time, asked to stop; or all turns over, and more variables than the model knows.
BUDGET, EXACT, NOISE, ACCURACY, TIME, STOPPED, NO_MODEL = (
  "budget", "exact", "noise", "accuracy", "time", "stopped", "no_model")


@dataclasses.dataclass(frozen=True)
class Progress:
  """Where a search stood after a turn.

  Attributes:
    sampled: candidates drawn from the model so far.
    best: the most accurate formula so far, before selection; empty when none is defined on all points.
    r2: of it on the rows that constants were fitted to; None when there is none.
    source: who was asked in this turn; gained: whether the best has become better by it.
    seconds: since the search began.
  """

  sampled: int
  best: str
  r2: float | None
  source: str
  gained: bool
  seconds: float = dataclasses.field(compare=False)


class Step(NamedTuple):
  """A line of the front while it is searched, before selection: constants have all their digits.

  Attributes:
    complexity: nodes; r2: on the rows that constants were fitted to; expression: in the column names.
  """

  complexity: int
  r2: float
  expression: str


@dataclasses.dataclass(frozen=True)
class Standing(Progress):
  """Where a search stands after a turn, as a callback is told.

  Attributes:
    index: number of the data set in the call.
    front: formulas that no simpler one beats so far, from simple to accurate; made when it is first asked for.
  """

  index: int
  make_front: Callable[[], tuple[Step, ...]] = dataclasses.field(compare=False, repr=False)

  @functools.cached_property
  def front(self) -> tuple[Step, ...]:
    return self.make_front()


# Told where a search stands after each turn; what is true asks to end the search of that data set.
Callback = Callable[[Standing], Any]


@dataclasses.dataclass(frozen=True)
class SearchResult:
  """The answer for one data set.

  Attributes:
    status: `ok`, or `failed` with a `message` that says why; then `best` is None and `pareto` empty.
    best: the recommended formula.
    pareto: the front, from simple to accurate, and in it the constant and the linear fit even where it beats them.
    counts, seconds: what was done.
    seed: with the same seed and model the answer is the same on one platform.
    num_points: rows of the data set.
    model: name of the model.
    rounds: one for each turn; with the same seed and number of turns the answer is the same.
    ended_by: `budget`, `exact`, `noise`, `accuracy`, `time`, `stopped` or `no_model` (all turns over, none of the
      model's, for it knows fewer variables); empty for a failed data set.
    seen: ranges, unused columns, noise, what was left out and why; None for a failed data set.
    weights: of the rows [N], those of the user times those of the loss, mean 1 where above 0; None for a failed one.
    units: of each column, then of y, as written; None where they are not known.
    guesses: what became of each of the user's formulas; none with a template, whose guesses are of a part of it.
  """

  status: str
  message: str
  best: Equation | None
  pareto: tuple[Equation, ...]
  counts: Counts
  seconds: Seconds
  seed: int
  num_points: int
  model: str
  rounds: tuple[Progress, ...] = ()
  ended_by: str = ""
  seen: Seen | None = None
  weights: np.ndarray | None = dataclasses.field(default=None, compare=False, repr=False)
  units: tuple[str, ...] | None = None
  guesses: tuple[Guess, ...] = ()

  @property
  def loss(self) -> str:
    """Which errors were made small; `message` says how rows count for it."""
    return self.seen.loss if self.seen else "squared"

  @property
  def is_weighted(self) -> bool:
    """Whether rows count differently: then errors and R2 are weighted."""
    return self.weights is not None and np.ptp(self.weights[self.weights > 0]) > 0

  def to_json(self, *, data: str, target: str, features: list[str]) -> dict[str, Any]:
    """The contract's record of one data set; NaN and infinities, which JSON has not, become null."""
    return _finite({
      "data": data, "target": target, "features": features, "n_points": self.num_points, "model": self.model,
      "status": self.status, "message": self.message,
      "best": _with_tree(self.best) if self.best else None,
      "pareto": [_with_tree(equation) for equation in self.pareto],
      "candidates": dataclasses.asdict(self.counts),
      "seconds": {name: round(value, 4) for name, value in dataclasses.asdict(self.seconds).items()},
      "seed": self.seed, "rounds": [dataclasses.asdict(r) for r in self.rounds], "ended_by": self.ended_by,
      "seen": dataclasses.asdict(self.seen) if self.seen else None,
      "units": dict(zip([*features, target], self.units, strict=True)) if self.units else None,
      "guesses": [dataclasses.asdict(guess) for guess in self.guesses],
    })


def _with_tree(equation: Equation) -> dict[str, Any]:
  """Beside the text, whose numbers may stand in another order than those of the tree, to which units belong."""
  return equation.to_json() | {"tree": expression.to_tokens(equation.node)}


def _finite(value: Any) -> Any:
  if isinstance(value, dict):
    return {key: _finite(item) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [_finite(item) for item in value]
  return None if isinstance(value, float) and not math.isfinite(value) else value


def failed(message: str, *, model: str, seed: int, num_points: int = 0) -> SearchResult:
  """The result of a data set that could not be searched."""
  return SearchResult(FAILED, message, None, (), Counts(), Seconds(), seed, num_points, model)
