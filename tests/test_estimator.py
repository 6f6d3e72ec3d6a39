"""scikit-learn's contract, and what the estimator adds to it."""

import copy
import dataclasses
import inspect
import traceback

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn import metrics
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
import sympy

from symformer_jax import testing
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.errors import InputError, SymFormerError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.language import parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import Constant, Counts, Equation, SearchResult, Seconds

WIDE = testing.FixedProposer(
  ["0.7*x0**1.4", "1.3*x0 + 2.2", "1.1*x0 + 1.2*x1 + 0.3*x2 + 1.7", "1.5*exp(0.3*x0) + 1.1"], num_variables=64)


# A model that knows as many columns as the checks have: none is left out.
# Weights are relative, and description length counts rows: thirty that repeat nine are more evidence than nine.
# Without atoms: of ten columns they take seconds.
@parametrize_with_checks(
  [SymFormerRegressor(model=WIDE, n_samples=16, recombine=False, random_state=0)],
  expected_failed_checks=lambda estimator: {
    "check_sample_weight_equivalence_on_dense_data": "a repeated row counts as one more row, a weight does not"})
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix for nan or inf")
def test_contract_of_scikit_learn(estimator, check):
  if check.func.__name__ == "check_regressor_multioutput":
    pytest.skip("compiles for 20 s, for shapes that no other check has; test_each_target_has_a_front_of_its_own")
  check(estimator)


# As it comes, with all sources and the shipped models: a quarter of an hour.
@pytest.mark.slow
@parametrize_with_checks(
  [SymFormerRegressor(verbose=False)],
  expected_failed_checks=lambda estimator: {
    "check_sample_weight_equivalence_on_dense_data": "a repeated row counts as one more row, a weight does not"})
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix for nan or inf")
def test_contract_of_the_default_estimator(estimator, check):
  check(estimator)


# The checks that fit more columns than a univariate model knows; the error says so.
MORE_THAN_ONE_COLUMN = [
  "fit_score_takes_y", "estimators_overwrite_params", "dont_overwrite_parameters",
  "estimators_fit_returns_self", "readonly_memmap_input", "n_features_in_after_fitting",
  "positive_only_tag_during_fit", "estimators_dtypes", "sample_weights_pandas_series",
  "sample_weights_not_an_array", "sample_weights_list", "sample_weights_shape",
  "sample_weights_not_overwritten", "sample_weight_equivalence_on_dense_data", "dtype_object",
  "pipeline_consistency", "estimators_nan_inf", "estimators_pickle", "f_contiguous_array_estimator",
  "regressors_train", "regressor_data_not_an_array", "regressors_no_decision_function", "supervised_y_2d",
  "regressors_int", "methods_sample_order_invariance", "methods_subset_invariance", "dict_unchanged",
  "fit_idempotent", "fit_check_is_fitted", "n_features_in", "fit2d_predict1d", "regressor_multioutput",
]


@parametrize_with_checks(
  [SymFormerRegressor(model=testing.FixedProposer(["0.7*x0**1.4", "1.3*x0 + 2.2", "1.3/x0"]), n_samples=16,
                      recombine=False, random_state=0)])
def test_contract_with_a_univariate_model(estimator, check):
  if check.func.__name__.removeprefix("check_") not in MORE_THAN_ONE_COLUMN:
    check(estimator)
    return
  # For this reason and no other; some checks say it in words of their own.
  with pytest.raises((InputError, AssertionError, ValueError)) as caught:
    check(estimator)
  assert "more variables than the model knows: 'fixed' knows 1" in "".join(traceback.format_exception(caught.value))


@pytest.fixture(scope="module")
def data():
  rng = np.random.default_rng(0)
  X = pd.DataFrame({"mass": rng.uniform(1, 4, 40), "speed": rng.uniform(1, 4, 40)})
  return X, 0.5 * X["mass"] * X["speed"] ** 2


@pytest.fixture(scope="module")
def fitted(data):
  model = testing.FixedProposer(["0.7*x0*x1**2", "0.7*x0*x1", "0.3*x0*x1**2 + 1.2*x1"], num_variables=64)
  return SymFormerRegressor(model=model, n_samples=32, random_state=0).fit(*data)


