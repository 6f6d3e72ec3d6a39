"""The SRBench adapter, called as its contribution guide and its `evaluate_model.py` say; the harness is no package."""

import importlib.util
import inspect
import pathlib

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
import sympy

from symformer_jax.language.parser import parse
from symformer_jax.selection import scoring

FOLDER = pathlib.Path(__file__).parents[2] / "srbench" / "symformer_jax"


@pytest.fixture(scope="module")
def method():
  """`importlib` on the folder's regressor.py, as the harness does."""
  spec = importlib.util.spec_from_file_location("regressor", FOLDER / "regressor.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.fixture(scope="module")
def fitted(method):
  """Trained as `evaluate_model` does in its test mode; of three columns one carries the target."""
  rng = np.random.default_rng(0)
  X = pd.DataFrame(rng.uniform(1, 5, (90, 3)), columns=["noise a", "speed", "noise b"])
  y = 3.5 * np.sin(X["speed"].to_numpy()) + 1.25
  est = clone(method.est)
  assert hasattr(est, "random_state") and hasattr(est, "max_time")
  # No limit that a busy machine reaches: how far a search comes by then is no matter of the seed.
  est.random_state, est.max_time, est.n_samples = 42, 600, 64
  return est.fit(X.to_numpy(), y), X, y


def test_the_folder_holds_what_the_guide_requires():
  metadata = (FOLDER / "metadata.yml").read_text(encoding="utf-8")
  for key in ("authors", "email", "name", "description", "url"):
    assert f"\n{key}:" in "\n" + metadata
  assert (FOLDER / "requirements.txt").read_text().startswith("symformer-jax")


def test_the_regressor_predicts_and_is_reproducible(method, fitted):
  est, X, y = fitted
  assert est.score(X.to_numpy(), y) > 0.99
  again = clone(est).fit(X.to_numpy(), y)
  assert method.model(again) == method.model(est)
  assert set(method.eval_kwargs) == {"scale_x", "scale_y"}


def test_the_model_is_a_string_in_the_columns_names_that_sympy_would_read(method, fitted):
  est, X, y = fitted
  assert "X" in inspect.signature(method.model).parameters
  named = X.rename(columns={"noise a": "a", "noise b": "b"})
  text = method.model(est, named)
  assert "speed" in text and "x_" not in text
  values = scoring.evaluate(parse(text, list(named.columns)), named.to_numpy())
  np.testing.assert_allclose(values, est.predict(X.to_numpy()), rtol=1e-9, atol=1e-9)
  assert "x_1" in method.model(est)
  functions = {name for name in ("asin", "acos", "atan", "exp", "log", "sin") if f"{name}(" in text}
  assert all(hasattr(sympy, name) for name in functions) and "arc" not in text


def test_the_population_is_a_list_of_regressors(method, fitted):
  est, X, _ = fitted
  population = method.get_population(est)
  assert 1 < len(population) <= 100
  for member in population:
    assert member.predict(X.to_numpy()).shape == (90,)
    assert isinstance(method.model(member, X), str)
  assert len({method.model(member) for member in population}) == len(population)
  assert method.get_best_solution(est) is est
