"""`refine`: fits the named constants of a formula a person has written, with no model in sight."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from symformer_jax.arguments import check_seed, check_whole
from symformer_jax.errors import InputError, show
from symformer_jax.language import constants as constants_lib, expression, parser, printing, strangers
from symformer_jax.language.expression import SYMBOL, Node
from symformer_jax.refinement import bounded, inputs, named, results, snapping, solve, uncertainty
from symformer_jax.refinement.named import NamedFormula
from symformer_jax.refinement.problem import STATUS_TEXT, Status
from symformer_jax.refinement.results import RefineResult, SnappedResult

# Starts beside the given one: far starts of published fits need a few (docs/results/refinement.md).
NUM_STARTS = 32
# Of more rows than these all starts are fitted to so many, and what comes of them to all: 32 far starts with thousands
# of steps each on all rows would take minutes (docs/results/refinement.md, "Many rows").
SCREENING_ROWS = 512
# Ends of the screening that go on at the most, and how many times the best's sum of squares one may have: far worse
# ends are slow to end.
NUM_PURSUED, NEARLY_AS_GOOD = 4, 1.5
# Where none of them is defined at all rows, so many of the rows at which the best is not are screened with the others,
# and so often; then all starts see all rows.
NUM_UNDEFINED_ROWS, NUM_RESCREENINGS = 64, 3
# Beyond them a fit ends nowhere near: thousands of starts take minutes; steps are counted on the device, by 32 bits.
MOST_STARTS, MOST_STEPS = 100_000, 10_000_000
# Data are padded to multiples of these, so that most share one compiled fit.
POINT_MULTIPLE = 64
# A far start may take thousands of steps down a narrow valley (MGH10 does); each costs microseconds here.
STEP_FACTOR = 40
FINISHING_STEPS = 10
# Of a formula that competes with others: starts that are not done by then take most of the time of all, and what wins
# is fitted further.
FILLING_STEPS = 400


# What overflows on the way is infinite, and no fit of it wins.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
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
    num_starts: starts tried, 1 to 100 000; the first is `start` as given, the best fit wins. Of more than
      `SCREENING_ROWS` rows those that are drawn see some, and the best of what they come to is fitted to all.
    max_steps: evaluations a start may take, at least 1; default by method.
    seed: of the drawn starts.
    snap: whether whole numbers, simple fractions, multiples of pi and e, and square roots are tried for the
      constants; what is found stands in the field `snapped` beside the plain fit.
    bounds: least and largest values by name, such as `{"b1": (0, None)}`; None for no limit. What the free fit says
      within them stays as it is; else the best fit of all starts within them is taken.
    hold: known constants by name, which are not fitted.
  Returns:
    The fit, or a list of fits, one for each data set, each with its own constants.
  Raises:
    InputError: for a formula that cannot be read, has no column or more constants than X rows that differ, data that
      do not match it or are of a size that double precision does not hold, an unknown name in `start`, numbers of
      starts or steps that are none.
  """
  if not isinstance(method, str) or method not in solve.METHODS:
    raise InputError(f"unknown method {show(method)}: expected one of {', '.join(solve.METHODS)}")
  if not isinstance(formula, str):
    raise InputError(f"formula: expected text, got {show(formula)}")
  for argument, values in (("start", start), ("hold", hold), ("bounds", bounds)):
    if values is not None and not isinstance(values, Mapping):
      raise InputError(f"{argument}: expected values by name, such as {{'a': 1.5}}, got {show(values)}")
  check_whole("num_starts", num_starts, most=MOST_STARTS)
  if max_steps is not None:
    check_whole("max_steps", max_steps, most=MOST_STEPS)
  check_seed(seed)
  is_single = inputs.is_one_set(X)
  sets = inputs.read_sets(X, y, sigma, is_single)
  names = sets[0][3]
  node = parser.parse(formula, names, allow_symbols=True, expands=False)
  # With one column, `x` and `x0` both name it.
  whole = NamedFormula(named.merge_names(node, sets[0][0].shape[1]), named.symbols(node))
  inputs.check_names(whole.names, start or {}, sets[0][0].shape[1])
  strangers.refuse_columnless("formula", formula, node, names, may_be_number=True)
  parsed = named.hold(whole, inputs.check_held(whole.names, start or {}, hold or {}))
  inputs.check_rows(parsed.names, sets)
  box = inputs.check_bounds(whole.names, start or {}, hold or {}, bounds or {})
  rng = np.random.default_rng(seed)
  starts = _draw_starts(parsed.names, start or {}, num_starts, rng)
  limit, has_sigma = max_steps or STEP_FACTOR * solve.MAX_STEPS[method], sigma is not None
  fits = _fit_sets(parsed, sets, starts, method, limit, has_sigma=has_sigma, has_start=bool(start))
  for i, (data, result) in enumerate(zip(sets, fits, strict=True)):
    fitted = parsed
    at_bound: dict[str, float] = {}
    if not _is_within(result.constants, box):
      fitted, result, at_bound = _fit_within(
        parsed, data, starts, box, method, limit, rng, has_sigma=has_sigma, has_start=bool(start))
    result = _snap(fitted, data, result, has_sigma=has_sigma) if snap else result
    result = results.with_held(parsed.names, result, at_bound, error=np.nan)
    result = results.with_held(whole.names, result, hold or {})
    fits[i] = dataclasses.replace(result, is_named=hasattr(X if is_single else X[0], "columns"))
  return fits[0] if is_single else fits