def test_the_law_and_its_exports(fitted, data):
  X, y = data
  assert fitted.score(X, y) == pytest.approx(1)
  mass, speed = sympy.symbols("mass speed", real=True)
  assert sympy.simplify(fitted.sympy() - 0.5 * mass * speed**2) == 0
  assert "mathrm{speed}" in fitted.latex()
  expected = fitted.predict(X)
  np.testing.assert_allclose(expected, y, rtol=1e-9)
  np.testing.assert_array_equal(fitted.numpy()(X.to_numpy()), expected)
  function = jax.jit(fitted.jax())
  np.testing.assert_allclose(function(X.to_numpy(np.float32)), expected, rtol=1e-5)
  slope = jax.grad(lambda x: fitted.jax()(x[None])[0])(np.array([2.0, 3.0], np.float32))
  np.testing.assert_allclose(slope, [4.5, 6.0], rtol=1e-5)


def test_the_front_is_a_table(fitted, data):
  frame = fitted.equations_
  assert list(frame.columns) == ["expression", "latex", "complexity", "r2", "mse", "rmse", "relative_error",
                                 "constants", "whole", "recommended"]
  assert frame["recommended"].sum() == 1 and frame["complexity"].is_monotonic_increasing
  assert len(np.unique(fitted.predict(data[0], index=0))) == 1
  with pytest.raises(InputError, match=r"index: expected a row of equations_ \(0 to \d+\), got 99"):
    fitted.predict(data[0], index=99)


def test_all_follows_the_formula_that_is_taken(fitted, data, tmp_path):
  X, y = data
  taken = clone(fitted).set_params(model_selection=0).fit(X, y)
  assert len(np.unique(taken.predict(X))) == 1 and taken.score(X, y) == pytest.approx(0, abs=0.01)
  assert not taken.sympy().free_symbols and taken.best_.expression == taken.equations_["expression"][0]
  assert taken.best_.constants[0].stderr > 0 and taken.latex() == taken.equations_["latex"][0]
  assert np.array_equal(taken.numpy()(X.to_numpy()), taken.predict(X))
  assert not taken.equations_["recommended"][0]
  taken.set_params(model_selection="recommended")
  np.testing.assert_array_equal(taken.predict(X), fitted.predict(X))
  taken.set_params(model_selection="accurate").save(tmp_path / "fit.json")
  loaded = SymFormerRegressor.load(tmp_path / "fit.json")
  assert loaded.model_selection == "accurate" and loaded.best_.mse == fitted.equations_["mse"].min()
  with pytest.raises(InputError, match="model_selection: unknown choice 'simpel', .* did you mean 'simple'?"):
    clone(fitted).set_params(model_selection="simpel").fit(X, y)
  with pytest.raises(InputError, match=r"model_selection: expected a line of the front, 0 to \d+, got 50"):
    clone(fitted).set_params(model_selection=50).fit(X, y)


@pytest.mark.slow
def test_a_limit_of_nodes_holds_beside_other_rules(fitted, data):
  short = clone(fitted).set_params(
    max_complexity=5, restrictions=Restrictions(required=("mass",))).fit(*data)
  assert short.equations_["complexity"].max() <= 5 and all("mass" in text for text in short.equations_["expression"])


def test_weights_and_loss_reach_the_search(fitted, data):
  X, y = data
  weights = np.where(np.arange(40) < 20, 1.0, 1e-20)  # of more the search would make something
  spoiled = np.where(np.arange(40) < 20, y, 7.0)
  few = dataclasses.replace(DEFAULT, sources=("closed_forms", "transformer"))  # the law is a product of powers
  taken = clone(fitted).set_params(loss="relative", config=few).fit(X, spoiled, sample_weight=weights)
  assert taken.best_.expression == fitted.best_.expression
  np.testing.assert_allclose(taken.result_.weights / (weights / spoiled**2), taken.result_.weights[0] * spoiled[0] ** 2)


