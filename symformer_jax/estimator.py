"""`SymFormerRegressor`: the search behind scikit-learn's interface."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import numbers
import os
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn import metrics
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from symformer_jax import configuration, files, frames, inference, results, saved, warm_start
from symformer_jax.arguments import check_seed, check_whole
from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.engine.rows import MIN_POINTS
from symformer_jax.errors import InputError, show, suggest
from symformer_jax.exports import ExportsMixin, Index, read_index
from symformer_jax.language import templates
from symformer_jax.language.rules import Restrictions
from symformer_jax.live_front import show_progress
from symformer_jax.results import Callback, Equation, SearchResult, Standing
from symformer_jax.selection import choice, scoring


class _Data(NamedTuple):
  """Data as figures take them; D columns, N rows, also those that do not count."""

  features: tuple[str, ...]
  target: str
  x: np.ndarray
  y: np.ndarray


class SymFormerRegressor(ExportsMixin, RegressorMixin, BaseEstimator):
  """Finds formulas for points and predicts by the recommended one, or another one of the front.

  Parameters
  ----------
  model : str, path or model, default="auto"
      A shipped model's name, a model's folder, or a loaded model. "auto" takes the shipped model for so many
      columns. Change it to use a model of your own.
  n_samples : int, default=1024
      Candidates drawn from the model. More find harder formulas, in proportion slower.
  top_k : int, default=20
      Tokens among which each step of sampling chooses. Fewer stay closer to what the model thinks likely.
  strategy : {"top_k", "temperature", "nucleus", "greedy", "beam", "distinct"}, default="top_k"
      How candidates are drawn from the model. The others are for comparison.
  temperature : float, default=1.0
      Below 1 candidates are likelier, above 1 more varied.
  refine : {"lm", "bfgs", "gd", "none"}, default="lm"
      How constants are fitted. "lm" (damped least squares) is the fastest; the others are for comparison.
  operators : sequence of str, default=None
      Operators a formula may use, such as ["+", "*", "exp"]; None for all that models know. Name them when you know the
      field.
  add_operators : sequence of str, default=None
      Operators beside these, which no model knows: tanh, sinh, cosh, abs, sign, min, max. Each costs time and makes
      chance formulas likelier: name those that the field has.
  restrictions : Restrictions, default=None
      Further rules: columns that must or must not appear, the largest exponent, depth, operators not to be nested, the
      size of what an operator is applied to.
      Change it when you know what the formula may look like.
  max_time : float, default=None
      Seconds that a search takes, unless it has met the data before: a turn in progress is then ended.
      None to let `effort` decide. Set it to have more time find more.
  accuracy : float, default=None
      R2 at which no further turn is begun; None for all. Set it to have easy data done sooner.
  random_state : int, RandomState instance or None, default=None
      Fixes every random choice. Pass an int for the same answer in every run.
  recombine : bool, default=True
      Whether rational functions, formulas made of small functions with inner constants on a grid and of parts of the
      candidates, and what grows from all of these compete with them; else only what the model proposed does.
  guesses : sequence of str, default=()
      Formulas in the column names that join the search, their constants fitted. Name what you expect. What became of
      each, the values of its constants with standard errors among it, stands in `result_.guesses`.
  effort : {"quick", "normal", "thorough"}, default="normal"
      How much is tried: "quick" is about three fifths of the work of a normal search, "thorough" ten times as much or
      more, by evolving what has been found. Counted work, not seconds; with `max_time` formulas are evolved till then.
  config : SearchConfig, default=None
      What steers the search: which sources, how many of what. None for the defaults; change it for ablations.
  loss : {"squared", "relative", "log", "huber", "auto"}, default="squared"
      Which errors are to be small. "relative" counts rows as 1/y**2, "log" fits log|y|, "huber" counts rows far from
      the formula less, "auto" finds by a first look how errors grow with |y|. Change it for data over decades or with
      outliers; `result_.message` says what was found.
  template : str, default=None
      A form that each formula is to have, such as "f(x)*exp(-k*t)": unknown functions of columns, and unknown
      constants, which are found. What they are stands in `best_.filled`. Give it when you know part of the law.
  model_selection : {"recommended", "accurate", "simple"} or int, default="recommended"
      Which formula of the front predicts, scores and is exported: the recommended one, the one of least error, the
      shortest that looks as good in a plot, or a row of `equations_`. May be changed after `fit`.
  max_complexity : int, default=None
      Nodes that a formula may have, of 2*x + 1 five; None for any number. Lower it for formulas to be read.
  units : mapping of str to str, default=None
      The unit of each column and, by its name or as "y", of the target, such as {"x": "m", "y": "m/s"}; "1" for none.
      Then only formulas count that can have the target's dimension. Values are never converted. Needs the extra
      `[units]`.
  dimensionless_constants : bool, default=False
      With `units`, whether numbers in formulas have no unit; else one that multiplies or is added may have any. Set it
      where the columns hold every quantity of the law.
  verbose : bool, default=True
      Whether standard error shows where the search stands: on a terminal the front, elsewhere a line now and then.
  callback : callable, default=None
      Called after each turn with a `Standing`: `source`, `seconds`, `best`, `r2`, `front`, and in `index` the number of
      the target where there are several. Where it returns True the search ends with the best so far; what it raises
      ends `fit`. Set it to log a search, or to end it by a rule of your own. It is not saved.

  warm_start : bool, default=False
      Whether a second `fit` goes on from the formulas of the first: they join as guesses, their constants fitted to the
      new data. Set it for data that grow. With other columns, units or another template it begins anew.
  select_k_features : int, default=None
      Columns that formulas are made of, those that explain most; None for up to twelve. `result_.message` names them.

  Attributes
  ----------
  best_ : Equation
      The formula that `model_selection` takes, with standard errors of its constants; not there for several targets.
  equations_ : pandas.DataFrame
      The front from simple to accurate: expression, latex, complexity, r2, mse, rmse, relative_error, constants,
      recommended.
  result_ : SearchResult
      All that the search says: the front as trees, counts of candidates, times. None after `load` of a file of
      format 1, which had no more than the front.
  n_features_in_ : int
      Columns seen in `fit`.
  feature_names_in_ : ndarray of shape (n_features_in_,)
      Their names, where X had names that are text.
  estimators_ : list of SymFormerRegressor
      Of several targets (y [N, K]) one for each, which has its formulas and exports; `predict` [N, K] and `score` are
      of all, `equations_` and `result_` lists. Not there for a single target.
  """

  # Of several targets lists: which it is, types cannot know.
  result_: Any
  equations_: Any

  def __init__(
    self, model: Any = "auto", n_samples: int = 1024, top_k: int = 20, refine: str = "lm",
    operators: Sequence[str] | None = None, restrictions: Restrictions | None = None, max_time: float | None = None,
    accuracy: float | None = None, random_state: Any = None, recombine: bool = True,
    guesses: Sequence[str] = (), effort: str = "normal", config: SearchConfig | None = None, loss: str = "squared",
    model_selection: str | int = "recommended", max_complexity: int | None = None,
    units: Mapping[str, str] | None = None, dimensionless_constants: bool = False,
    add_operators: Sequence[str] | None = None, verbose: bool = True, callback: Callback | None = None,
    template: str | None = None, strategy: str = "top_k", temperature: float = 1.0, warm_start: bool = False,
    select_k_features: int | None = None,
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
    self.units = units
    self.dimensionless_constants = dimensionless_constants
    self.add_operators = add_operators
    self.verbose = verbose
    self.callback = callback
    self.template = template
    self.strategy = strategy
    self.temperature = temperature
    self.warm_start = warm_start
    self.select_k_features = select_k_features

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
    frames.check_numeric(sample_weight, "sample_weight")
    earlier = self._forget()
    self._check_truth_values()
    shape = np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
      return self._fit_targets(X, y, sample_weight, earlier)
    target = y
    X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
    y = y.astype(np.float64)
    weights = np.ones(len(y)) if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
    choice.read_selection(self.model_selection, argument="model_selection")
    inference.check_callback(self.callback)
    restrictions = self.restrictions
    if self.max_complexity is not None:
      restrictions = dataclasses.replace(restrictions or Restrictions(), max_complexity=self.max_complexity)
    model = self.model
    if isinstance(model, str | os.PathLike):
      num_columns = X.shape[1]
      if self.template is not None:
        num_columns = templates.num_columns(self.template, self._column_names())
      model = inference.resolve_model(os.fspath(model), num_variables=num_columns)
    if np.any(weights < 0):
      raise InputError(f"sample_weight: expected weights of at least 0, got {weights.min():g}")
    if not np.any(weights > 0):
      raise InputError("sample_weight: expected at least one weight above 0")
    names = tuple(self._column_names())
    if len(np.unique(y[weights > 0])) == 1 or np.sum(weights > 0) < MIN_POINTS:
      raise InputError(_describe_too_little(y[weights > 0]))
    with show_progress(is_quiet=not self.verbose, max_time=self.max_time) as shown:
      [result] = inference.search(
        model, [(X, y, weights)], names=[names], n_samples=self.n_samples, top_k=self.top_k, refine=self.refine,
        recombine=self.recombine, operators=self.operators, restrictions=restrictions, max_time=self.max_time,
        accuracy=self.accuracy, guesses=self._all_guesses(earlier, names, restrictions), effort=self.effort,
        seed=self._seed(), strategy=self.strategy, temperature=self.temperature,
        callback=functools.partial(_tell, shown, self.callback), loss=self.loss, template=self.template,
        units=self.units, dimensionless_constants=self.dimensionless_constants,
        targets=[_target_name(target)], add_operators=self.add_operators or (),
        config=self._search_config())
    if result.status != results.OK or result.best is None:
      raise InputError(result.message)
    self.result_ = result
    self._terms_ = self._terms(names)
    self._data = _Data(names, _target_name(target), X, y)
    self._set_front(result.pareto, result.best)
    self._equation(None)  # a line that does not exist is refused now
    return self

  def _check_truth_values(self) -> None:
    """Any text is true, `no` as well; whole numbers are taken, as scikit-learn's users write them."""
    for name in ("verbose", "warm_start"):
      value = getattr(self, name)
      if not isinstance(value, bool | np.bool_ | numbers.Integral):
        raise InputError(f"{name}: expected True or False, got {show(value)}")

  def _search_config(self) -> SearchConfig:
    config, num = DEFAULT if self.config is None else self.config, self.select_k_features
    if num is None:
      return config
    num = check_whole("select_k_features", num, most=MAX_COLUMNS)
    return dataclasses.replace(config, library=dataclasses.replace(config.library, max_columns=num))

  def _all_guesses(
    self, earlier: Mapping[str, Any], names: tuple[str, ...], restrictions: Restrictions | None
  ) -> Sequence[str]:
    """The user's, and with `warm_start` the formulas of an earlier fit that count now."""
    is_usable = not isinstance(self.guesses, str | None) and earlier.get("_terms_") == self._terms(names)
    if not self.warm_start or not is_usable:
      return self.guesses
    rules = dataclasses.replace(restrictions or Restrictions(), add_operators=tuple(self.add_operators or ()))
    if self.operators is not None:
      rules = dataclasses.replace(rules, operators=tuple(self.operators))
    return [*self.guesses, *warm_start.guesses_of(earlier["_front"], names, rules)]

  def _terms(self, names: Sequence[str]) -> tuple[Any, ...]:
    """What formulas of one fit must share with those of another to be of use there."""
    units = dict(self.units) if isinstance(self.units, Mapping) else self.units
    return tuple(names), self.template, units, self.dimensionless_constants

  def _fit_targets(self, X: Any, y: Any, sample_weight: Any, earlier: Mapping[str, Any]) -> Self:
    """Fits an estimator with the same parameters to each column of y [N, K]."""
    validate_data(self, X, y, dtype=np.float64, multi_output=True)  # y is made of numbers target by target
    columns = [y.iloc[:, k] for k in range(y.shape[1])] if hasattr(y, "iloc") else list(np.asarray(y).T)
    fitted = []
    with interruption.noting_ctrl_c():  # of one target it is of those that follow
      for k, column in enumerate(columns):
        try:
          params = self.get_params(deep=False) | {"units": _units_without(self.units, columns, column)}
          each = type(self)(**params)
          if k < len(before := earlier.get("estimators_", ())):
            each.__dict__ |= before[k]._fitted()
          if self.callback is not None:
            each.callback = functools.partial(_tell_target, self.callback, k)
          fitted.append(each.fit(X, column, sample_weight).set_params(callback=self.callback))
        except InputError as error:
          raise InputError(f"y, column {getattr(column, 'name', k)}: {error}") from None
    self._set_targets(fitted)
    return self

  def _set_targets(self, fitted: "list[SymFormerRegressor]") -> None:
    self.estimators_ = fitted
    self.result_ = [each.result_ for each in fitted]
    self.equations_ = [each.equations_ for each in fitted]

  def __sklearn_is_fitted__(self) -> bool:
    """Whether there are formulas: a fit that was refused leaves what it saw of the columns alone."""
    return hasattr(self, "_front") or hasattr(self, "estimators_")

  def _fitted(self) -> dict[str, Any]:
    """What an earlier fit has left, by attribute."""
    return {name: self.__dict__[name] for name in _FITTED if name in self.__dict__}

  def _forget(self) -> dict[str, Any]:
    """Leaves nothing of an earlier fit, and returns it: what fails is not fitted."""
    earlier = self._fitted()
    for name in earlier:
      del self.__dict__[name]
    return earlier

  @property
  def best_(self) -> Equation:
    """The formula that `model_selection` takes, of a single target: each of `estimators_` has its own."""
    check_is_fitted(self)
    if hasattr(self, "estimators_"):
      raise AttributeError(self._ask_one())
    return self._taken()

  def _ask_one(self) -> str:
    return f"{len(self.estimators_)} targets were fitted: ask one of estimators_, such as estimators_[0]"

  def _taken(self) -> Equation:
    return choice.pick(self._front, self._recommended, self.model_selection, argument="model_selection")

  def _seed(self) -> int:
    if isinstance(self.random_state, numbers.Integral):
      return check_seed(int(self.random_state), "random_state")
    try:
      return int(check_random_state(self.random_state).randint(2**31))
    except ValueError:
      raise InputError("random_state: expected a whole number, a RandomState of NumPy or None, got "
                       f"{show(self.random_state)}") from None

  def _column_names(self) -> list[str]:
    names = getattr(self, "feature_names_in_", None)
    return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

  def _set_front(self, front: Sequence[Equation], best: Equation) -> None:
    import pandas as pd

    self._recommended = best
    self.equations_ = pd.DataFrame([{**e.to_json(), "recommended": e is best} for e in front])
    self._front = tuple(front)

  def predict(self, X: Any, index: Index = None) -> np.ndarray:
    """Values of the formula of `model_selection`, or of row `index` of `equations_`, at X [N, D]: y [N] or [N, K].

    Of a list of K rows [N, K]. NaN or infinite where a formula is undefined.
    """
    check_is_fitted(self)
    frames.check_numeric(X, "X")
    if hasattr(self, "estimators_"):
      return np.stack([each.predict(X, index) for each in self.estimators_], axis=-1)
    X = validate_data(self, X, dtype=np.float64, reset=False)
    values = self._for_each(index, lambda equation: scoring.evaluate(equation.node, X))
    return np.stack(values, axis=1) if isinstance(values, list) else values

  def score(self, X: Any, y: Any, sample_weight: Any = None, *, index: Index = None) -> Any:
    """R2 of `predict(X, index)`; of several targets their mean, of a list of K rows [K].

    Args:
      X: points [N, D]; y: targets [N] or [N, T]; sample_weight: of the points [N].
      index: see `predict`.
    """
    read = read_index(index)
    if isinstance(read, list) and read:
      return np.array([self.score(X, y, sample_weight, index=i) for i in read])
    return metrics.r2_score(y, self.predict(X, index), sample_weight=sample_weight)

  def _equation(self, index: int | None) -> Equation:
    check_is_fitted(self)
    if hasattr(self, "estimators_"):
      raise InputError(self._ask_one())
    if index is None:
      return self._taken()
    is_number = isinstance(index, numbers.Integral) and not isinstance(index, bool)
    if not is_number or not -len(self._front) <= index < len(self._front):
      raise InputError(f"index: expected a row of equations_ (0 to {len(self._front) - 1}), got {show(index)}")
    return self._front[index]

  def report(
    self, path: str | os.PathLike, X: Any = None, y: Any = None, *, index: int | None = None, name: str = "fit",
  ) -> None:
    """Writes one HTML page that needs nothing else: data, fit, front, constants, what was left out, code.

    Args:
      path: ends in .html.
      X, y: what is drawn; by default what was fitted, which a loaded estimator no longer has.
      index: the line that is shown; name: of the data.
    Raises:
      InputError: for a path that cannot be written, or without data.
    """
    from symformer_jax.presentation import page

    equation = self._equation(index)
    path = files.check_writable(path, flag="path")
    if path.suffix not in page.FORMATS:
      raise InputError(f"path: expected a name ending in {' or '.join(page.FORMATS)}, got {str(path)!r}")
    # Weights are those of the rows that were fitted.
    result = self._result() if X is None else dataclasses.replace(self._result(), weights=None)
    page.write_page(result, equation, self._data_of(X, y), path, name=name)

  def _data_of(self, X: Any, y: Any) -> _Data:
    """The data given, or those that were fitted."""
    if (X is None) != (y is None):
      raise InputError(f"X, y: expected both or neither, got {'y' if X is None else 'X'} alone")
    if X is not None:
      frames.check_numeric(X, "X")
      frames.check_numeric(y, "y")
      target = _target_name(y)
      X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False)
      return _Data(tuple(self._column_names()), target, X, y.astype(np.float64))
    if getattr(self, "_data", None) is None:
      raise InputError("X, y: expected data to draw, a loaded estimator has none")
    return self._data

  def _result(self) -> SearchResult:
    """What the search said; of a file of format 1 the front alone."""
    return self.result_ or SearchResult(
      results.OK, "", self._recommended, self._front, results.Counts(), results.Seconds(), 0, 0, str(self.model))

  @property
  def _repr_html_(self) -> Callable[[], str]:
    """scikit-learn's diagram and, once fitted, the front; as there, none with `set_config(display="text")`."""
    plain = super()._repr_html_
    return lambda: plain() + self._front_html()

  def _front_html(self) -> str:
    if hasattr(self, "estimators_"):
      return "".join(each._front_html() for each in self.estimators_)
    if not hasattr(self, "_front"):
      return ""
    from symformer_jax.presentation import page

    return page.front_html(self._front, self._recommended, self._taken(), is_weighted=self._result().is_weighted,
                           loss=self._result().loss)

  def _repr_latex_(self) -> str | None:
    """The formula for a notebook; None before `fit`."""
    return f"$\\displaystyle {self.latex()}$" if hasattr(self, "_front") else None

  def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
    bundle = super()._repr_mimebundle_(**kwargs)
    return bundle | ({"text/html": bundle["text/html"] + self._front_html()} if "text/html" in bundle else {})

  def save(self, path: str | os.PathLike) -> None:
    """Writes the fitted formulas, of several targets all, as JSON; model and data are not part of it."""
    check_is_fitted(self)
    targets = getattr(self, "estimators_", None)
    version = saved.SINGLE_REGRESSOR_FORMAT if targets is None else saved.REGRESSOR_FORMAT
    state = {
      "format": f"{saved.REGRESSOR}-{version}", "n_features": self.n_features_in_,
      "feature_names": list(getattr(self, "feature_names_in_", [])) or None,
      "params": _json_params(self.get_params(deep=False)),
    }
    if targets is None:
      saved.write(path, state | self._front_record())
    else:
      units = [None if each.units is None else dict(each.units) for each in targets]
      saved.write(path, state | {"targets": [
        {"units": own} | each._front_record() for own, each in zip(units, targets, strict=True)]})

  def _front_record(self) -> dict[str, Any]:
    return saved.front_record(saved.Front(self._front, self._recommended, self.result_))

  @classmethod
  def load(cls, path: str | os.PathLike) -> Self:
    """Reads what `save` wrote: predicts and exports as before; refitting uses the stored parameters.

    Raises:
      InputError: when the file is missing, no saved regressor, or of a newer format.
    """
    return saved.read(path, saved.REGRESSOR, saved.REGRESSOR_FORMAT, cls._from_record, what="saved SymFormerRegressor")

  @classmethod
  def _from_record(cls, record: Mapping[str, Any], version: int) -> Self:
    params = dict(saved.as_object(record["params"], "params"))
    known = cls().get_params(deep=False)
    for name in params:
      if name not in known:
        raise ValueError(f"params: unknown key {name!r}: {suggest(name, known)}")
    params["guesses"] = params.get("guesses") or ()  # none is the default, which JSON would make a list
    if not isinstance(params["guesses"], list | tuple):
      raise ValueError(f"guesses: expected a list of formulas, got {show(params['guesses'])}")
    if params.get("restrictions") is not None:
      params["restrictions"] = _read_restrictions(params["restrictions"])
    if params.get("config") is not None:
      params["config"] = configuration.build(SearchConfig, params["config"], path="params.config")
    if version <= saved.SINGLE_REGRESSOR_FORMAT:  # what format 1 has not is optional
      return cls(**params)._restored(record, record)
    targets = [saved.as_object(target, "targets") for target in saved.as_list(record["targets"], "targets")]
    fitted = [cls(**params | {"units": target["units"]})._restored(record, target) for target in targets]
    if not fitted:
      raise ValueError("targets: expected at least one")
    loaded = cls(**params)._with_columns(record, fitted[0]._front[0].names)
    loaded._set_targets(fitted)
    return loaded

  def _restored(self, record: Mapping[str, Any], target: Mapping[str, Any]) -> Self:
    """With the formulas that a file has for a target."""
    front = saved.read_front(target)
    self._with_columns(record, front.best.names)
    self.result_ = front.result
    self._set_front(front.lines, front.best)
    self._terms_ = self._terms(front.best.names)
    return self

  def _with_columns(self, record: Mapping[str, Any], names: tuple[str, ...]) -> Self:
    """With what a file says of the columns, which formulas call by `names`."""
    feature_names = record["feature_names"]
    if record["n_features"] != len(names) or isinstance(record["n_features"], bool):
      raise ValueError(f"n_features: expected {len(names)}, got {show(record['n_features'])}")
    if feature_names is not None and feature_names != list(names):
      raise ValueError("feature_names: expected those of the formulas")
    self.n_features_in_ = len(names)
    if feature_names is not None:
      self.feature_names_in_ = np.asarray(feature_names, dtype=object)
    return self

  def __sklearn_tags__(self) -> Tags:
    tags = super().__sklearn_tags__()
    # Formulas for data without a law, such as the random targets of the checks, are no good fit.
    tags.regressor_tags.poor_score = True
    tags.target_tags.multi_output = True
    # Without random_state every fit draws other samples.
    tags.non_deterministic = self.random_state is None
    return tags


