"""SymFormer-JAX for SRBench: `est`, `model`, `get_population`, `get_best_solution` and `eval_kwargs` of its guide."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import mutual_info_regression
from sklearn.utils.validation import check_is_fitted, validate_data

from symformer_jax import SymFormerRegressor
from symformer_jax.language import sympy_trees
from symformer_jax.results import Equation
from symformer_jax.selection import scoring

# Formulas are made of at most so many columns.
MAX_COLUMNS = 10
# More points than this decide nothing about which columns matter.
MAX_ROWS_TO_CHOOSE = 2000
# SRBench takes at most so many formulas of a population.
MAX_POPULATION = 100


class SRBenchRegressor(RegressorMixin, BaseEstimator):
  """`SymFormerRegressor` for any number of columns.

  Data with more than ten columns are searched over those with most mutual information with the target.

  Args:
    n_samples: candidates drawn from the model, for one and two columns.
    max_time: seconds for which the search goes on, unless it has met the data; None to let its effort decide.
    random_state: fixes every random choice.
  """

  def __init__(self, n_samples=4096, max_time=None, random_state=None):
    self.n_samples = n_samples
    self.max_time = max_time
    self.random_state = random_state

  def fit(self, X, y):
    X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
    self.columns_ = self._choose_columns(X, y)
    search = SymFormerRegressor(n_samples=self.n_samples, max_time=self.max_time, random_state=self.random_state)
    self.front_ = search.fit(X[:, self.columns_], y).result_.pareto
    self.equation_ = search.best_
    return self

  def _choose_columns(self, X, y):
    if X.shape[1] <= MAX_COLUMNS:
      return np.arange(X.shape[1])
    rows = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS_TO_CHOOSE]
    information = mutual_info_regression(X[rows], y[rows], random_state=0)
    return np.sort(np.argsort(information)[-MAX_COLUMNS:])

  def predict(self, X):
    check_is_fitted(self)
    X = validate_data(self, X, dtype=np.float64, reset=False)
    return scoring.evaluate(self.equation_.node, X[:, self.columns_])

  def with_equation(self, equation: Equation) -> "SRBenchRegressor":
    """The same fit, predicting by another formula of the front."""
    other = SRBenchRegressor(**self.get_params())
    other.__dict__.update(self.__dict__, equation_=equation)
    return other


est = SRBenchRegressor(random_state=0)
# The formulas are of the data's own units: SRBench's scaling would only be in the way.
eval_kwargs = {"scale_x": False, "scale_y": False}


def model(est, X=None):
  """The formula as a string that SymPy reads, in the names of X's columns, or x_0, x_1, ..."""
  names = list(getattr(X, "columns", [f"x_{i}" for i in range(est.n_features_in_)]))
  return str(sympy_trees.to_sympy(est.equation_.node, [str(names[i]) for i in est.columns_]))


def get_population(est):
  """The front from simple to accurate, each formula a regressor of its own."""
  return [est.with_equation(equation) for equation in est.front_][:MAX_POPULATION]


def get_best_solution(est):
  """The recommended formula."""
  return est