def test_lists_of_rows_have_a_column_or_an_export_each(fitted, data):
  X, _ = data
  several = fitted.predict(X, [0, -1, 0])
  assert several.shape == (40, 3)
  for column, index in enumerate((0, -1, 0)):
    np.testing.assert_array_equal(several[:, column], fitted.predict(X, index))
  assert fitted.sympy([0, 1]) == [fitted.sympy(0), fitted.sympy(1)]
  assert fitted.latex(np.array([1, 0])) == [fitted.latex(1), fitted.latex(0)]
  points = X.to_numpy()
  for first, function in zip(fitted.predict(X, [0, 1]).T, fitted.numpy([0, 1]), strict=True):
    np.testing.assert_array_equal(function(points), first)
  assert fitted.source("c", [0, 1]) == [fitted.c(0), fitted.c(1)] == fitted.c([0, 1])
  for index in ([], "0", 1.0, True, [0, 99], [None, "a"]):
    with pytest.raises(InputError, match="index: expected"):
      fitted.predict(X, index)


def test_the_score_of_another_line_is_the_r2_of_its_values(fitted, data):
  X, y = data
  weights = np.linspace(0, 2, len(y))
  for index in (0, -1, None):
    assert fitted.score(X, y, index=index) == pytest.approx(metrics.r2_score(y, fitted.predict(X, index)))
    assert fitted.score(X, y, weights, index=index) == pytest.approx(
      metrics.r2_score(y, fitted.predict(X, index), sample_weight=weights))
  assert fitted.score(X, y, index=[0, -1]).tolist() == [
    fitted.score(X, y, index=0), fitted.score(X, y, index=-1)]
  assert fitted.score(X, y, index=np.array(0)) == fitted.score(X, y, index=0)
  assert fitted.score(X, y, index=np.array([0, 1])).tolist() == fitted.score(X, y, index=[0, 1]).tolist()
  np.testing.assert_array_equal(fitted.predict(X, np.array(0)), fitted.predict(X, 0))
  for index in ([], 99, [0, "a"], np.array(0.5)):
    with pytest.raises(InputError, match="index: expected"):
      fitted.score(X, y, index=index)


def test_texts_of_the_formula_that_is_taken(fitted):
  assert fitted.best_.expression == "0.5*speed**2*mass"
  assert "return 0.5*speed**2*mass" in fitted.source("numpy")
  assert fitted.c() == fitted.source("c") and "return 0.5*pow(speed, 2.0)*mass;" in fitted.c()
  assert "return 0.5*speed^2*mass" in fitted.julia() and fitted.excel() == "=0.5*speed^2*mass"
  assert fitted.excel(cells=["A2", "B2"]) == "=0.5*B2^2*A2"
  with pytest.raises(InputError, match="unknown language 'fortran'"):
    fitted.source("fortran")
  with pytest.raises(InputError, match="unknown language .'c'.: expected one of"):
    fitted.source(["c"])
  with pytest.raises(NotFittedError):
    SymFormerRegressor().source("c")


def test_the_front_as_a_latex_table(fitted):
  table = fitted.latex_table()
  rows = [line for line in table.splitlines() if line.endswith(r"\\") and "Formula" not in line]
  assert len(rows) == len(fitted.equations_) and "toprule" not in table
  assert [row.split("&")[1].strip(" $") for row in rows] == fitted.equations_["latex"].tolist()
  [marked] = [row for row in rows if "rightarrow" in row]
  assert fitted.latex() in marked and "e-" not in table
  assert fitted.latex_table([0]).count(r"\\") == fitted.latex_table(0).count(r"\\") == 2
  with pytest.raises(NotFittedError):
    SymFormerRegressor().latex_table()


def test_a_notebook_shows_the_front_once_there_is_one(fitted, data):
  plain = SymFormerRegressor()
  assert plain._repr_html_().startswith("<style>") and plain._repr_latex_() is None
  assert set(plain._repr_mimebundle_()) == {"text/plain", "text/html"} and "front" not in plain._front_html()
  assert fitted._repr_html_().count('<table class="front">') == 1 == fitted._repr_mimebundle_()["text/html"].count(
    '<table class="front">')
  assert "0.5*speed**2*mass" in fitted._repr_html_() and fitted._repr_latex_() == f"$\\displaystyle {fitted.latex()}$"
  with sklearn.config_context(display="text"):
    assert not hasattr(fitted, "_repr_html_") and set(fitted._repr_mimebundle_()) == {"text/plain"}


