"""`refine`: fits the named constants of a formula a person has written, with no model in sight."""

from collections.abc import Mapping, Sequence
import dataclasses
import difflib
import numbers
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax import frames
from symformer_jax.errors import InputError, suggest
from symformer_jax.language import (
  constants as constants_lib,
  expression,
  interpreter,
  parser,
  printing,
  programs,
  source_code,
  sympy_trees,
)
from symformer_jax.language.expression import SYMBOL, VARIABLE, Node, number
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import bounded, snapping, solve, uncertainty
from symformer_jax.refinement.problem import STATUS_TEXT, Status

# Starts beside the given one: far starts of published fits need a few (docs/results/refinement.md).
NUM_STARTS = 32
# Formulas and data are padded to multiples of these, so that most share one compiled fit.
TOKEN_MULTIPLE, SLOT_MULTIPLE, POINT_MULTIPLE = 32, 4, 64
# A far start may take thousands of steps down a narrow valley (MGH10 does); each costs microseconds here.
STEP_FACTOR = 40
FINISHING_STEPS = 10
# Of a formula that competes with others: starts that are not done by then take most of the time of all, and what wins
# is fitted further.
FILLING_STEPS = 400


@dataclasses.dataclass(frozen=True)
class SnappedResult:
  """A fitted formula in which constants have exact values where the data leave no doubt (see `snapping`).

  Attributes:
    constants: values by name, of the others refitted.
    exact: text of the exact values by name (`"2*pi"`), of those constants that have one.
    stderr: standard errors of the others given those; 0 for exact values.
    rss: residual sum of squares, as in `RefineResult`.
    p_value: of the F test of all exact values together against the full fit; 1 when there are none.
    node: the formula with its numbers and exact values; names: of the columns.
  """

  constants: dict[str, float]
  exact: dict[str, str]
  stderr: dict[str, float]
  rss: float
  p_value: float
  node: Node
  names: tuple[str, ...]

  @property
  def expression(self) -> str:
    """The formula in Python syntax."""
    return printing.to_text(self.node, self.names)


@dataclasses.dataclass(frozen=True, repr=False)
class RefineResult:
  """A fitted formula.

  Attributes:
    constants: fitted values by name, and those that were held.
    stderr: their standard errors, given those that are held or at a bound; inf for a constant that the data do not
      determine, NaN without degrees of freedom or at a bound, 0 for one that is held.
    rss: residual sum of squares, in squared units of y (of squared sigmas, where sigma was given); inf where the
      formula is undefined at some point.
    status: how the fit ended; message: what that means and what to do.
    dof: number of points minus number of constants that are neither held nor at a bound.
    residual_std: sqrt(rss / dof).
    covariance: of the constants [C, C], in the order of `constants`; NaN at a bound, 0 where held.
    is_identifiable: by name, whether the data determine the constant.
    num_undefined: points at which the formula is not finite.
    node: the formula with its fitted numbers; names: of the columns.
    snapped: the formula with exact values, where they were asked for and the formula is defined at all points.
    at_bound: names of the constants that the data push against one of their bounds.
  """

  constants: dict[str, float]
  stderr: dict[str, float]
  rss: float
  status: Status
  message: str
  dof: int
  residual_std: float
  covariance: np.ndarray
  is_identifiable: dict[str, bool]
  num_undefined: int
  node: Node
  names: tuple[str, ...]
  snapped: SnappedResult | None = None
  at_bound: tuple[str, ...] = ()

  @property
  def expression(self) -> str:
    """The fitted formula in Python syntax."""
    return printing.to_text(self.node, self.names)

  def latex(self) -> str:
    """The fitted formula in LaTeX."""
    return printing.to_latex(self.node, self.names)

  def sympy(self) -> Any:
    """The fitted formula as a SymPy expression over real symbols with the columns' names."""
    return sympy_trees.to_sympy(self.node, self.names)

  def source(self, language: str, *, cells: Sequence[str] | None = None) -> str:
    """The fitted formula as text of another language, a function `formula` of all columns: see `source_code.write`."""
    return source_code.write(self.node, self.names, language, cells=cells)

  def __repr__(self) -> str:
    constants = ", ".join(f"{name} = {value:.6g} +- {self.stderr[name]:.2g}" for name, value in self.constants.items())
    return f"RefineResult({self.expression}; {constants}; rss {self.rss:.4g}, {self.status.name.lower()})"

  def predict(self, X: Any) -> np.ndarray:
    """Values of the fitted formula [N] on points like those it was fitted to."""
    x, _ = _columns(X)
    formula = _Formula(self.node, ())
    return _evaluate(formula, np.zeros(formula.num_slots), x)[0]


