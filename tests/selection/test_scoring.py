"""Scores against scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics

from symformer_jax.language import parser
from symformer_jax.selection import scoring


def test_r2_of_logarithms_is_that_of_a_fit_of_the_logarithm():
  y, prediction, weights = np.array([1.0, 10.0, 100.0, 5.0]), np.array([2.0, 9.0, 150.0, -4.0]), np.ones(4)
  weights[3] = 0
  log_y, log_p = np.log(y[:3]), np.log(prediction[:3])
  expected = 1 - np.sum((log_y - log_p) ** 2) / np.sum((log_y - log_y.mean()) ** 2)
  assert scoring.log_r2(prediction, y, weights) == pytest.approx(expected)
  assert scoring.log_r2(-prediction, -y, weights) == pytest.approx(expected)
  assert scoring.log_r2(prediction, y, np.ones(4)) is None


def test_scores_are_those_of_scikit_learn(rng):
  y, prediction, weights = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.1, 2, 50)
  scores = scoring.score(prediction, y, weights)
  assert scores.mse == pytest.approx(metrics.mean_squared_error(y, prediction, sample_weight=weights))
  assert scores.r2 == pytest.approx(metrics.r2_score(y, prediction, sample_weight=weights))
  expected = metrics.mean_absolute_percentage_error(y, prediction, sample_weight=weights)
  assert scores.relative_error == pytest.approx(expected)
  assert scores.rmse == pytest.approx(np.sqrt(scores.mse))


def test_undefined_rows_count_only_where_they_weigh():
  y, prediction = np.arange(4.0), np.array([0.0, 1.0, np.nan, np.inf])
  assert scoring.score(prediction, y) == scoring.Scores(np.inf, None, None, 2)
  assert scoring.score(prediction, y, np.array([1.0, 1, 0, 0])).mse == 0


def test_figures_that_do_not_exist_are_none():
  scores = scoring.score(np.zeros(3), np.zeros(3))
  assert scores.r2 is None and scores.relative_error is None


def test_many_rows_are_evaluated_in_chunks(monkeypatch):
  monkeypatch.setattr(scoring, "CHUNK_ROWS", 7)
  x = np.linspace(0, 1, 50)[:, None]
  np.testing.assert_array_equal(scoring.evaluate(parser.parse("x**2 + 1"), x), x[:, 0] ** 2 + 1)
  np.testing.assert_array_equal(scoring.evaluate(parser.parse("3"), x), np.full(50, 3.0))


def test_r2_of_logarithms_counts_rows_by_their_weights(rng):
  y, weights = rng.uniform(1, 9, 30), rng.uniform(0.1, 2, 30)
  prediction = y * rng.uniform(0.5, 2, 30)
  expected = metrics.r2_score(np.log(y), np.log(prediction), sample_weight=weights)
  assert scoring.log_r2(prediction, y, weights) == pytest.approx(expected)


@pytest.mark.parametrize(("prediction", "y"), [([1.0, 2, 0], [1.0, 2, 3]), ([1.0, 2, 3], [1.0, 2, 0]),
                                               ([1.0, 2, 3], [2.0, 2, 2])])
def test_of_zeros_and_of_one_value_there_is_no_r2_of_logarithms(prediction, y):
  assert scoring.log_r2(np.array(prediction), np.array(y), np.ones(3)) is None


def test_r2_of_logarithms_that_hardly_vary_is_that_of_any():
  y = np.array([1.0, 1.01, 1.02])
  assert scoring.log_r2(y, y, np.ones(3)) == 1.0