def draw_fillings(node: Node, *, num: int, seed: int = 0) -> list[Node]:
  """So many trees with drawn numbers for the named constants of one."""
  names = named.symbols(node)
  formula, starts = NamedFormula(node, names), _draw_starts(names, {}, num, np.random.default_rng(seed))
  return [formula.with_values(dict(zip(names, start, strict=True))) for start in starts.tolist()]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # as in `refine`
def fill_in(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, seed: int = 0) -> Node:
  """A tree whose named constants are the numbers that fit best, of `NUM_STARTS` starts with `FILLING_STEPS`.

  Args:
    node: over the columns of x [N, D]; y: [N]; weights: [N] > 0.
  """
  names = named.symbols(node)
  if not names:
    return node
  formula, starts = NamedFormula(node, names), _draw_starts(names, {}, NUM_STARTS, np.random.default_rng(seed))
  return _fit_sets(formula, [(x, y, weights, ())], starts, "lm", FILLING_STEPS, has_sigma=False)[0].node


class NamedFit(NamedTuple):
  """A fit of named constants: values and standard errors [C], in the order of `named.symbols`, and the tree.

  Errors are infinite where the data do not determine a constant, NaN without degrees of freedom.
  """

  values: dict[str, float]
  stderr: dict[str, float]
  node: Node


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # as in `refine`
def fit_names(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, starts: Sequence[Sequence[float]]
) -> NamedFit | None:
  """The fit of the named constants of a tree on the host, from a few starts near it; None where it is undefined.

  Args:
    node: over the columns of x [N, D], with at least one name; y: [N]; weights: [N], at least 0, relative.
    starts: lists of constants [C].
  """
  formula, data = NamedFormula(node, named.symbols(node)), (x, y, weights, ())
  free = np.full(len(formula.names), np.inf)
  found = bounded.descend_from_all(
    formula.evaluator(x), np.array(starts, float), y, weights, (-free, free), max_steps=FILLING_STEPS)
  if not np.isfinite(found.loss):
    return None
  values, rows = _finish(formula, found.constants, data)
  errors = uncertainty.estimate(rows[1:].T, rows[0] - y, weights).stderr
  by_name = dict(zip(formula.names, values.tolist(), strict=True))
  return NamedFit(by_name, dict(zip(formula.names, errors.tolist(), strict=True)), formula.with_values(by_name))


def _is_within(constants: Mapping[str, float], box: inputs.Box) -> bool:
  return all(low <= constants[name] <= high for name, (low, high) in box.items())


