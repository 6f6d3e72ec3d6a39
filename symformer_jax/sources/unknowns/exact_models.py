"""Sums of plain terms times functions of one column each that exact data tell to many digits.

`log(y)` of `a*b/c*w**(1 + (1 - x/u)**(2/7))` is `log(w)` times a function of x/u and another one of x/u alone. With
polynomials in their place such a sum is linear, and where it is the right one rows left out are predicted the better
the more polynomials there are, down to rounding: no other sum does that. Each function is then known to so many digits
at all places.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import ExactFactorsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.sums import terms
from symformer_jax.sources.unknowns import unknown_functions, varying
from symformer_jax.sources.unknowns.varying import Multiples

ONE = number(1.0)
# Share of the largest direction of a table of polynomials below which one is rounding.
_DEPENDENT = 1e-14


class Structure(NamedTuple):
  """A function of y as a sum of terms times functions of one column each.

  Attributes:
    link: name of the function of y; parts: each term and the column of the function that it is multiplied by. There is
      a constant beside.
  """

  link: str
  parts: tuple[tuple[Node, int], ...]


@dataclasses.dataclass(frozen=True)
class Fitted:
  """A structure with polynomials in the place of its functions.

  Attributes:
    structure; scales: by column the logarithm or the column itself; degree: of the polynomials.
    error: what it leaves of rows left out, a share of the variance of the function of y; first: what the fewest
      polynomials leave.
  """

  structure: Structure
  scales: dict[int, "Scale"]
  degree: int
  error: float
  first: float


@dataclasses.dataclass(frozen=True)
class Scale:
  """A column, or its logarithm, from -1 to 1."""

  least: float
  largest: float
  is_log: bool

  def polynomials(self, x: np.ndarray, degree: int) -> np.ndarray:
    """Chebyshev polynomials but for the constant at values x [P]: [P, degree]."""
    ends = np.array([self.least, self.largest])
    (least, largest), x = (np.log(ends), np.log(x)) if self.is_log else (ends, x)
    return np.polynomial.chebyshev.chebvander(2 * (x - least) / (largest - least) - 1, degree)[:, 1:]


class Function(NamedTuple):
  """An unknown function of one column.

  Attributes:
    column; multiples: terms that it is multiplied by, each with a factor.
    places: [P], values: [P]; error: mean square error of the values.
  """

  column: int
  multiples: Multiples
  places: np.ndarray
  values: np.ndarray
  error: float


@np.errstate(all="ignore")  # what is not finite is no structure
def find_models(
  rows: Rows, columns: Sequence[int], links: Sequence[str], *, allows: Callable[[str], bool] | None,
  config: ExactFactorsConfig
) -> list[Fitted]:
  """Structures that predict rows left out to rounding, or nearly so: the fewest functions first.

  Args:
    rows: what is fitted; columns: of x; links: names of the functions of y; allows: operators by name, None for all.
  """
  found = []
  for structure in dict.fromkeys([*_additive(rows, columns, links, config),
                                  *_varying(rows, columns, links, allows, config)]):
    interruption.check()
    fitted = sharpened(rows, structure, config)
    if fitted is not None and fitted.error <= min(config.exact, max(config.falling * fitted.first, config.rounding)):
      found.append(fitted)
  return sorted(found, key=lambda fitted: (len(fitted.structure.parts), fitted.error))[: config.num_models]


def _additive(
  rows: Rows, columns: Sequence[int], links: Sequence[str], config: ExactFactorsConfig
) -> Iterator[Structure]:
  """Functions of y that are about sums of functions of the columns."""
  parts = tuple((ONE, column) for column in columns)
  for link in links:
    fitted = sharpened(rows, Structure(link, parts), dataclasses.replace(config, degrees=config.degrees[:1]))
    if fitted is not None and fitted.error <= config.near:
      yield fitted.structure


def _varying(
  rows: Rows, columns: Sequence[int], links: Sequence[str], allows: Callable[[str], bool] | None,
  config: ExactFactorsConfig
) -> Iterator[Structure]:
  """Sums of terms times functions of the same column that leave little."""
  models = varying.find_models(rows, columns, links, more={}, allows=allows, config=config.sums)
  near = [model for model in models if model.left <= config.near]
  for model in near[: config.num_sharpened]:
    yield Structure(model.link, tuple((term, model.column) for term in model.terms))


# --- to how many digits --------------------------------------------------------------------------------------------


def sharpened(rows: Rows, structure: Structure, config: ExactFactorsConfig) -> Fitted | None:
  """With the fewest polynomials, of the columns or of logarithms, that predict rows left out about as well as any; None
  where there are too few rows or y has no such function.
  """
  if not LINKS[structure.link].is_defined(rows.y) or (target := terms.whole(LINKS[structure.link], rows)) is None:
    return None
  z, weights = target
  # By draw: of a grid every fourth row may be all of one level.
  is_left_out = np.random.default_rng(0).permutation(len(rows)) % config.left_out_of == 0
  variance = np.average((z - np.average(z, weights=weights)) ** 2, weights=weights)
  found: list[Fitted] = []
  for scales, degree in itertools.product(_all_scales(rows.x, structure, config), config.degrees):
    design = _design(rows.x, structure, scales, degree)
    kept = ~is_left_out
    is_usable = np.all(np.isfinite(design)) and np.all(np.any(design[kept] != 0, axis=0))
    if not is_usable or design.shape[1] * config.rows_per_constant > len(rows):
      continue
    left = z - design @ _solved(design[kept], z[kept], weights[kept])
    error = np.average(left[is_left_out] ** 2, weights=weights[is_left_out]) / variance
    found.append(Fitted(structure, scales, degree, float(error), math.inf))
  least = max(min((fitted.error for fitted in found), default=0.0) * config.as_good, config.rounding)
  best = min((fitted for fitted in found if fitted.error <= least), key=lambda fitted: fitted.degree, default=None)
  first = min((fitted.error for fitted in found if fitted.degree == config.degrees[0]), default=math.inf)
  return None if best is None else dataclasses.replace(best, first=first)


def _all_scales(x: np.ndarray, structure: Structure, config: ExactFactorsConfig) -> Iterator[dict[int, Scale]]:
  columns = dict.fromkeys(column for _, column in structure.parts)
  ends = {column: (float(x[:, column].min()), float(x[:, column].max())) for column in columns}
  is_wide = {column: least > 0 and largest > config.wide * least for column, (least, largest) in ends.items()}
  for is_log in (False, True) if any(is_wide.values()) else (False,):
    yield {column: Scale(*ends[column], is_log and is_wide[column]) for column in columns}


def _design(x: np.ndarray, structure: Structure, scales: dict[int, Scale], degree: int) -> np.ndarray:
  """1, then of each part the term, unless that is 1, and the polynomials times it: [N, M]."""
  blocks = [np.ones((len(x), 1))]
  for term, column in structure.parts:
    known = expression.evaluate(term, x) * np.ones(len(x))
    polynomials = scales[column].polynomials(x[:, column], degree)
    blocks.append(known[:, None] * (polynomials if term == ONE else _with_ones(polynomials)))
  return np.concatenate(blocks, axis=1)


def _with_ones(polynomials: np.ndarray) -> np.ndarray:
  return np.column_stack([np.ones(len(polynomials)), polynomials])


def _solved(design: np.ndarray, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
  root = np.sqrt(weights)[:, None]
  sizes = np.linalg.norm(root * design, axis=0)
  return np.linalg.lstsq(root * design / sizes, root[:, 0] * z, rcond=_DEPENDENT)[0] / sizes


# --- the functions --------------------------------------------------------------------------------------------------


@np.errstate(all="ignore")  # as where it was found
def functions_of(rows: Rows, fitted: Fitted, config: ExactFactorsConfig) -> tuple[list[Function], float]:
  """The functions of a model, those of one column that are multiples of each other as one, and the constant beside."""
  structure, scales, degree = fitted.structure, fitted.scales, fitted.degree
  target = terms.whole(LINKS[structure.link], rows)
  assert target is not None, "models are of targets that there are"
  z, weights = target
  design = np.sqrt(weights)[:, None] * _design(rows.x, structure, scales, degree)
  sizes = np.linalg.norm(design, axis=0)
  left, singular, right = np.linalg.svd(design / sizes, full_matrices=False)
  singular = np.where(singular > _DEPENDENT * singular[0], singular, np.inf)
  spread = right.T / singular / sizes[:, None]  # of the coefficients
  solved = spread @ (left.T @ (np.sqrt(weights) * z))
  constant, begin = float(solved[0]), 1
  variance = float(np.average((z - np.average(z, weights=weights)) ** 2, weights=weights))
  found: list[Function] = []
  for term, column in structure.parts:
    block = slice(begin, begin + degree + (term != ONE))
    begin = block.stop
    places = unknown_functions.places_of(rows.x[:, column], config.num_places)
    polynomials = scales[column].polynomials(places, degree)
    polynomials = polynomials if term == ONE else _with_ones(polynomials)
    variances = np.sum((polynomials @ spread[block]) ** 2, axis=1)
    is_known = variances <= config.times_median * np.median(variances)
    values = polynomials[is_known] @ solved[block]
    if term == ONE:  # the constant is part of the first of them
      values, constant = values + constant, 0.0
    # Variances are of errors of weight 1, what a model leaves is a mean.
    error = fitted.error * variance * float(np.mean(weights) * np.mean(variances[is_known]))
    found.append(Function(column, ((term, 1.0),), places[is_known], values, error))
  return _joined(found, config), constant if constant**2 > config.nothing * variance else 0.0


def _joined(functions: Sequence[Function], config: ExactFactorsConfig) -> list[Function]:
  """Those that are multiples of the one that is known best of them as one."""
  found: list[Function] = []
  for function in sorted(functions, key=lambda each: each.error / np.mean(each.values**2)):
    for i, known in enumerate(found):
      factor = _multiple(function, known, config) if function.column == known.column else None
      if factor is not None:
        found[i] = known._replace(multiples=(*known.multiples, (function.multiples[0][0], factor)))
        break
    else:
      found.append(function)
  return found


def _multiple(function: Function, known: Function, config: ExactFactorsConfig) -> float | None:
  """How many times another one a function is, as far as it is known; None where it is no multiple."""
  _, own, others = np.intersect1d(function.places, known.places, return_indices=True)
  values, of_known = function.values[own], known.values[others]
  factor = values @ of_known / (of_known @ of_known)
  error = function.error + factor**2 * known.error
  left = np.mean((values - factor * of_known) ** 2)
  return float(factor) if left <= max(config.alike * error, config.nothing * np.mean(values**2)) else None
