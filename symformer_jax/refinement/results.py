"""What `refine` returns: the fitted formula with what is known of its constants, and perhaps with exact ones."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np

from symformer_jax.language import printing, source_code, sympy_trees
from symformer_jax.language.expression import Node
from symformer_jax.refinement import inputs
from symformer_jax.refinement.named import NamedFormula
from symformer_jax.refinement.problem import Status


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
    is_named: whether the names are those of a DataFrame, which `predict` then looks for in another one.
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
  is_named: bool = False

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
    constants = ", ".join(f"{name} = {value:.6g} +- {printing.format_number(self.stderr[name], 2)}"
                          for name, value in self.constants.items())
    return f"RefineResult({self.expression}; {constants}; rss {self.rss:.4g}, {self.status.name.lower()})"

  def predict(self, X: Any) -> np.ndarray:
    """Values of the fitted formula [N] on points [N, D] like those it was fitted to, or [N] of one variable.

    Raises:
      InputError: for another number of columns, and for a DataFrame whose columns have other names than those of the
        fit, or another order.
    """
    x = inputs.read_like(X, self.names, is_named=self.is_named)
    return NamedFormula(self.node, ()).evaluator(x)(np.zeros(0))[0]


def with_held(
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