def _draw_within(starts: np.ndarray, lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
  """Starts [R, C] within bounds [C]: what lies outside is drawn anew where both are finite, else cut."""
  with np.errstate(over="ignore", invalid="ignore"):
    drawn = lower + (upper - lower) * rng.uniform(size=starts.shape)
  is_outside = (starts < lower) | (starts > upper)
  return np.clip(np.where(is_outside & np.isfinite(drawn), drawn, starts), lower, upper)


def _fit_within(
  formula: NamedFormula, data: inputs.Data, starts: np.ndarray, box: inputs.Box, method: str, max_steps: int,
  rng: np.random.Generator, *, has_sigma: bool, has_start: bool,
) -> tuple[NamedFormula, RefineResult, dict[str, float]]:
  """The best fit within bounds: the formula with constants at their bounds held there, its fit, and these constants."""
  y, free = data[1], (-np.inf, np.inf)
  lower, upper = np.array([box.get(name, free) for name in formula.names]).T
  inner = _draw_within(starts[:, :len(formula.names)], lower, upper, rng)
  best = _descend_within(formula, data, inner, (lower, upper), max_steps, has_start=has_start)
  at_bound = {name: float(value) for name, value, is_held in
              zip(formula.names, best.constants, best.is_at_bound, strict=True) if is_held}
  reduced = named.hold(formula, at_bound)
  # From an optimum the free fit of the others moves by rounding alone; of few rows as many starts as are compiled for.
  num = 1 if len(y) > SCREENING_ROWS else len(starts)
  values = np.broadcast_to(best.constants[~best.is_at_bound], (num, len(reduced.names)))
  [result] = _fit_sets(reduced, [data], values, method, max_steps, has_sigma=has_sigma)
  if result.status == Status.NO_CONSTANTS or (result.status == Status.CONVERGED and not best.is_done):
    status = Status.CONVERGED if best.is_done else Status.STEP_LIMIT
    result = dataclasses.replace(result, status=status, message=STATUS_TEXT[status])
  held = at_bound
  if not _is_within(result.constants, {name: box[name] for name in reduced.names if name in box}):
    # No optimum: the fit within bounds ran out of steps, and the free one went on, out of them.
    held = dict(zip(formula.names, best.constants.tolist(), strict=True))
    reduced = named.hold(formula, held)
    [result] = _fit_sets(reduced, [data], np.zeros((num, 0)), method, max_steps, has_sigma=has_sigma)
    status = Status.STEP_LIMIT
    result = dataclasses.replace(result, status=status, message=STATUS_TEXT[status])
  says = f"{result.message}; at a bound: {', '.join(at_bound)}" if at_bound else result.message
  return reduced, dataclasses.replace(result, message=says, at_bound=tuple(at_bound)), held


def _descend_within(
  formula: NamedFormula, data: inputs.Data, starts: np.ndarray, box: tuple[np.ndarray, np.ndarray], max_steps: int, *,
  has_start: bool,
) -> bounded.Found:
  """The best fit within a box [C], [C] from starts [R, C] in it; of many rows from some first, but for a given one."""
  def descended(data: inputs.Data) -> bounded.Found:
    x, y, weights, _ = data
    return bounded.descend_from_all(formula.evaluator(x), starts, y, weights, box, max_steps=max_steps)

  x, y, weights, _ = data
  if len(y) > SCREENING_ROWS:
    own = [descended(_some_rows(data)).constants, *([starts[0]] if has_start else [])]
    found = min((bounded.descend(formula.evaluator(x), start, y, weights, box, max_steps=max_steps) for start in own),
                key=lambda each: each.loss)
    if np.isfinite(found.loss):
      return found
  return descended(data)


def _draw_starts(
  names: Sequence[str], start: Mapping[str, float], num_starts: int, rng: np.random.Generator
) -> np.ndarray:
  """Starts [R, C]: the given one first, then constants of other sizes and signs around it or from the generator's."""
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
  formula: NamedFormula, sets: Sequence[inputs.Data], starts: np.ndarray, method: str, max_steps: int, *,
  has_sigma: bool, has_start: bool = False,
) -> list[RefineResult]:
  """Fits all data sets in one call, from starts [R, C] each; of many rows to some of them first.

  Args:
    has_start: whether the first start is the user's, which sees all rows.
  """
  starts = np.pad(starts, ((0, 0), (0, formula.num_slots - len(formula.names))))
  if len(starts) > NUM_PURSUED and max(len(s[1]) for s in sets) > SCREENING_ROWS:
    fits = _fit_in_stages(formula, sets, starts, method, max_steps, has_start=has_start)
  else:
    fits = _fit_all_starts(formula, sets, [starts] * len(sets), method, max_steps)
  return [_result(formula, data, fit, has_sigma) for data, fit in zip(sets, fits, strict=True)]