def refine(
  formula: str, X: Any, y: Any, start: Mapping[str, float] | None = None, *, sigma: Any = None,
  method: str = "lm", num_starts: int = NUM_STARTS, max_steps: int | None = None, seed: int = 0,
  snap: bool = False, bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
  hold: Mapping[str, float] | None = None,
) -> RefineResult | list[RefineResult]:
  """Fits the constants of a formula by least squares, in float64.

  Names in the formula that are columns of X are variables, the others constants.
  Args:
    formula: Python syntax, as in `"b1*(1 - exp(-b2*x))"`.
    X: points [N, D], or [N] for one variable. Columns of a DataFrame go by their names; those of an array are `x`
      (or `x0`) where there is one, `x0`, `x1`, ... where there are more. A list of such is several data sets.
    y: targets [N], or a list of them.
    start: starting values by name; the others are drawn.
    sigma: standard deviation of y, a number or [N]; standard errors are then not scaled by the residual.
    method: `lm` (Levenberg-Marquardt), `bfgs` or `gd`.
    num_starts: starts tried; the first is `start` as given, the best fit wins.
    max_steps: evaluations a start may take; default by method.
    seed: of the drawn starts.
    snap: whether whole numbers, simple fractions, multiples of pi and e, and square roots are tried for the
      constants; what is found stands in the field `snapped` beside the plain fit.
    bounds: least and largest values by name, such as `{"b1": (0, None)}`; None for no limit. What the free fit says
      within them stays as it is; else the best fit of all starts within them is taken.
    hold: known constants by name, which are not fitted.
  Returns:
    The fit, or a list of fits, one for each data set, each with its own constants.
  Raises:
    InputError: for a formula that cannot be read, data that do not match it, an unknown name in `start`.
  """
  if method not in solve.METHODS:
    raise InputError(f"unknown method {method!r}: expected one of {', '.join(solve.METHODS)}")
  if not isinstance(formula, str):
    raise InputError(f"formula: expected text, got {formula!r}")
  for argument, values in (("start", start), ("hold", hold), ("bounds", bounds)):
    if values is not None and not isinstance(values, Mapping):
      raise InputError(f"{argument}: expected values by name, such as {{'a': 1.5}}, got {values!r}")
  is_single = not isinstance(X, list | tuple) or np.ndim(X[0]) == 0
  sets = [_check_data(*data) for data in _pair_up(X, y, sigma, is_single)]
  names = sets[0][3]
  node = parser.parse(formula, names, allow_symbols=True, expands=False)
  # With one column, `x` and `x0` both name it.
  whole = _Formula(_merge_names(node, sets[0][0].shape[1]), _symbols(node))
  _check_names(whole, start or {}, sets[0][0].shape[1])
  parsed, box = _hold(whole, _check_held(whole.names, start or {}, hold or {})), _check_bounds(
    whole.names, start or {}, hold or {}, bounds or {})
  rng = np.random.default_rng(seed)
  starts = _draw_starts(parsed.names, start or {}, num_starts, rng)
  limit, has_sigma = max_steps or STEP_FACTOR * solve.MAX_STEPS[method], sigma is not None
  results = _fit_sets(parsed, sets, starts, method, limit, has_sigma=has_sigma)
  for i, (data, result) in enumerate(zip(sets, results, strict=True)):
    fitted = parsed
    at_bound: dict[str, float] = {}
    if not _is_within(result.constants, box):
      fitted, result, at_bound = _fit_within(parsed, data, starts, box, method, limit, rng, has_sigma=has_sigma)
    result = _snap(fitted, data, result, has_sigma=has_sigma) if snap else result
    results[i] = _with_held(whole.names, _with_held(parsed.names, result, at_bound, error=np.nan), hold or {})
  return results[0] if is_single else results


