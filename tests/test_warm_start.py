"""What `SymFormerRegressor` asks of the search: all of its parameters, and formulas of an earlier fit."""

import dataclasses
import inspect

import numpy as np
import pandas as pd
import pytest

from symformer_jax import inference, testing
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.language import parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import Counts, Equation, Filled, SearchResult, Seconds

NAMES = ["girth (in)", "z"]
SEARCH = inspect.signature(inference.search).parameters
FORMULAS = ["1.5", "2.25*`girth (in)` + z", "sin(`girth (in)`) + 0.5*z"]


@pytest.fixture
def asked(monkeypatch):
  """Options of each search; a stand-in answers with `FORMULAS`, under a template with functions of one column."""
  calls = []

  def search(model, datasets, **options):
    calls.append(options)
    names = tuple(options["names"][0])
    lines = []
    for i, text in enumerate(FORMULAS if "z" in names else ["2.5*x0"]):
      filled = Filled((("f(z)", f"{i}.5*z"),), ()) if options["template"] else None
      lines.append(Equation(parser.parse(text, names), names, 1.0, 0.5, None, (), filled))
    return [SearchResult("ok", "", lines[-1], tuple(lines), Counts(), Seconds(), 0, 6, "fixed")]

  monkeypatch.setattr(inference, "search", search)
  return calls


@pytest.fixture
def data(rng):
  return pd.DataFrame(rng.uniform(1, 2, (9, 2)), columns=NAMES), rng.normal(size=9)


def regressor(**params):
  return SymFormerRegressor(model=testing.FixedProposer(["x0"]), verbose=False, random_state=0, **params)


def test_every_parameter_of_a_search_is_one_of_the_estimator(asked, data):
  # Which the data say, or other parameters under a name of scikit-learn's.
  others = {"model", "datasets", "names", "targets", "seed", "key", "should_stop"}
  assert set(SEARCH) - others <= set(inspect.signature(SymFormerRegressor.__init__).parameters)
  regressor(strategy="nucleus", temperature=0.5).fit(*data)
  assert (asked[0]["strategy"], asked[0]["temperature"]) == ("nucleus", 0.5)
  assert set(SEARCH) - set(asked[0]) == {"model", "datasets", "key", "should_stop"}


def test_a_second_fit_goes_on_from_the_first(asked, data):
  warm = regressor(warm_start=True, guesses=["z**2"]).fit(*data)
  assert asked[-1]["guesses"] == ["z**2"]
  warm.fit(*data)
  assert asked[-1]["guesses"] == ["z**2", *FORMULAS]
  assert warm.set_params(warm_start=False).fit(*data) and asked[-1]["guesses"] == ["z**2"]


def test_what_the_rules_of_the_second_fit_forbid_is_no_guess(asked, data):
  warm = regressor(warm_start=True).fit(*data)
  warm.set_params(operators=["+", "*"], restrictions=Restrictions(required=("z",))).fit(*data)
  assert asked[-1]["guesses"] == [FORMULAS[1]]
  warm.set_params(operators=None, restrictions=None, max_complexity=1).fit(*data)
  assert asked[-1]["guesses"] == [FORMULAS[0]]


@pytest.mark.parametrize(
  "change", [{"template": "f(z) + t"}, {"units": {"z": "m"}}, {"names": ["girth (in)", "y", "z"]}])
def test_formulas_of_other_terms_are_no_guesses(asked, data, change):
  X, y = data
  warm = regressor(warm_start=True).fit(X, y)
  if names := change.pop("names", None):
    X = X.assign(y=1.0)[names]
  assert warm.set_params(**change).fit(X, y) and list(asked[-1]["guesses"]) == []


def test_of_a_template_its_function_goes_on(asked, data):
  warm = regressor(warm_start=True, template="f(z)*exp(-k*`girth (in)`)", restrictions=Restrictions(required=NAMES[:1]))
  warm.fit(*data).fit(*data)
  assert asked[-1]["guesses"] == ["0.5*z", "1.5*z", "2.5*z"]


def test_each_target_and_what_was_loaded_goes_on(asked, data, tmp_path):
  X, y = data
  warm = regressor(warm_start=True).fit(X, np.column_stack([y, -y]))
  assert [list(call["guesses"]) for call in asked] == [[], []]
  warm.fit(X, np.column_stack([y, -y]))
  assert [call["guesses"] for call in asked[2:]] == [FORMULAS, FORMULAS]
  warm.estimators_[0].save(tmp_path / "fit.json")
  loaded = SymFormerRegressor.load(tmp_path / "fit.json").set_params(model=warm.model)
  loaded.fit(X, y)
  assert asked[-1]["guesses"] == FORMULAS


def test_columns_that_explain_most_are_chosen(asked, rng):
  X = rng.uniform(1, 2, (60, 4))
  regressor(select_k_features=2).fit(X, X[:, 1])
  config = asked[-1]["config"]
  assert dataclasses.replace(config, library=DEFAULT.library) == DEFAULT
  task = make_task((X, 3 * X[:, 1] + np.sin(5 * X[:, 3])), None, SearchOptions(config=config))
  assert task.columns == (1, 3) and task.is_chosen
  for wrong in (0, 1.5, True, "z"):
    with pytest.raises(InputError, match="select_k_features: expected a whole number of at least 1, got"):
      regressor(select_k_features=wrong).fit(X, X[:, 1])
