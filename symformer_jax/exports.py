"""What can be made of the lines of a front: SymPy, LaTeX, functions, source text."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from symformer_jax import frames
from symformer_jax.errors import InputError
from symformer_jax.language import functions, source_code, sympy_trees
from symformer_jax.results import Equation
from symformer_jax.selection import scoring

T = TypeVar("T")
# Which line of the front: the one that is taken, a row, or several of them.
Index = int | Sequence[int] | None


def read_index(index: Any) -> Any:
  """An index as a list of lines where it is of several; an array of no dimension is of one."""
  if isinstance(index, np.ndarray):
    return index.tolist()
  return list(index) if isinstance(index, Sequence) and not isinstance(index, str) else index


def _points_of(X: Any) -> np.ndarray:
  """An argument of an exported function as points [N, D]."""
  points = frames.as_numbers(X, "X")
  if points.ndim != 2:
    raise InputError(f"X: expected points [N, D], got an array of shape {points.shape}")
  return points


class ExportsMixin:
  """The exports of an estimator; it has `_front`, the lines, and `_equation(index)`, the line of an index."""

  _front: tuple[Equation, ...]

  def _equation(self, index: int | None) -> Equation:
    raise NotImplementedError

  def _for_each(self, index: Index, convert: Callable[[Equation], T]) -> T | list[T]:
    """What is made of the line of an index, or of each line of a list of them."""
    read = read_index(index)
    if not isinstance(read, list):
      return convert(self._equation(read))
    if not read:
      raise InputError("index: expected rows of equations_, got an empty list")
    return [convert(self._equation(i)) for i in read]

  def sympy(self, index: Index = None) -> Any:
    """The formula as a SymPy expression over real symbols with the columns' names; of a list of rows a list."""
    return self._for_each(index, lambda equation: sympy_trees.to_sympy(equation.node, equation.names))

  @overload
  def latex(self, index: int | None = None) -> str: ...
  @overload
  def latex(self, index: Sequence[int]) -> list[str]: ...
  def latex(self, index: Index = None) -> str | list[str]:
    """The formula in LaTeX; of a list of rows a list."""
    return self._for_each(index, lambda equation: equation.latex)

  def latex_table(self, index: Sequence[int] | None = None, *, digits: int | None = None) -> str:
    """The front, or some rows of it, as a LaTeX `tabular`: formula, complexity, R2 and RMSE. It needs no package.

    Args:
      index: rows of `equations_`, in the order wanted; None for all.
      digits: significant ones of the constants; None for all.
    """
    from symformer_jax.presentation.latex_table import latex_table

    taken = self._equation(None)
    lines = self._for_each(range(len(self._front)) if index is None else index, lambda equation: equation)
    return latex_table(lines if isinstance(lines, list) else [lines], taken, digits=digits)

  def numpy(self, index: Index = None) -> Any:
    """The formula as a NumPy function from X [N, D] to y [N]; of a list of rows a list."""
    return self._for_each(index, lambda equation: lambda X: scoring.evaluate(equation.node, _points_of(X)))

  def jax(self, index: Index = None) -> Any:
    """The formula as a JAX function from X [N, D] to y [N]; differentiable, and may be jitted and mapped."""
    return self._for_each(index, lambda equation: functions.jax_function(equation.node))

  def torch(self, index: Index = None) -> Any:
    """The formula as a function of torch tensors from X [N, D] to y [N]; differentiable. Needs torch (extra `[torch]`).
    """
    return self._for_each(index, lambda equation: functions.torch_function(equation.node))

  @overload
  def source(
    self, language: str, index: int | None = None, *, cells: Sequence[str] | None = None) -> str: ...
  @overload
  def source(self, language: str, index: Sequence[int], *, cells: Sequence[str] | None = None) -> list[str]: ...
  def source(self, language: str, index: Index = None, *, cells: Sequence[str] | None = None) -> str | list[str]:
    """The formula as source text: a function `formula` of all columns in their order; of a list of rows a list.

    Args:
      language: numpy, jax, torch, c, julia or excel.
      index: see `predict`.
      cells: for excel, what stands for each column, such as `["A2", "B2"]`; by default its name.
    Columns whose names the language does not take are renamed, and a comment says so (`source_code.safe_names`); in
    a spreadsheet's formula, which has no comments, see the names themselves or give `cells`.
    """
    return self._sources(language, index, cells)

  def _sources(self, language: str, index: Index, cells: Sequence[str] | None = None) -> str | list[str]:
    return self._for_each(index, lambda equation: source_code.write(
      equation.node, equation.names, language, cells=cells))

  @overload
  def c(self, index: int | None = None) -> str: ...
  @overload
  def c(self, index: Sequence[int]) -> list[str]: ...
  def c(self, index: Index = None) -> str | list[str]:
    """The formula as a function of doubles in C."""
    return self._sources("c", index)

  @overload
  def julia(self, index: int | None = None) -> str: ...
  @overload
  def julia(self, index: Sequence[int]) -> list[str]: ...
  def julia(self, index: Index = None) -> str | list[str]:
    """The formula as a Julia function of numbers: `formula.(a, b)` takes arrays."""
    return self._sources("julia", index)

  @overload
  def excel(self, index: int | None = None, *, cells: Sequence[str] | None = None) -> str: ...
  @overload
  def excel(self, index: Sequence[int], *, cells: Sequence[str] | None = None) -> list[str]: ...
  def excel(self, index: Index = None, *, cells: Sequence[str] | None = None) -> str | list[str]:
    """The formula as a spreadsheet's, in names of columns or in cells."""
    return self._sources("excel", index, cells)