def test_a_notebook_escapes_names(fitted):
  hostile = copy.copy(fitted)
  name = "<script>alert(1)</script>"
  hostile.feature_names_in_ = np.array([name, "speed"], dtype=object)
  lines = [dataclasses.replace(line, names=(name, "speed")) for line in fitted._front]
  hostile._set_front(lines, lines[1])
  assert name not in hostile._repr_html_() and "&lt;script&gt;" in hostile._repr_html_()


def test_report_draws_what_was_fitted_or_is_given(fitted, data, tmp_path):
  fitted.report(tmp_path / "fit.html", name="mine")
  page = (tmp_path / "fit.html").read_text()
  assert "0.5*speed**2*mass" in page and "<td>mine</td>" in page
  fitted.save(tmp_path / "fit.json")
  loaded = SymFormerRegressor.load(tmp_path / "fit.json")
  with pytest.raises(InputError, match="X, y: expected data to draw, a loaded estimator has none"):
    loaded.report(tmp_path / "again.html")
  loaded.report(tmp_path / "again.html", *data, index=0)
  assert f"<h1><code>y = {fitted.equations_['expression'][0]}</code>" in (tmp_path / "again.html").read_text()
  with pytest.raises(InputError, match="path: expected a name ending in .html or .htm"):
    fitted.report(tmp_path / "fit.pdf")
  with pytest.raises(InputError, match="path: the folder"):
    fitted.report(tmp_path / "no" / "fit.html")


def test_a_report_of_half_the_data_is_refused(fitted, data, tmp_path):
  X, y = data
  for given, alone in (({"X": X}, "X"), ({"y": y}, "y")):
    with pytest.raises(InputError, match=f"^X, y: expected both or neither, got {alone} alone$"):
      fitted.report(tmp_path / "a.html", **given)
  assert not list(tmp_path.iterdir())


def test_saved_and_loaded_predict_alike(fitted, data, tmp_path):
  fitted.save(tmp_path / "fit.json")
  loaded = SymFormerRegressor.load(tmp_path / "fit.json")
  np.testing.assert_array_equal(loaded.predict(data[0]), fitted.predict(data[0]))
  pd.testing.assert_frame_equal(loaded.equations_, fitted.equations_)
  assert loaded.get_params()["n_samples"] == 32 and loaded.get_params()["model"] == "fixed"
  with pytest.raises(ValueError, match="feature names should match"):
    loaded.predict(data[0].rename(columns={"mass": "weight"}))


def test_each_target_has_a_front_of_its_own(data, monkeypatch):
  X, _ = data
  Y = pd.DataFrame({"double": 2 * X["mass"], "sum": X["mass"] + X["speed"] + 1})
  laws = iter(["2*mass", "mass + speed + 1", "2*mass"])

  def search(model, datasets, *, names, **options):
    [columns] = names
    line = Equation(parser.parse(next(laws), columns), columns, 0.0, 1.0, None, ())
    return [SearchResult("ok", "", line, (line,), Counts(), Seconds(), 0, 40, "fixed")]
  monkeypatch.setattr("symformer_jax.inference.search", search)
  found = SymFormerRegressor(WIDE, verbose=False).fit(X, Y)
  assert [each.best_.expression for each in found.estimators_] == ["2*mass", "mass + speed + 1"]
  with pytest.raises(AttributeError, match=r"^2 targets were fitted: ask .* estimators_\[0\]$"):
    _ = found.best_
  assert len(found.equations_) == len(found.result_) == len(found.estimators_) == 2
  np.testing.assert_allclose(found.predict(X), Y, rtol=1e-9)
  assert found.score(X, Y) == pytest.approx(1) and found.estimators_[1].latex() == found.estimators_[1].best_.latex
  for ask in (found.latex, found.sympy, found.latex_table):
    with pytest.raises(InputError, match=r"2 targets were fitted: ask one of estimators_, such as estimators_\[0\]"):
      ask()
  again = found.fit(X, Y["double"])
  assert again.best_.expression == "2*mass" and not hasattr(again, "estimators_") and again.predict(X).shape == (40,)


