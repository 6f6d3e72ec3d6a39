"""Answers of bare samples: what is fitted, by what and from where, with sampling and fits stood in for."""

import types

import jax
import numpy as np
import pytest

from symformer_jax.engine.rows import Rows
from symformer_jax.evaluation import answers
from symformer_jax.evaluation.answers import Method
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.results import Counts
from symformer_jax.sources.network.samples import Samples

VOCAB = Vocabulary(2)


def samples_of(*texts, loss, vocab=VOCAB):
  ids, values = np.zeros((len(texts), 12), np.int32), np.zeros((len(texts), 12))
  for k, text in enumerate(texts):
    tokens, mantissas = expression.encode(parser.parse(text, ["x", "y"]), VOCAB)
    ids[k, :len(tokens)] = tokens
    values[k, :len(tokens)] = np.array(mantissas) * np.array(VOCAB.constant_scale)[tokens]
  return Samples(ids, values, np.array(loss, float), vocab)


@pytest.fixture
def ask(monkeypatch):
  """Answers by samples that are given; what each step was asked."""
  asked = {}

  def run(samples, method, *, encoding="extended", seed=5):
    asked.clear()

    def sample_and_fit(model, rows, key, **options):
      asked.update(rows=rows, key=key, options=options)
      return samples, Counts(3)

    def fit_from_anywhere(samples, rows, key, refine):
      asked.update(global_key=key, global_refine=refine)
      return samples

    def polish(samples, rows, refine):
      asked.update(polished=refine)
      return samples
    monkeypatch.setattr(answers.samples_lib, "sample_and_fit", sample_and_fit)
    monkeypatch.setattr(answers, "_fit_from_anywhere", fit_from_anywhere)
    monkeypatch.setattr(answers, "_polish_best", polish)
    model = types.SimpleNamespace(name="m", vocab=types.SimpleNamespace(encoding=encoding, num_variables=2))
    points = np.arange(15.0).reshape(5, 3)
    return answers.answer(model, points, method, seed=seed), asked
  return run


def test_the_sample_of_the_lowest_error_is_the_answer(ask):
  found, asked = ask(samples_of("x", "2*x", "3*x", loss=[2.0, np.nan, 1.0]), Method("lowest error", refine="gd"))
  assert found.node == parser.parse("3*x", ["x", "y"]) and found.message == "" and found.counts == Counts(3)
  rows = asked["rows"]
  np.testing.assert_array_equal(rows.x, np.arange(15.0).reshape(5, 3)[:, :2])
  np.testing.assert_array_equal(rows.y, [2, 5, 8, 11, 14])
  np.testing.assert_array_equal(rows.weights, np.ones(5))
  assert asked["options"]["refine"] == asked["polished"] == "gd" and "global_refine" not in asked
  assert asked["options"]["is_allowed"].num_columns == 2
  assert (jax.random.key_data(asked["key"]) == jax.random.key_data(jax.random.key(5))).all()
  none, _ = ask(samples_of("x", loss=[np.inf]), Method("lowest error"))
  assert none.node is None and none.message == "no sample is defined on all points"


def test_without_a_fit_constants_are_what_the_model_says_in_single_precision(ask):
  found, asked = ask(samples_of("1.23456789012*x", loss=[1.0]), Method("lowest error", refine="none"))
  assert found.node == parser.parse("1.2345679*x", ["x", "y"]) and "polished" not in asked
  fitted, _ = ask(samples_of("1.23456789012*x", loss=[1.0]), Method("lowest error", refine="lm"))
  assert fitted.node == parser.parse("1.23456789012*x", ["x", "y"])


def test_a_model_without_constants_is_fitted_from_anywhere(ask):
  _, asked = ask(samples_of("2*x", loss=[1.0]), Method("lowest error", refine="bfgs"), encoding="skeleton")
  assert asked["options"]["refine"] == "none" and asked["global_refine"] == asked["polished"] == "bfgs"
  key = jax.random.fold_in(jax.random.key(5), 1)
  assert (jax.random.key_data(asked["global_key"]) == jax.random.key_data(key)).all()
  _, asked = ask(samples_of("2*x", loss=[1.0]), Method("lowest error", refine="none"), encoding="skeleton")
  assert not {"global_refine", "polished"} & asked.keys()
  _, asked = ask(samples_of(loss=[]), Method("lowest error", refine="lm"))
  assert "polished" not in asked