def draw_fillings(node: Node, *, num: int, seed: int = 0) -> list[Node]:
  """So many trees with drawn numbers for the named constants of one."""
  names = _symbols(node)
  formula, starts = _Formula(node, names), _draw_starts(names, {}, num, np.random.default_rng(seed))
  return [formula.with_values(dict(zip(names, start, strict=True))) for start in starts.tolist()]


def fill_in(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, seed: int = 0) -> Node:
  """A tree whose named constants are the numbers that fit best, of `NUM_STARTS` starts with `FILLING_STEPS`.

  Args:
    node: over the columns of x [N, D]; y: [N]; weights: [N] > 0.
  """
  names = _symbols(node)
  if not names:
    return node
  formula, starts = _Formula(node, names), _draw_starts(names, {}, NUM_STARTS, np.random.default_rng(seed))
  return _fit_sets(formula, [(x, y, weights, ())], starts, "lm", FILLING_STEPS, has_sigma=False)[0].node


# `(x [N, D], y [N], weights [N], names)` of one data set.
_Data = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]


class _Formula:
  """A tree with named constants as a program whose slots are the names, each perhaps at several tokens."""

  def __init__(self, node: Node, names: Sequence[str]):
    self.node, self.names = node, tuple(names)
    num_variables = 1 + max((n.value for n in expression.walk(node) if n.token == VARIABLE), default=0)
    self.vocab = Vocabulary(num_variables, has_requested=programs.has_requested([node]))
    tokens = list(expression.walk(node))
    length = -(-len(tokens) // TOKEN_MULTIPLE) * TOKEN_MULTIPLE
    self.ids, self.values = np.zeros(length, np.int32), np.zeros(length)
    self.slots = np.full(length, -1, np.int32)
    for i, n in enumerate(tokens):
      self.ids[i] = self._token_id(n)
      if n.is_number:
        self.values[i] = n.value
      elif n.token == SYMBOL:
        self.slots[i] = self.names.index(n.value)

  def _token_id(self, n: Node) -> int:
    if n.args:
      return self.vocab.ids[n.token]
    # Any constant token holds any number here: nothing is split into mantissa and exponent.
    return self.vocab.ids[f"x{n.value}"] if n.token == VARIABLE else self.vocab.first_constant_id

  @property
  def num_slots(self) -> int:
    return max(1, -(-len(self.names) // SLOT_MULTIPLE)) * SLOT_MULTIPLE

  def program(self) -> interpreter.Program:
    """In the precision that is set where this is called."""
    program = _translate(self.ids, self.values, vocab=self.vocab, is_free=self.slots >= 0)
    return program._replace(slots=jnp.asarray(self.slots))

  def with_values(self, constants: Mapping[str, float], exact: Mapping[str, Node] | None = None) -> Node:
    """The tree with exact values or numbers for names."""
    nodes = {**{name: number(value) for name, value in constants.items()}, **(exact or {})}

    def fill(n: Node) -> Node:
      if n.token == SYMBOL:
        return nodes[n.value]
      return n._replace(args=tuple(fill(arg) for arg in n.args)) if n.args else n
    return fill(self.node)


_run = jax.jit(interpreter.run)
_translate = jax.jit(interpreter.translate, static_argnames=("vocab", "num_slots"))


def _evaluate(formula: _Formula, constants: np.ndarray, x: np.ndarray) -> np.ndarray:
  """Values and derivatives [1 + C, N] in float64."""
  with jax.enable_x64(True):
    return np.asarray(_run(formula.program(), constants, np.ascontiguousarray(x.T)))


def _symbols(node: Node) -> list[str]:
  """Names of constants in the order of their first occurrence."""
  return list(dict.fromkeys(n.value for n in expression.walk(node) if n.token == SYMBOL))


def _merge_names(node: Node, num_columns: int) -> Node:
  """Variables beyond the columns are second names of them (`x0` of `x`)."""
  if node.token == VARIABLE:
    return node._replace(value=node.value % num_columns)
  return node._replace(args=tuple(_merge_names(arg, num_columns) for arg in node.args)) if node.args else node


def _pair_up(X: Any, y: Any, sigma: Any, is_single: bool) -> list[tuple[Any, Any, Any]]:
  """`(X, y, sigma)` of each data set."""
  if is_single:
    return [(X, y, sigma)]
  if len(X) != len(y):
    raise InputError(f"{len(X)} data sets were given for X, but {len(y)} for y")
  sigmas = sigma if isinstance(sigma, list | tuple) else [sigma] * len(X)
  return list(zip(X, y, sigmas, strict=True))


def _columns(X: Any) -> tuple[np.ndarray, tuple[str, ...]]:
  """Points [N, D] and the names of the columns."""
  frames.check_numeric(X, "X")
  names = tuple(str(c) for c in X.columns) if hasattr(X, "columns") else None
  try:
    x = np.asarray(X, np.float64)
  except (TypeError, ValueError):
    raise InputError("X must be numeric") from None
  x = x[:, None] if x.ndim == 1 else x
  if x.ndim != 2 or x.shape[1] == 0:
    raise InputError(f"X must be points [N] or [N, D], got shape {x.shape}")
  if names is None:
    names = ("x", "x0") if x.shape[1] == 1 else tuple(f"x{i}" for i in range(x.shape[1]))
  return x, names


def _check_data(X: Any, y: Any, sigma: Any) -> _Data:
  """`(x [N, D], y [N], weights [N], names)` of one data set."""
  x, names = _columns(X)
  frames.check_numeric(y, "y")
  frames.check_numeric(sigma, "sigma")
  y = np.asarray(y, np.float64)
  y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
  if y.shape != (len(x),):
    raise InputError(f"X has {len(x)} rows, so y must have shape ({len(x)},), got {y.shape}")
  for what, array in (("X", x), ("y", y)):
    if not np.isfinite(array).all():
      row = int(np.argwhere(~np.isfinite(array))[0][0])
      raise InputError(f"{what} must be finite, got {array[row]} in row {row}")
  weights = np.ones(len(y))
  if sigma is not None:
    sigma = np.broadcast_to(np.asarray(sigma, np.float64), y.shape)
    if not (np.isfinite(sigma) & (sigma > 0)).all():
      raise InputError("sigma must be positive and finite")
    weights = 1 / sigma**2
  return x, y, weights, names


def _check_names(formula: _Formula, start: Mapping[str, float], num_columns: int) -> None:
  """Refuses names that can only be mistakes."""
  for name, value in start.items():
    if name not in formula.names:
      close = difflib.get_close_matches(name, formula.names, n=1)
      hint = f"; did you mean {close[0]!r}?" if close else ""
      raise InputError(f"start names {name!r}, the formula's constants are {', '.join(formula.names) or 'none'}{hint}")
    if not _is_finite(value):
      raise InputError(f"start of {name!r} must be finite, got {value}")
  if num_columns > 1 and "x" in formula.names and "x" not in start:
    raise InputError(f"'x' is no column: the {num_columns} columns of an array are x0 ... x{num_columns - 1}")


def _check_held(names: Sequence[str], start: Mapping[str, float], hold: Mapping[str, float]) -> Mapping[str, float]:
  """Known constants, refused where they can only be mistakes."""
  for name, value in hold.items():
    if name not in names:
      raise InputError(f"hold: the formula has no constant {name!r}: {suggest(name, names)}")
    if name in start:
      raise InputError(f"hold: {name!r} has a start as well, expected one of them")
    if not _is_finite(value):
      raise InputError(f"hold: {name!r} must be finite, got {value}")
  return hold


def _is_finite(value: Any) -> bool:
  """Whether a value of the user's is a number, and finite."""
  try:
    return not isinstance(value, str) and bool(np.isfinite(float(value)))
  except (TypeError, ValueError, OverflowError):
    return False


# Least and largest values by name, infinite where there is none; constants without bounds are not in it.
_Box = dict[str, tuple[float, float]]


def _check_bounds(names: Sequence[str], start: Mapping[str, float], hold: Mapping[str, float], bounds: Mapping) -> _Box:
  box = {}
  for name, limits in bounds.items():
    if name not in names:
      raise InputError(f"bounds: the formula has no constant {name!r}: {suggest(name, names)}")
    if name in hold:
      raise InputError(f"bounds: {name!r} is held, expected one of them")
    is_pair = isinstance(limits, (Sequence, np.ndarray)) and not isinstance(limits, str) and len(limits) == 2
    if not is_pair or not all(limit is None or isinstance(limit, numbers.Real) for limit in limits):
      raise InputError(f"bounds: {name!r} takes (least, largest), got {limits!r}")
    low, high = (sign * np.inf if limit is None else float(limit) for sign, limit in zip((-1, 1), limits, strict=True))
    if not low < high:
      raise InputError(f"bounds: the least value of {name!r} must be below the largest, got {low:g} and {high:g}")
    if name in start and not low <= start[name] <= high:
      raise InputError(f"bounds: the start of {name!r} must be from {low:g} to {high:g}, got {start[name]:g}")
    box[name] = low, high
  return box


def _is_within(constants: Mapping[str, float], box: _Box) -> bool:
  return all(low <= constants[name] <= high for name, (low, high) in box.items())


def _hold(formula: _Formula, values: Mapping[str, float]) -> _Formula:
  """The formula with numbers for some of its constants."""
  nodes = {name: number(value) for name, value in values.items()}

  def fill(node: Node) -> Node:
    if node.token == SYMBOL:
      return nodes.get(node.value, node)
    return node._replace(args=tuple(map(fill, node.args))) if node.args else node
  return _Formula(fill(formula.node), [name for name in formula.names if name not in values]) if values else formula


def _draw_within(starts: np.ndarray, lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
  """Starts [R, C] within bounds [C]: what lies outside is drawn anew where both are finite, else cut."""
  with np.errstate(over="ignore", invalid="ignore"):
    drawn = lower + (upper - lower) * rng.uniform(size=starts.shape)
  is_outside = (starts < lower) | (starts > upper)
  return np.clip(np.where(is_outside & np.isfinite(drawn), drawn, starts), lower, upper)


def _fit_within(
  formula: _Formula, data: _Data, starts: np.ndarray, box: _Box, method: str, max_steps: int,
  rng: np.random.Generator, *, has_sigma: bool,
) -> tuple[_Formula, RefineResult, dict[str, float]]:
  """The best fit within bounds: the formula with constants at their bounds held there, its fit, and these constants."""
  x, y, weights, _ = data
  free = (-np.inf, np.inf)
  lower, upper = np.array([box.get(name, free) for name in formula.names]).T
  count, padding = len(formula.names), formula.num_slots - len(formula.names)

  columns = np.ascontiguousarray(x.T)
  with jax.enable_x64(True):
    program = formula.program()  # once: it takes as long as a step

  def evaluate(constants: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
      return np.asarray(_run(program, np.pad(constants, (0, padding)), columns))[: 1 + count]

  best = bounded.descend_from_all(
    evaluate, _draw_within(starts[:, :count], lower, upper, rng), y, weights, (lower, upper), max_steps=max_steps)
  at_bound = {name: float(value) for name, value, is_held in
              zip(formula.names, best.constants, best.is_at_bound, strict=True) if is_held}
  reduced = _hold(formula, at_bound)
  # From an optimum the free fit of the others moves by rounding alone; of as many starts as are compiled for.
  values = np.broadcast_to(best.constants[~best.is_at_bound], (len(starts), len(reduced.names)))
  [result] = _fit_sets(reduced, [data], values, method, max_steps, has_sigma=has_sigma)
  if result.status == Status.NO_CONSTANTS or (result.status == Status.CONVERGED and not best.is_done):
    status = Status.CONVERGED if best.is_done else Status.STEP_LIMIT
    result = dataclasses.replace(result, status=status, message=STATUS_TEXT[status])
  held = at_bound
  if not _is_within(result.constants, {name: box[name] for name in reduced.names if name in box}):
    # No optimum: the fit within bounds ran out of steps, and the free one went on, out of them.
    held = dict(zip(formula.names, best.constants.tolist(), strict=True))
    reduced = _hold(formula, held)
    [result] = _fit_sets(reduced, [data], np.zeros((len(starts), 0)), method, max_steps, has_sigma=has_sigma)
    status = Status.STEP_LIMIT
    result = dataclasses.replace(result, status=status, message=STATUS_TEXT[status])
  says = f"{result.message}; at a bound: {', '.join(at_bound)}" if at_bound else result.message
  return reduced, dataclasses.replace(result, message=says, at_bound=tuple(at_bound)), held


def _with_held(
  names: Sequence[str], result: RefineResult, held: Mapping[str, float], *, error: float = 0.0
) -> RefineResult:
  """The result of a formula in which some constants were numbers, these told among its constants."""
  held = {name: value for name, value in held.items() if name not in result.constants}
  if not held:
    return result
  at = [names.index(name) for name in result.constants]
  covariance = np.full((len(names), len(names)), error)
  covariance[np.ix_(at, at)] = result.covariance

  def joined(found: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**found, **values}[name] for name in names if name in found or name in values}

  errors = dict.fromkeys(held, error)
  snapped = result.snapped and dataclasses.replace(
    result.snapped, constants=joined(result.snapped.constants, held), stderr=joined(result.snapped.stderr, errors))
  return dataclasses.replace(
    result, constants=joined(result.constants, held), stderr=joined(result.stderr, errors), covariance=covariance,
    is_identifiable=joined(result.is_identifiable, dict.fromkeys(held, True)), snapped=snapped)


def _draw_starts(
  names: Sequence[str], start: Mapping[str, float], num_starts: int, rng: np.random.Generator
) -> np.ndarray:
  """Starts [R, C]: the given one first, then constants of other sizes and signs around it or from the generator's."""
  num_starts = max(1, num_starts)
  drawn = constants_lib.sample_constants(rng, (num_starts, len(names)))
  # Half of them over six decades: a rate of 1e-3 is as common as one of 2.
  decades = np.sign(drawn) * 10 ** rng.uniform(-4, 3, drawn.shape)
  starts = np.where(np.arange(num_starts)[:, None] % 2 == 0, drawn, decades)
  for i, name in enumerate(names):
    if name in start:
      # A factor of 3 either way, more in later draws; the sign is believed.
      spread = np.linspace(0.3, 2.0, num_starts)
      starts[:, i] = start[name] * np.exp(spread * rng.normal(size=num_starts))
      starts[0, i] = start[name]
  return starts


def _fit_sets(
  formula: _Formula, sets: Sequence[_Data], starts: np.ndarray, method: str, max_steps: int, *, has_sigma: bool
) -> list[RefineResult]:
  """Fits all data sets in one call."""
  num_points = -(-max(len(s[1]) for s in sets) // POINT_MULTIPLE) * POINT_MULTIPLE

  def pad(array: np.ndarray, mode: Literal["edge", "constant"]) -> np.ndarray:
    return np.pad(array, [(0, num_points - len(array)), *[(0, 0)] * (array.ndim - 1)], mode=mode)

  x, y, weights = (np.stack(a) for a in zip(
    *((pad(s[0], "edge"), pad(s[1], "constant"), pad(s[2], "constant")) for s in sets), strict=True))
  starts = np.pad(starts, ((0, 0), (0, formula.num_slots - len(formula.names))))
  starts = np.broadcast_to(starts, (len(sets), *starts.shape))
  with jax.enable_x64(True):
    fit = solve.fit_starts(formula.program(), starts, x, y, weights, method=method, max_steps=max_steps)
    fit = jax.tree.map(np.asarray, fit)
  return [_result(formula, s, jax.tree.map(lambda a, i=i: a[i], fit), has_sigma) for i, s in enumerate(sets)]


def _best(fit: solve.Fit) -> int:
  """The start with the lowest loss; the first of those that agree to nine digits, for that is the user's own."""
  if not np.isfinite(fit.loss).any():
    return int(np.argmin(fit.num_undefined))
  return int(np.argmax(fit.loss <= np.min(fit.loss) * (1 + 1e-9)))


def _finish(formula: _Formula, values: np.ndarray, data: _Data) -> tuple[np.ndarray, np.ndarray]:
  """`(constants [C], values and derivatives [1 + C, N])` after a few steps of Gauss-Newton by orthogonal factors.

  The methods solve normal equations, which square the condition number: in a narrow valley their last digits creep.
  """
  x, y, weights, _ = data
  rows, free = _evaluate(formula, values, x), np.arange(len(formula.names))
  root = np.sqrt(weights)
  for _ in range(FINISHING_STEPS):
    residual, jacobian = root * (rows[0] - y), (root * rows[1:1 + len(free)]).T
    norms = np.linalg.norm(jacobian, axis=0)
    if not (np.isfinite(residual).all() and np.isfinite(norms).all() and norms.all()):
      break
    trial = values.copy()
    trial[free] -= np.linalg.lstsq(jacobian / norms, residual, rcond=None)[0] / norms
    seen = _evaluate(formula, trial, x)
    # Both sums by the same steps: where nothing moves any more they are then equal to the last digit.
    if not np.sum((root * (seen[0] - y)) ** 2) < np.sum(residual**2):
      break
    values, rows = trial, seen
  return values, rows


def _result(formula: _Formula, data: _Data, fit: solve.Fit, has_sigma: bool) -> RefineResult:
  x, y, weights, names = data
  best, num_constants = _best(fit), len(formula.names)
  values, rows = _finish(formula, np.asarray(fit.values[best]), data)
  found = uncertainty.estimate(rows[1:1 + num_constants].T, rows[0] - y, weights, has_sigma=has_sigma)
  status, num_undefined = Status(int(fit.status[best])), int(fit.num_undefined[best])
  message = STATUS_TEXT[status] + (f" ({num_undefined} of {len(y)} points)" if num_undefined else "")
  by_name = dict(zip(formula.names, values[:num_constants].tolist(), strict=True))
  rss = float(np.sum(weights * (rows[0] - y) ** 2)) if not num_undefined else np.inf
  return RefineResult(
    constants=by_name, stderr=dict(zip(formula.names, found.stderr.tolist(), strict=True)), rss=rss, status=status,
    message=message, dof=found.dof, residual_std=found.residual_std, covariance=found.covariance,
    is_identifiable=dict(zip(formula.names, found.is_identifiable.tolist(), strict=True)),
    num_undefined=num_undefined, node=formula.with_values(by_name), names=names[: x.shape[1]])


def _snap(formula: _Formula, data: _Data, result: RefineResult, *, has_sigma: bool) -> RefineResult:
  """The result with its field `snapped`."""
  if result.num_undefined:
    return result
  x, y, weights, names = data
  padding = (0, formula.num_slots - len(formula.names))
  if not formula.names:
    return result  # nothing that was fitted
  found = snapping.snap(lambda constants: _evaluate(formula, np.pad(constants, padding), x),
                        np.array([result.constants[name] for name in formula.names]), y, weights, has_sigma=has_sigma)
  constants = dict(zip(formula.names, found.values.tolist(), strict=True))
  # Beside a column named pi a multiple of pi is written in decimals.
  def is_clear(node: Node) -> bool:
    return not any(n.token == SYMBOL and n.value in names for n in expression.walk(node))

  exact = {name: special.node for name, special in zip(formula.names, found.exact, strict=True)
           if special and is_clear(special.node)}
  snapped = SnappedResult(
    constants=constants, exact={name: printing.to_text(node) for name, node in exact.items()},
    stderr=dict(zip(formula.names, found.stderr.tolist(), strict=True)), rss=found.rss, p_value=found.p_value,
    node=formula.with_values(constants, exact), names=names[: x.shape[1]])
  return dataclasses.replace(result, snapped=snapped)
