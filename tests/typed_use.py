"""What users write, for the type checker, which reads this file with the package (pyproject.toml): nothing runs it."""

from typing import assert_type

import numpy as np

from symformer_jax import Equation, Restrictions, SearchResult, SymFormerRegressor, parse, search
from symformer_jax.language.expression import Node


def use_a_fit(reg: SymFormerRegressor, x: np.ndarray, y: np.ndarray) -> None:
  assert_type(reg.fit(x, y).best_, Equation)
  assert_type(reg.best_.expression.upper(), str)
  assert_type(reg.best_.constants[0].value, float)
  reg.equations_.head()
  reg.result_.rounds[0].source.upper()
  assert_type(reg.latex().upper(), str)
  assert_type(reg.latex([0, 1]), list[str])
  assert_type(reg.latex_table(digits=3), str)
  assert_type(reg.source("c", 2), str)
  assert_type(reg.source("c", [0, 1]), list[str])
  assert_type(reg.c() + reg.julia(-1) + reg.excel(cells=["A1"]), str)
  assert_type(reg.c([0]) + reg.julia([0]) + reg.excel([0]), list[str])
  assert_type(reg.predict(x, [0]), np.ndarray)
  assert_type(reg.estimators_[0].best_, Equation)


def use_a_search(x: np.ndarray, y: np.ndarray) -> None:
  rules = Restrictions(max_sizes={"sin": 3, "pow": (9, 1), "/": (None, 5)})
  results = search(None, [(x, y)], restrictions=rules)
  assert_type(results, list[SearchResult])
  assert_type(parse("x", ["x"]), Node)
