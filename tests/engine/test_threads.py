"""While a search runs linear algebra has one thread; afterwards as many as before, whoever else searches."""

import threading

import numpy as np
import pytest
import threadpoolctl

from symformer_jax import inference, testing
from symformer_jax.engine import threads
from symformer_jax.engine.config import SearchConfig
from symformer_jax.engine.threads import one_blas_thread


def num_threads() -> set[int]:
  found = {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}
  assert found
  return found


@pytest.fixture(autouse=True)
def three_threads():
  with threadpoolctl.threadpool_limits(limits=3, user_api="blas"):
    assert num_threads() == {3}
    yield


def test_a_search_has_one_thread_and_gives_the_others_back():
  x, seen = np.linspace(1, 4, 20), []
  model, config = testing.FixedProposer(["0.7*x0"]), SearchConfig(sources=("closed_forms",))
  inference.search(model, [(x, x**2)], config=config, callback=lambda standing: seen.append(num_threads()))
  assert seen and all(each == {1} for each in seen)
  assert num_threads() == {3}


def test_an_error_gives_them_back():
  with pytest.raises(KeyError), one_blas_thread():
    raise KeyError
  assert num_threads() == {3}


def test_after_searches_in_several_threads_nothing_is_limited():
  is_inside, may_end = threading.Event(), threading.Event()

  def search():
    with one_blas_thread():
      is_inside.set()
      may_end.wait(60)

  other = threading.Thread(target=search)
  with one_blas_thread():
    other.start()
    assert is_inside.wait(60)
    assert num_threads() == {1}
  may_end.set()
  other.join()
  assert num_threads() == {3}
  with one_blas_thread():
    assert num_threads() == {1}
  assert num_threads() == {3}


def test_of_searches_inside_one_another_each_lifts_what_the_outermost_has_found(monkeypatch):
  made = []

  class Limits:
    def __init__(self, limits, user_api):
      self.asked, self.num_restored = (limits, user_api), 0
      made.append(self)

    def restore_original_limits(self):
      self.num_restored += 1

  monkeypatch.setattr(threads.threadpoolctl, "threadpool_limits", Limits)
  one_thread = threads._OneThread()
  for _ in range(2):  # somebody may have set another number meanwhile
    with one_thread(), one_thread():
      pass
  assert [limits.num_restored for limits in made] == [2, 0, 2, 0]
  assert {limits.asked for limits in made} == {(1, "blas")}
