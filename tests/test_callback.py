"""The callback of a search: what it is told, and what its answer does."""

import dataclasses
import functools

import numpy as np
import pytest

from symformer_jax import SymFormerRegressor, inference, testing
from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError

# Two cheap turns: what they find does not matter here.
CONFIG = dataclasses.replace(DEFAULT, sources=("closed_forms", "guesses"), closed_forms=dataclasses.replace(
  DEFAULT.closed_forms, has_waves=False))
search = functools.partial(inference.search, config=CONFIG)


@pytest.fixture(scope="module")
def model():
  return testing.FixedProposer(["0.7*x0"])


def _data(rng):
  x = rng.uniform(1, 4, 30)
  return x, x**1.7 + 0.1 * rng.normal(size=30)


def test_it_is_told_where_each_data_set_stands(model, rng):
  seen = []
  data = [_data(rng), _data(rng)]
  results = search(model, data, names=[["v"], ["v"]], guesses=["v**1.5"], callback=seen.append)
  for index, result in enumerate(results):
    told = [standing for standing in seen if standing.index == index]
    assert [(s.source, s.seconds, s.best, s.r2) for s in told] == [
      (turn.source, turn.seconds, turn.best, turn.r2) for turn in result.rounds]
    for standing in told:
      sizes, r2s = [step.complexity for step in standing.front], [step.r2 for step in standing.front]
      assert sizes == sorted(set(sizes)) and r2s == sorted(set(r2s)) and len(sizes) >= 2
      assert (standing.front[-1].expression, standing.front[-1].r2) == (standing.best, standing.r2)
  assert [standing.source for standing in seen] == ["closed_forms", "guesses"] * 2 and "v**1." in seen[-1].best


def test_true_ends_the_search_of_that_data_set_with_the_best_so_far(model, rng):
  data = [_data(rng), _data(rng)]
  first, second = search(model, data, guesses=["x0**1.5"], callback=lambda standing: standing.index == 0)
  assert (first.ended_by, len(first.rounds)) == ("stopped", 1) and first.best.r2 > 0.9
  assert (second.ended_by, len(second.rounds)) == ("budget", 2) and second.best.r2 > 0.99


def test_what_it_raises_comes_out_as_it_is(model, rng):
  def fail(standing):
    raise LookupError("mine")

  with pytest.raises(LookupError, match="mine"):
    search(model, [_data(rng)], guesses=["x0**1.5"], callback=fail)
  with pytest.raises(LookupError, match="mine"):
    SymFormerRegressor(model, config=CONFIG, guesses=["x0**1.5"], callback=fail).fit(*_table(rng))


def test_what_it_answers_has_a_truth_value(model, rng):
  given = {"config": CONFIG, "guesses": ["x0**1.5"]}
  for ask in (lambda answer: search(model, [_data(rng)], callback=answer, **given),
              lambda answer: SymFormerRegressor(model, callback=answer, **given).fit(*_table(rng))):
    with pytest.raises(InputError, match="^callback: expected True, False or nothing as its answer, got array"):
      ask(lambda standing: np.array([1, 2]))


def test_what_cannot_be_called_is_refused(model, rng):
  with pytest.raises(InputError, match="^callback: expected a function of one argument, got 3$"):
    search(model, [_data(rng)], callback=3)
  with pytest.raises(InputError, match="^callback: expected a function"):
    SymFormerRegressor(model, callback="print").fit(*_table(rng))


def _table(rng):
  x, y = _data(rng)
  return x[:, None], y


def test_the_estimator_tells_which_target_and_does_not_save_it(model, rng, tmp_path):
  seen = []

  def watch(standing):
    seen.append((standing.index, standing.source))
    return True

  X, y = _table(rng)
  reg = SymFormerRegressor(model, config=CONFIG, guesses=["x0**1.5"], callback=watch, verbose=False)
  reg.fit(X, np.stack([y, 2 * y], axis=1))
  assert seen == [(0, "closed_forms"), (1, "closed_forms")]
  assert [each.result_.ended_by for each in reg.estimators_] == ["stopped"] * 2
  assert all(each.callback is watch for each in reg.estimators_)
  reg.estimators_[0].save(tmp_path / "fit.json")
  assert SymFormerRegressor.load(tmp_path / "fit.json").callback is None
