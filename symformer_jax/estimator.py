"""`SymFormerRegressor`: the search behind scikit-learn's interface."""

from collections.abc import Callable, Sequence
import dataclasses
import json
import numbers
import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from symformer_jax import configuration, files, frames, inference, results
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.engine.rows import MIN_POINTS
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser, sympy_trees
from symformer_jax.language.rules import Restrictions
from symformer_jax.progress_line import ProgressLine
from symformer_jax.results import Constant, Equation
from symformer_jax.selection import choice, scoring


class SymFormerRegressor(RegressorMixin, BaseEstimator):
  """Finds formulas for points and predicts by the recommended one, or another one of the front.

  Parameters
  ----------
  model : str or model, default="auto"
      A shipped model's name, a model's folder, or a loaded model. "auto" takes the shipped model for so many
      columns. Change it to use a model of your own.
  n_samples : int, default=1024
      Candidates drawn from the model. More find harder formulas, in proportion slower.
  top_k : int, default=20
      Tokens among which each step of sampling chooses. Fewer stay closer to what the model thinks likely.
  refine : {"lm", "bfgs", "gd", "none"}, default="lm"
      How constants are fitted. "lm" (damped least squares) is the fastest; the others are for comparison.
  operators : sequence of str, default=None
      Operators a formula may use, such as ["+", "*", "exp"]; None for all. Name them when you know the field.
  restrictions : Restrictions, default=None
      Further rules: columns that must or must not appear, the largest exponent, depth, operators not to be nested.
      Change it when you know what the formula may look like.
  max_time : float, default=None
      Seconds for which the search goes on, unless it has met the data; a turn, which is not cut short, takes about one.
      None to let `effort` decide. Set it to have more time find more.
  accuracy : float, default=None
      R2 at which no further turn is begun; None for all. Set it to have easy data done sooner.
  random_state : int, RandomState instance or None, default=None
      Fixes every random choice. Pass an int for the same answer in every run.
  recombine : bool, default=True
      Whether rational functions, formulas made of small functions with inner constants on a grid and of parts of the
      candidates, and what grows from all of these compete with them; else only what the model proposed does.
  guesses : sequence of str, default=()
      Formulas in the column names that join the search, their constants fitted. Name what you expect.
  effort : {"quick", "normal", "thorough"}, default="normal"
      How much is tried: "quick" is about half the work of a normal search, "thorough" about ten times as much, by
      evolving what has been found. Counted work, not seconds; with `max_time` formulas are evolved till then.
  config : SearchConfig, default=None
      What steers the search: which sources, how many of what. None for the defaults; change it for ablations.
  loss : {"squared", "relative", "log", "huber", "auto"}, default="squared"
      Which errors are to be small. "relative" counts rows as 1/y**2, "log" fits log|y|, "huber" counts rows far from
      the formula less, "auto" finds by a first look how errors grow with |y|. Change it for data over decades or with
      outliers; `result_.message` says what was found.
  model_selection : {"recommended", "accurate", "simple"} or int, default="recommended"
      Which formula of the front predicts, scores and is exported: the recommended one, the one of least error, the
      shortest that looks as good in a plot, or a row of `equations_`. May be changed after `fit`.
  max_complexity : int, default=None
      Nodes that a formula may have, of 2*x + 1 five; None for any number. Lower it for formulas to be read.
  verbose : bool, default=True
      Whether a line on standard error shows where the search stands.

  Attributes
  ----------
  best_ : Equation
      The formula that `model_selection` takes, with standard errors of its constants.
  equations_ : pandas.DataFrame
      The front from simple to accurate: expression, latex, complexity, r2, mse, rmse, relative_error, constants,
      recommended.
  result_ : SearchResult
      All that the search says: the front as trees, counts of candidates, times. None after `load`.
  n_features_in_ : int
      Columns seen in `fit`.
  feature_names_in_ : ndarray of shape (n_features_in_,)
      Their names, where X had names that are text.
  estimators_ : list of SymFormerRegressor
      Of several targets (y [N, K]) one for each, which has its formulas and exports; `predict` [N, K] and `score` are
      of all, `equations_`, `best_` and `result_` lists. Not there for a single target.
  """

  def __init__(
    self, model: Any = "auto", n_samples: int = 1024, top_k: int = 20, refine: str = "lm",
    operators: Sequence[str] | None = None, restrictions: Restrictions | None = None, max_time: float | None = None,
    accuracy: float | None = None, random_state: Any = None, recombine: bool = True,
    guesses: Sequence[str] = (), effort: str = "normal", config: SearchConfig | None = None, loss: str = "squared",
    model_selection: str | int = "recommended", max_complexity: int | None = None, verbose: bool = True,
  ):
    self.model = model
    self.n_samples = n_samples
    self.top_k = top_k
    self.refine = refine
    self.operators = operators
    self.restrictions = restrictions
    self.max_time = max_time
    self.accuracy = accuracy
    self.random_state = random_state
    self.recombine = recombine
    self.guesses = guesses
    self.effort = effort
    self.config = config
    self.loss = loss
    self.model_selection = model_selection
    self.max_complexity = max_complexity
    self.verbose = verbose

  def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
    """Searches formulas for y over the columns of X.

    Args:
      X: points [N, D]; columns of a DataFrame give the formulas their names.
      y: targets [N], or [N, K] for a front for each of K targets.
      sample_weight: weights of the points [N], at least 0, of which only the ratios count; None for equal ones.
    Raises:
      InputError: a ValueError, says what makes arguments or data unusable.
    """
    frames.check_numeric(X, "X")
    frames.check_numeric(y, "y")
    shape = np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
      return self._fit_targets(X, y, sample_weight)
    self.__dict__.pop("estimators_", None)  # of an earlier fit
    X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
    y = y.astype(np.float64)
    weights = np.ones(len(y)) if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
    choice.read_selection(self.model_selection, argument="model_selection")
    restrictions = self.restrictions
    if self.max_complexity is not None:
      restrictions = dataclasses.replace(restrictions or Restrictions(), max_complexity=self.max_complexity)
    model = self.model
    if isinstance(model, str):
      model = inference.resolve_model(model, num_variables=X.shape[1])
    if not np.any(weights > 0):
      raise InputError("sample_weight: expected at least one weight above 0")
    names = tuple(self._column_names())
    if len(np.unique(y[weights > 0])) == 1 or np.sum(weights > 0) < MIN_POINTS:
      raise InputError(_describe_too_little(y[weights > 0]))
    with ProgressLine(is_quiet=not self.verbose) as line:
      [result] = inference.search(
        model, [(X, y, weights)], names=[names], n_samples=self.n_samples, top_k=self.top_k, refine=self.refine,
        recombine=self.recombine, operators=self.operators, restrictions=restrictions, max_time=self.max_time,
        accuracy=self.accuracy, guesses=self.guesses, effort=self.effort, seed=self._seed(), on_round=line,
        loss=self.loss,
        config=DEFAULT if self.config is None else self.config)
    if result.status != results.OK:
      raise InputError(result.message)
    self.result_ = result
    self._set_front(result.pareto, result.best)
    self._equation(None)  # a line that does not exist is refused now
    return self

  def _fit_targets(self, X: Any, y: Any, sample_weight: Any) -> Self:
    """Fits an estimator with the same parameters to each column of y [N, K]."""
    validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
    columns = [y.iloc[:, k] for k in range(y.shape[1])] if hasattr(y, "iloc") else list(np.asarray(y).T)
    self.estimators_ = [
      type(self)(**self.get_params(deep=False)).fit(X, column, sample_weight) for column in columns]
    self.result_ = [each.result_ for each in self.estimators_]
    self.equations_ = [each.equations_ for each in self.estimators_]
    return self

  @property
  def best_(self) -> Equation | list[Equation]:
    """The formula that `model_selection` takes; of several targets a list."""
    check_is_fitted(self)
    if hasattr(self, "estimators_"):
      return [each.best_ for each in self.estimators_]
    return choice.pick(self._front, self._recommended, self.model_selection, argument="model_selection")

  def _seed(self) -> int:
    if isinstance(self.random_state, numbers.Integral):
      return int(self.random_state)
    return int(check_random_state(self.random_state).randint(2**31))

  def _column_names(self) -> list[str]:
    names = getattr(self, "feature_names_in_", None)
    return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

  def _set_front(self, front: Sequence[Equation], best: Equation) -> None:
    import pandas as pd

    self._recommended = best
    self.equations_ = pd.DataFrame([{**e.to_json(), "recommended": e is best} for e in front])
    self._front = tuple(front)

  def predict(self, X: Any, index: int | None = None) -> np.ndarray:
    """Values of the formula of `model_selection`, or of row `index` of `equations_`, at X [N, D]: y [N] or [N, K].

    NaN or infinite where the formula is undefined.
    """
    check_is_fitted(self)
    frames.check_numeric(X, "X")
    if hasattr(self, "estimators_"):
      return np.stack([each.predict(X, index) for each in self.estimators_], axis=-1)
    X = validate_data(self, X, dtype=np.float64, reset=False)
    return scoring.evaluate(self._equation(index).node, X)

  def _equation(self, index: int | None) -> Equation:
    check_is_fitted(self)
    if hasattr(self, "estimators_"):
      raise InputError(f"{len(self.estimators_)} targets were fitted: ask one of estimators_, such as estimators_[0]")
    if index is None:
      return self.best_
    if not -len(self._front) <= index < len(self._front):
      raise InputError(f"index: expected a row of equations_ (0 to {len(self._front) - 1}), got {index}")
    return self._front[index]

  def sympy(self, index: int | None = None) -> Any:
    """The formula as a SymPy expression over real symbols with the columns' names."""
    equation = self._equation(index)
    return sympy_trees.to_sympy(equation.node, equation.names)

  def latex(self, index: int | None = None) -> str:
    """The formula in LaTeX."""
    return self._equation(index).latex

  def numpy(self, index: int | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """The formula as a NumPy function from X [N, D] to y [N]."""
    node = self._equation(index).node
    return lambda X: scoring.evaluate(node, np.asarray(X, np.float64))

  def jax(self, index: int | None = None) -> Callable[..., Any]:
    """The formula as a JAX function from X [N, D] to y [N]; differentiable, and may be jitted and mapped."""
    return _jax_function(self._equation(index).node)

  def save(self, path: str | os.PathLike) -> None:
    """Writes the fitted formulas as JSON; the model is not part of it."""
    self._equation(None)  # a single target's
    state = {
      "format": _FORMAT, "n_features": self.n_features_in_, "names": list(self._recommended.names),
      "feature_names": list(getattr(self, "feature_names_in_", [])) or None,
      "best": self._front.index(self._recommended), "params": _json_params(self.get_params(deep=False)),
      "front": [equation.to_json() for equation in self._front],
    }
    files.write_text(path, json.dumps(state, indent=1, default=np.generic.item) + "\n")

  @classmethod
  def load(cls, path: str | os.PathLike) -> Self:
    """Reads what `save` wrote: predicts and exports as before; refitting uses the stored parameters.

    Raises:
      InputError: when the file is missing or no saved regressor.
    """
    try:
      with open(path, encoding="utf-8") as file:
        state = json.load(file)
      if state["format"] != _FORMAT:
        raise InputError(f"{path}: expected format {_FORMAT!r}, got {state['format']!r}")
      params = dict(state["params"])
      if params.get("restrictions") is not None:
        params["restrictions"] = _read_restrictions(params["restrictions"])
      if params.get("config") is not None:
        params["config"] = configuration.build(SearchConfig, params["config"])
      loaded = cls(**params)
      loaded.n_features_in_ = state["n_features"]
      if state["feature_names"]:
        loaded.feature_names_in_ = np.asarray(state["feature_names"], dtype=object)
      front = [_read_equation(record, state["names"]) for record in state["front"]]
      loaded.result_ = None
      loaded._set_front(front, front[state["best"]])
    except OSError as error:
      raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (KeyError, TypeError, IndexError, ValueError, RecursionError) as error:
      if isinstance(error, InputError):
        raise
      raise InputError(f"{path}: is no saved SymFormerRegressor: {error}") from None
    return loaded

  def __sklearn_tags__(self):
    tags = super().__sklearn_tags__()
    # Formulas for data without a law, such as the random targets of the checks, are no good fit.
    tags.regressor_tags.poor_score = True
    tags.target_tags.multi_output = True
    # Without random_state every fit draws other samples.
    tags.non_deterministic = self.random_state is None
    return tags


_FORMAT = "symformer-regressor-1"


def _json_params(params: dict[str, Any]) -> dict[str, Any]:
  """Parameters as JSON; a loaded model is stored by its name, random states not at all."""
  params = dict(params)
  if not isinstance(params["model"], str):
    params["model"] = params["model"].name
  if params["operators"] is not None:
    params["operators"] = list(params["operators"])
  if params["restrictions"] is not None:
    params["restrictions"] = dataclasses.asdict(params["restrictions"])
  params["guesses"] = list(params["guesses"])
  if params["config"] is not None:
    params["config"] = configuration.to_dict(params["config"])
  if not isinstance(params["random_state"], numbers.Integral):
    params["random_state"] = None
  return params


def _read_restrictions(record: dict[str, Any]) -> Restrictions:
  return Restrictions(**{name: tuple(value) if isinstance(value, list) else value for name, value in record.items()})


def _read_equation(record: dict[str, Any], names: Sequence[str]) -> Equation:
  node = parser.parse(record["expression"], names)
  constants = tuple(Constant(c["value"], c["stderr"], c.get("exact")) for c in record["constants"])
  return Equation(node, tuple(names), record["mse"], record["r2"], record["relative_error"], constants)


def _describe_too_little(y: np.ndarray) -> str:
  if len(y) < MIN_POINTS:
    return f"n_samples = {len(y)}: expected at least {MIN_POINTS} points of positive weight"
  return f"the target is constant: every value is {y[0]:g}"


def _jax_function(node: expression.Node) -> Callable[..., Any]:
  import jax.numpy as jnp

  from symformer_jax.language import operators

  def value(n: expression.Node, x):
    if n.args:
      return operators.BY_NAME[n.token].jnp_fn(*(value(arg, x) for arg in n.args))
    return x[:, n.value] if n.token == expression.VARIABLE else jnp.asarray(n.value, x.dtype)

  def function(X):
    X = jnp.asarray(X, jnp.result_type(X, jnp.float32))
    return jnp.broadcast_to(value(node, X), X.shape[:1])

  return function
