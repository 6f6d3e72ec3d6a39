"""Which line of a front is exported, and as what; by an object that has a front and no search."""

import numpy as np
import pytest

from symformer_jax import exports
from symformer_jax.errors import InputError
from symformer_jax.language import parser, sympy_trees
from symformer_jax.results import Equation

NAMES = ("a", "b")


class Fitted(exports.ExportsMixin):
  """A front whose second line is taken."""

  def __init__(self):
    self._front = tuple(Equation(parser.parse(text, NAMES), NAMES, 0.25, 0.5, None, ())
                        for text in ("1.5", "2*a", "2*a*b + 0.123456"))

  def _equation(self, index):
    return self._front[1 if index is None else index]


@pytest.mark.parametrize(("index", "lines"), [
  (None, 1), (0, 0), (-1, 2), ([2, 0], [2, 0]), (np.array([1]), [1]), (range(2), [0, 1])])
def test_every_export_is_of_the_line_that_is_asked_for(index, lines):
  fitted, x = Fitted(), np.array([[1.0, 2.0], [3.0, 5.0]])
  values = [np.full(2, 1.5), 2 * x[:, 0], 2 * x[:, 0] * x[:, 1] + 0.123456]

  def agree(found, expected):
    if isinstance(lines, int):
      return expected(found, lines)
    return isinstance(found, list) and all(expected(*each) for each in zip(found, lines, strict=True))

  def has_values(function, line):
    return np.allclose(function(x), values[line])
  assert agree(fitted.numpy(index), has_values) and agree(fitted.jax(index), has_values)
  assert agree(fitted.numpy(index), lambda function, line: has_values(lambda x: function(x.tolist()), line))
  assert agree(fitted.sympy(index), lambda tree, line: tree == sympy_trees.to_sympy(fitted._front[line].node, NAMES))
  assert agree(fitted.latex(index), lambda text, line: text == fitted._front[line].latex)
  for language, call in (("c", fitted.c), ("julia", fitted.julia), ("excel", fitted.excel)):
    for found in (call(index), fitted.source(language, index)):
      assert agree(found, lambda text, line, language=language: text == fitted._front[line].source(language))
  cells = ["B7", "C7"]
  for found in (fitted.excel(index, cells=cells), fitted.source("excel", index, cells=cells)):
    assert agree(found, lambda text, line: text == fitted._front[line].source("excel", cells=cells))
  assert not isinstance(lines, int) or lines == 0 or "B7" in fitted.excel(index, cells=cells)


def test_no_line_is_no_list():
  with pytest.raises(InputError, match="index: expected rows of equations_, got an empty list"):
    Fitted().latex([])


@pytest.mark.parametrize(("points", "message"), [
  (np.ones(2), r"X: expected points \[N, D\], got an array of shape \(2,\)"),
  (np.ones((2, 2, 2)), r"X: expected points \[N, D\], got an array of shape \(2, 2, 2\)"),
  ("a", "X: expected an array of numbers: could not convert")])
def test_a_function_of_numpy_takes_points_alone(points, message):
  with pytest.raises(InputError, match=f"^{message}"):
    Fitted().numpy()(points)


def test_the_table_has_all_lines_or_those_asked_for_and_marks_the_one_taken():
  table = Fitted().latex_table()
  assert table.count(r"\\") == 4 and table.count(r"\rightarrow") == 1 and "0.123456" in table
  [marked] = [line for line in table.splitlines() if r"\rightarrow" in line]
  assert "2 a" in marked.replace(r" \cdot", "")
  assert Fitted().latex_table([2, 0]).count(r"\\") == 3 and r"\rightarrow" not in Fitted().latex_table([2, 0])
  for digits in (0, 2.5):
    with pytest.raises(InputError, match=f"digits: expected a whole number of at least 1, got {digits}"):
      Fitted().latex_table(digits=digits)
  assert Fitted().latex_table(2).count(r"\\") == 2 and "0.12 " in Fitted().latex_table([2], digits=2).replace("$", " ")