def _fit_in_stages(
  formula: NamedFormula, sets: Sequence[inputs.Data], starts: np.ndarray, method: str, max_steps: int, *,
  has_start: bool,
) -> list[solve.Fit]:
  """Fits to some rows of each data set that has many, and from the best of their ends to all rows."""
  some = _fit_all_starts(formula, [_some_rows(data) for data in sets], [starts] * len(sets), method, max_steps)
  fit_all = functools.partial(
    _fit_all_starts, formula, method=method, max_steps=max_steps, num_points=max(len(data[1]) for data in sets))
  fits = []
  for data, screened in zip(sets, some, strict=True):
    if len(data[1]) <= SCREENING_ROWS:
      fits.append(screened)
      continue
    own = fit_all([data], [starts[:1]], is_persistent=False) if has_start else []
    screen = functools.partial(_fit_all_starts, formula, starts=[starts], method=method, max_steps=max_steps)
    fit = _go_on(formula, fit_all, screen, data, screened)
    found = fit_all([data], [starts]) if fit is None else [fit]
    fits.append(jax.tree.map(lambda *fields: np.concatenate(fields), *own, *found))
  return fits


def _go_on(
  formula: NamedFormula, fit_all: Callable[..., list[solve.Fit]], screen: Callable[..., list[solve.Fit]],
  data: inputs.Data, screened: solve.Fit,
) -> solve.Fit | None:
  """The fit to all rows of a data set from the ends [R] of the fits to some; None where no good end is defined there.

  Args:
    fit_all: `_fit_all_starts` for all rows; screen: for some, from all starts.
  """
  evaluate = formula.evaluator(data[0])
  for num_screenings in range(1 + NUM_RESCREENINGS):
    leaders, ends = _leaders(screened), np.asarray(screened.values)
    near = [end for end in leaders if screened.loss[end] <= NEARLY_AS_GOOD * screened.loss[leaders[0]]]
    fits = [fit_all([data], [ends[end, None]], is_persistent=False)[0] for end in near]
    fit = jax.tree.map(lambda *fields: np.concatenate(fields), *fits)
    # What is undefined at some rows is undefined at all of them.
    if np.isfinite(fit.loss).any() or not np.isfinite(screened.loss[leaders[0]]):
      return fit
    if num_screenings == NUM_RESCREENINGS:
      break
    undefined = np.flatnonzero(~np.isfinite(evaluate(ends[leaders[0], :len(formula.names)])[0]))
    [screened] = screen([_some_rows(data, also=undefined[:NUM_UNDEFINED_ROWS])])
  return None


def _some_rows(data: inputs.Data, also: np.ndarray | tuple = ()) -> inputs.Data:
  """Of a data set that has more, some `SCREENING_ROWS`, the least and the largest of each column, and those named."""
  x, y, weights, names = data
  if len(y) <= SCREENING_ROWS:
    return data
  drawn = np.random.default_rng(0).choice(len(y), SCREENING_ROWS, replace=False)
  rows = np.unique(np.concatenate([drawn, np.argmin(x, axis=0), np.argmax(x, axis=0), also]).astype(int))
  return x[rows], y[rows], weights[rows], names


def _leaders(fit: solve.Fit) -> np.ndarray:
  """Up to `NUM_PURSUED` starts with the best ends, best first; of those that came to the same end the first."""
  order = np.lexsort((fit.num_undefined, fit.loss))
  loss = fit.loss[order]
  return order[np.append(True, loss[1:] > loss[:-1] * (1 + 1e-6))][:NUM_PURSUED]