def test_a_model_of_fewer_columns_is_not_asked(ask):
  model = types.SimpleNamespace(name="m", vocab=types.SimpleNamespace(num_variables=2))
  assert answers.answer(model, np.zeros((5, 4)), Method("lowest error"), seed=0).message == (
    "the model knows 2 variables, the problem has 3")


@pytest.mark.parametrize("num", [3, 16, 20])
def test_sixteen_are_fitted_to_their_end(monkeypatch, num):
  asked = {}

  def polish(ids, values, x, y, weights, *, vocab, method):
    asked.update(ids=ids, values=values, x=x, y=y, weights=weights, vocab=vocab, method=method)
    loss = np.full(16, 0.5)
    loss[1] = np.inf
    return values + 100, types.SimpleNamespace(loss=loss)
  monkeypatch.setattr(answers.solve, "polish", polish)
  order = np.random.default_rng(0).permutation(num)
  samples = samples_of(*(f"{k + 1.5}*x" for k in order), loss=order + 1.0)
  rows = Rows(np.arange(5.0)[:, None], np.arange(5.0) + 1, np.full(5, 2.0))
  found = answers._polish_best(samples, rows, "gd")
  wanted = [*range(min(num, 16)), *[min(num, 16) - 1] * (16 - min(num, 16))]  # the best first; the last one again
  constants = asked["values"].max(axis=1)
  assert constants.tolist() == pytest.approx([k + 1.5 for k in wanted]) and len(found.ids) == 16
  np.testing.assert_array_equal(asked["x"], np.stack([np.arange(5.0), np.zeros(5)], axis=1))
  assert asked["y"].tolist() == [1, 2, 3, 4, 5] and asked["weights"].tolist() == [2] * 5
  assert asked["vocab"] is VOCAB and asked["method"] == "gd"
  np.testing.assert_array_equal(found.ids, asked["ids"])
  expected = asked["values"] + 100
  expected[1] -= 100  # undefined in float64: as it was
  np.testing.assert_array_equal(found.values, expected)
  losses = np.full(16, 0.5)
  losses[1] = min(2, num)
  np.testing.assert_array_equal(found.loss, losses)


@pytest.mark.parametrize(("num", "lanes"), [(1, 1), (2, 2), (3, 4), (5, 8)])
def test_samples_without_constants_are_fitted_in_a_power_of_two_lanes(monkeypatch, num, lanes):
  asked = {}

  def fit(ids, values, x, y, weights, **options):
    asked.update(ids=ids, values=values, x=x, y=y, weights=weights, options=options)
    return np.arange(ids.size).reshape(ids.shape), types.SimpleNamespace(loss=np.arange(len(ids)) + 0.5)
  monkeypatch.setattr(answers.restarts, "fit_with_restarts", fit)
  samples = samples_of(*(f"{k + 1.5}*x" for k in range(num)), loss=np.ones(num))
  rows = Rows(np.arange(5.0)[:, None], np.arange(5.0) + 1, np.full(5, 2.0))
  found = answers._fit_from_anywhere(samples, rows, "key", "gd")
  ids = asked["ids"]
  assert ids.shape == (lanes, 12) and (ids[:num] == samples.ids).all()
  assert (ids[num:, 0] == VOCAB.zero_id).all() and (ids[num:, 1:] == 0).all()
  assert asked["values"].shape == ids.shape and not asked["values"].any()
  np.testing.assert_array_equal(asked["x"], np.stack([np.arange(5.0), np.zeros(5)], axis=1))
  assert {asked[name].dtype for name in ("values", "x", "y", "weights")} == {np.dtype("float32")}
  assert asked["options"] == {"vocab": VOCAB, "key": "key", "num_starts": answers.NUM_GLOBAL_STARTS,
                              "is_skeleton": True, "method": "gd"}
  np.testing.assert_array_equal(found.values, np.arange(num * 12).reshape(num, 12))
  np.testing.assert_array_equal(found.loss, np.arange(num) + 0.5)
  empty = samples_of(loss=[])
  assert answers._fit_from_anywhere(empty, rows, "key", "gd") is empty