@pytest.mark.parametrize("names", [["girth (in)", "lambda"], ["exp", "pi"], ["x**2", "a`b"], ["y", "x"], ["1", ""]])
def test_columns_of_any_name_are_saved_and_loaded(data, tmp_path, names):
  X, y = data
  X = X.set_axis(names, axis=1)
  node = parser.parse("0.5*mass*speed**2 + exp(mass)", ["mass", "speed"])
  found = SymFormerRegressor()
  found.n_features_in_, found.feature_names_in_ = 2, np.array(names, object)
  found.result_ = None
  line = Equation(node, tuple(names), 0.0, 1.0, None, (Constant(0.5, None),))
  found._set_front([line], line)
  found.save(tmp_path / "fit.json")
  loaded = SymFormerRegressor.load(tmp_path / "fit.json")
  np.testing.assert_array_equal(loaded.predict(X), found.predict(X))
  pd.testing.assert_frame_equal(loaded.equations_, found.equations_)
  assert {str(symbol) for symbol in loaded.sympy().free_symbols} == set(names)


def test_restrictions_and_accuracy_are_kept(data, tmp_path):
  model = testing.FixedProposer(["0.7*x0*x1**2", "0.7*x0*x1"], num_variables=2)
  rules = Restrictions(forbidden=("pow", "pow2"), required=("mass",), max_depth=5,
                       max_sizes={"sin": 3, "/": (None, 5)})
  found = SymFormerRegressor(model, n_samples=32, restrictions=rules, accuracy=0.5, random_state=0).fit(*data)
  rule = rules.for_columns(["mass", "speed"])
  assert all(rule(e.node) for e in found.result_.pareto) and found.result_.ended_by == "accuracy"
  found.save(tmp_path / "fit.json")
  assert SymFormerRegressor.load(tmp_path / "fit.json").get_params()["restrictions"] == rules
  assert clone(found).restrictions == rules


def test_guesses_and_a_config_are_kept(data, tmp_path):
  model = testing.FixedProposer(["0.7*x0*x1"], num_variables=2)
  config = SearchConfig(sources=("closed_forms", "guesses", "transformer"))
  found = SymFormerRegressor(model, n_samples=32, guesses=["0.7*mass*speed**1.9"], config=config, random_state=0)
  found.fit(*data)
  assert [turn.source for turn in found.result_.rounds[:2]] == ["closed_forms", "guesses"]
  assert found.result_.rounds[1].gained and not {"library", "parts"} & {turn.source for turn in found.result_.rounds}
  found.save(tmp_path / "fit.json")
  params = SymFormerRegressor.load(tmp_path / "fit.json").get_params()
  assert params["config"] == config and list(params["guesses"]) == ["0.7*mass*speed**1.9"]


@pytest.mark.parametrize(("text", "message"), [
  ("{", "is no saved SymFormerRegressor"), ('{"format": "other"}', "expected format 'symformer-regressor-NUMBER'"),
  ("[]", "is no saved SymFormerRegressor"), ("{}", "is no saved SymFormerRegressor: the field 'format' is missing"),
])
def test_foreign_files_are_refused(tmp_path, text, message):
  (tmp_path / "fit.json").write_text(text)
  with pytest.raises(InputError, match=message):
    SymFormerRegressor.load(tmp_path / "fit.json")
  with pytest.raises(InputError, match="cannot be read: No such file"):
    SymFormerRegressor.load(tmp_path / "none.json")


def test_a_folder_of_a_model_may_be_a_path(data, monkeypatch, tmp_path):
  asked = []
  monkeypatch.setattr("symformer_jax.inference.resolve_model", lambda name, num_variables: asked.append(name) or WIDE)
  estimator = SymFormerRegressor(model=tmp_path / "own", n_samples=16, random_state=0).fit(*data)
  estimator.save(tmp_path / "fit.json")
  assert asked == [str(tmp_path / "own")]
  assert SymFormerRegressor.load(tmp_path / "fit.json").model == str(tmp_path / "own")


def test_more_columns_than_the_model_knows(data):
  model = testing.FixedProposer(["x0**2"])
  # Without it, sums and products find the law.
  assert SymFormerRegressor(model=model, random_state=0).fit(*data).best_.expression == "0.5*speed**2*mass"
  estimator = SymFormerRegressor(model=model, recombine=False)
  with pytest.raises(InputError, match="'fixed' knows 1, the data have 2"):
    estimator.fit(*data)