def _tell(shown: Callback, callback: Callback | None, standing: Standing) -> bool:
  """Shows where a search stands, then asks the user's callback whether to end it."""
  shown(standing)
  return callback is not None and inference.is_wish(callback(standing))


def _tell_target(callback: Callback, index: int, standing: Standing) -> Any:
  return callback(dataclasses.replace(standing, index=index))


# Counts of a config have 32 bits.
MAX_COLUMNS = 2**31 - 1
# What a fit leaves, beside what scikit-learn keeps of the columns.
_FITTED = ("_front", "_recommended", "_data", "_terms_", "estimators_", "equations_", "result_")


# How parameters that are no plain values are stored, where they are given.
_AS_JSON: dict[str, Callable[[Any], Any]] = {
  "model": lambda model: os.fspath(model) if isinstance(model, str | os.PathLike) else model.name,
  "operators": list, "add_operators": list,
  "guesses": list, "units": dict, "restrictions": dataclasses.asdict, "config": configuration.to_dict}


def _json_params(params: dict[str, Any]) -> dict[str, Any]:
  """Parameters as JSON; a loaded model is stored by its name, random states and callbacks not at all.

  Raises:
    InputError: for one that has been set to what no fit takes.
  """
  params = {name: value for name, value in params.items() if name != "callback"}
  for name, store in _AS_JSON.items():
    if params[name] is not None or name == "model":
      try:
        params[name] = store(params[name])
      except (AttributeError, TypeError, ValueError):
        raise InputError(f"{name}: cannot be saved, got {show(params[name])}") from None
  if not isinstance(params["random_state"], numbers.Integral):
    params["random_state"] = None
  return params


def _read_restrictions(record: Any) -> Restrictions:
  values = saved.as_object(record, "params.restrictions")
  sizes = saved.as_list(values.get("max_sizes", []), "max_sizes")
  for pair in sizes:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
      raise ValueError(f"max_sizes: expected pairs of an operator and a size, got {show(pair)}")
  return configuration.build(Restrictions, {**values, "max_sizes": dict(sizes)}, path="params.restrictions")


def _describe_too_little(y: np.ndarray) -> str:
  if len(y) < MIN_POINTS:
    return f"n_samples = {len(y)}: expected at least {MIN_POINTS} points of positive weight"
  return f"the target is constant: every value is {y[0]:g}"


def _units_without(units: Mapping[str, str] | None, targets: Sequence[Any], own: Any) -> Mapping[str, str] | None:
  """The units but those of the other targets."""
  if not isinstance(units, Mapping):
    return units
  others = {_target_name(target) for target in targets} - {_target_name(own)}
  return {name: unit for name, unit in units.items() if name not in others}


def _target_name(y: Any) -> str:
  """What y is called, as a Series is; else y."""
  name = getattr(y, "name", None)
  return name if isinstance(name, str) and name else "y"