def _fit_all_starts(
  formula: NamedFormula, sets: Sequence[inputs.Data], starts: Sequence[np.ndarray], method: str, max_steps: int,
  *, is_persistent: bool = True, num_points: int = 0,
) -> list[solve.Fit]:
  """Fits data sets in one compiled call, each from its own starts [R, slots]; see `solve.fit_starts`.

  They are padded to one number of points, at least `num_points`: what has one shape is compiled once.
  """
  num_points = -(-max(num_points, *(len(s[1]) for s in sets)) // POINT_MULTIPLE) * POINT_MULTIPLE

  def pad(array: np.ndarray, mode: Literal["edge", "constant"]) -> np.ndarray:
    return np.pad(array, [(0, num_points - len(array)), *[(0, 0)] * (array.ndim - 1)], mode=mode)

  x, y, weights = (np.stack(a) for a in zip(
    *((pad(s[0], "edge"), pad(s[1], "constant"), pad(s[2], "constant")) for s in sets), strict=True))
  with jax.enable_x64(True):
    fit = solve.fit_starts(formula.program(), np.stack(starts), x, y, weights, method=method, max_steps=max_steps,
                           is_persistent=is_persistent)
    fit = jax.tree.map(np.asarray, fit)
  return [jax.tree.map(lambda a, i=i: a[i], fit) for i in range(len(sets))]


def _best(fit: solve.Fit) -> int:
  """The start with the lowest loss; the first of those that agree to nine digits, for that is the user's own."""
  if not np.isfinite(fit.loss).any():
    return int(np.argmin(fit.num_undefined))
  return int(np.argmax(fit.loss <= np.min(fit.loss) * (1 + 1e-9)))


def _finish(formula: NamedFormula, values: np.ndarray, data: inputs.Data) -> tuple[np.ndarray, np.ndarray]:
  """`(constants [C], values and derivatives [1 + C, N])` a few steps of Gauss-Newton by orthogonal factors on from [C].

  The methods solve normal equations, which square the condition number: in a narrow valley their last digits creep.
  """
  x, y, weights, _ = data
  evaluate, root = formula.evaluator(x), np.sqrt(weights)
  rows = evaluate(values)
  for _ in range(FINISHING_STEPS):
    residual, jacobian = root * (rows[0] - y), (root * rows[1:]).T
    norms = np.linalg.norm(jacobian, axis=0)
    if not (np.isfinite(residual).all() and np.isfinite(norms).all() and norms.all()):
      break
    trial = values - np.linalg.lstsq(jacobian / norms, residual, rcond=None)[0] / norms
    seen = evaluate(trial)
    # Both sums by the same steps: where nothing moves any more they are then equal to the last digit.
    if not np.sum((root * (seen[0] - y)) ** 2) < np.sum(residual**2):
      break
    values, rows = trial, seen
  return values, rows


def _result(formula: NamedFormula, data: inputs.Data, fit: solve.Fit, has_sigma: bool) -> RefineResult:
  x, y, weights, names = data
  best, num_constants = _best(fit), len(formula.names)
  values, rows = _finish(formula, np.asarray(fit.values[best])[:num_constants], data)
  found = uncertainty.estimate(rows[1:].T, rows[0] - y, weights, has_sigma=has_sigma)
  status, num_undefined = Status(int(fit.status[best])), int(fit.num_undefined[best])
  message = STATUS_TEXT[status] + (f" ({num_undefined} of {len(y)} points)" if num_undefined else "")
  by_name = dict(zip(formula.names, values.tolist(), strict=True))
  rss = float(np.sum(weights * (rows[0] - y) ** 2)) if not num_undefined else np.inf
  return RefineResult(
    constants=by_name, stderr=dict(zip(formula.names, found.stderr.tolist(), strict=True)), rss=rss, status=status,
    message=message, dof=found.dof, residual_std=found.residual_std, covariance=found.covariance,
    is_identifiable=dict(zip(formula.names, found.is_identifiable.tolist(), strict=True)),
    num_undefined=num_undefined, node=formula.with_values(by_name), names=names[: x.shape[1]])


def _snap(formula: NamedFormula, data: inputs.Data, result: RefineResult, *, has_sigma: bool) -> RefineResult:
  """The result with its field `snapped`."""
  if result.num_undefined:
    return result
  x, y, weights, names = data
  if not formula.names:
    return result  # nothing that was fitted
  fitted = np.array([result.constants[name] for name in formula.names])
  found = snapping.snap(formula.evaluator(x), fitted, y, weights, has_sigma=has_sigma)
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