def test_every_parameter_and_attribute_is_documented(fitted):
  text = inspect.getdoc(SymFormerRegressor)
  parameters, attributes = text.split("Attributes\n----------")
  for name, parameter in inspect.signature(SymFormerRegressor).parameters.items():
    line = next(line for line in parameters.splitlines() if line.startswith(f"{name} : "))
    default = parameter.default
    assert line.endswith("default=" + (f'"{default}"' if isinstance(default, str) else str(default)))
  for name in vars(fitted):
    if name.endswith("_") and not name.startswith("_"):
      assert f"\n{name} : " in attributes


def test_every_parameter_reaches_the_search(data, monkeypatch):
  X, y = data
  asked = {}

  def search(model, datasets, **options):
    asked.update(options, model=model, datasets=datasets)
    raise InputError("far enough")
  monkeypatch.setattr("symformer_jax.inference.search", search)
  weights = np.linspace(0.5, 2, len(y))
  parameters = {
    "model": WIDE, "n_samples": 77, "top_k": 7, "refine": "bfgs", "operators": ("+", "*"),
    "restrictions": Restrictions(max_depth=4), "max_time": 3.5, "accuracy": 0.75, "recombine": False,
    "guesses": ("mass",), "effort": "thorough", "loss": "relative", "template": "f(mass)",
    "config": SearchConfig(sources=("closed_forms",)), "units": {"mass": "kg", "speed": "m/s", "y": "J"},
    "dimensionless_constants": True, "add_operators": ("tanh",), "strategy": "nucleus", "temperature": 0.5}
  estimator = SymFormerRegressor(**parameters, random_state=5, max_complexity=9, model_selection="simple")
  # All of them, and none with its default: what is left out here or there is seen.
  others = {"random_state", "verbose", "max_complexity", "model_selection", "callback", "warm_start",
            "select_k_features"}  # the last two in test_warm_start.py
  assert {*parameters} | others == set(estimator.get_params())
  assert all(value != getattr(SymFormerRegressor(), name) for name, value in parameters.items())
  with pytest.raises(InputError, match="far enough"):
    estimator.fit(X, y, sample_weight=weights)
  expected = parameters | {"restrictions": Restrictions(max_depth=4, max_complexity=9)}
  assert {name: asked[name] for name in parameters} == expected and asked["seed"] == 5
  [(points, targets, given)] = asked["datasets"]
  np.testing.assert_array_equal(points, X)
  np.testing.assert_array_equal(targets, y)
  np.testing.assert_array_equal(given, weights)
  assert asked["names"] == [("mass", "speed")] and asked["targets"] == ["y"]


def test_random_states_of_numpy_give_other_seeds(data, monkeypatch):
  seeds = []

  def search(model, datasets, *, seed, **options):
    seeds.append(seed)
    raise InputError("far enough")
  monkeypatch.setattr("symformer_jax.inference.search", search)
  for state in (np.random.RandomState(0), np.random.RandomState(0), np.random.RandomState(1), None, None):
    with pytest.raises(InputError, match="far enough"):
      SymFormerRegressor(model=WIDE, random_state=state).fit(*data)
  assert seeds[0] == seeds[1] != seeds[2] and seeds[3] != seeds[4]


def test_weights_below_0_are_called_so():
  x = np.arange(9.0)[:, None]
  for weights in (np.full(9, -1.5), np.where(x[:, 0] > 3, 1.0, -1.5)):
    with pytest.raises(InputError, match=r"sample_weight: expected weights of at least 0, got -1\.5"):
      SymFormerRegressor(model=testing.FixedProposer(["x0"])).fit(x, 2 * x[:, 0], weights)


@pytest.mark.parametrize(("name", "value"), [
  ("model", None), ("model", 3), ("operators", 3), ("add_operators", True), ("guesses", 3), ("units", "m"),
  ("restrictions", {"max_depth": 3}), ("config", 3)])
def test_parameters_that_no_fit_takes_are_not_saved(tmp_path, name, value):
  x = np.arange(9.0)[:, None]
  estimator = SymFormerRegressor(model=testing.FixedProposer(["x0"]), verbose=False).fit(x, 2 * x[:, 0])
  with pytest.raises(InputError, match=f"^{name}: cannot be saved, got {value!r}$"):
    estimator.set_params(**{name: value}).save(tmp_path / "fit.json")
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "value", "message"), [
  ("random_state", -1, r"expected a whole number from 0 to 2\*\*63 - 1, got -1"),
  ("random_state", "a", "expected a whole number, a RandomState of NumPy or None, got 'a'"),
  ("select_k_features", 10**30, "expected at most 2147483647, got 1000000000000000000000000000000")])
def test_a_parameter_that_is_no_number_of_its_kind_is_named(name, value, message):
  x = np.arange(9.0)[:, None]
  with pytest.raises(InputError, match=f"^{name}: {message}$"):
    SymFormerRegressor(model=testing.FixedProposer(["x0"]), **{name: value}).fit(x, 2 * x[:, 0])


def test_what_is_no_path_or_line_is_named(tmp_path):
  x = np.arange(9.0)[:, None]
  estimator = SymFormerRegressor(model=testing.FixedProposer(["x0"]), verbose=False).fit(x, 2 * x[:, 0])
  for path in (None, 3):
    with pytest.raises(InputError, match=f"^path: expected a file name, got {path}$"):
      estimator.save(path)
  with pytest.raises(InputError, match="^index: expected a row of equations_ .*, got a value of type int$"):
    estimator.predict(x, index=10**5000)
  with pytest.raises(InputError, match="^y holds 'a' in row 0, which is no number"):
    estimator.report(tmp_path / "a.html", x, ["a"] * 9)


@pytest.mark.parametrize("name", ["verbose", "warm_start"])
@pytest.mark.parametrize("value", ["no", "yes", None, 0.5])
def test_what_is_no_truth_value_is_refused_where_one_is_meant(name, value):
  x = np.arange(9.0)[:, None]
  for y in (2 * x[:, 0], np.hstack([x, 2 * x])):
    with pytest.raises(InputError, match=f"^{name}: expected True or False, got {value!r}$"):
      SymFormerRegressor(model=testing.FixedProposer(["x0"]), **{name: value}).fit(x, y)


@pytest.mark.parametrize("value", [np.True_, 1])
def test_truth_values_of_numpy_and_whole_numbers_are_taken(value):
  x = np.arange(9.0)[:, None]
  model = testing.FixedProposer(["x0"])
  SymFormerRegressor(model=model, verbose=0, warm_start=value, effort="quick").fit(x, 2 * x[:, 0])


def test_a_fit_that_was_refused_has_fitted_nothing():
  x = np.arange(9.0)[:, None]
  new, again, several = (SymFormerRegressor(model=testing.FixedProposer(["x0"]), verbose=False) for _ in range(3))
  again.fit(x, 2 * x[:, 0])
  several.fit(x, np.hstack([x, 2 * x]))
  for estimator in (new, again, several):
    with pytest.raises(InputError, match="the target is constant"):
      estimator.fit(x, np.zeros(9) if estimator is not several else np.hstack([x, 0 * x]))
    assert not hasattr(estimator, "best_")
    for ask in (lambda e: e.predict(x), lambda e: e.latex(), lambda e: e.save("fit.json"), lambda e: e.best_):
      with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(estimator)


@pytest.mark.parametrize(("changes", "kind"), [
  ({"X": np.full((10, 2), np.nan)}, ValueError), ({"y": np.arange(5.0)}, ValueError),
  ({"X": scipy.sparse.csr_matrix(np.eye(10, 2))}, TypeError), ({"sample_weight": np.ones(3)}, ValueError),
  ({"sample_weight": np.full(10, np.nan)}, ValueError)])
def test_what_scikit_learn_refuses_has_its_errors(changes, kind):
  """As docs/python.md says of errors; what the package itself refuses is an `InputError`."""
  given = {"X": np.arange(20.0).reshape(10, 2), "y": np.arange(10.0)} | changes
  estimator = SymFormerRegressor(model=testing.FixedProposer(["x0"]), verbose=False)
  with pytest.raises(kind) as caught:
    estimator.fit(**given)
  assert not isinstance(caught.value, SymFormerError)
  with pytest.raises(InputError, match="sample_weight: expected weights of at least 0"):
    estimator.fit(**given | {"X": np.arange(20.0).reshape(10, 2), "y": np.arange(10.0), "sample_weight": -np.ones(10)})
