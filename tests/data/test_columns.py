"""Variables among columns: the function stays, the order stays, and what is not in the table is zero."""

import jax
import numpy as np
import pytest

from symformer_jax.data import columns, points
from symformer_jax.language import expression, interpreter, parser
from symformer_jax.language.vocabulary import Vocabulary

VOCAB = Vocabulary(9)
NAMES = tuple(f"x{i}" for i in range(9))
TEXTS = ["2.5*x0", "x0*x1 + 1", "x0/x1 - x2", "*".join(NAMES)]
COUNTS = [1, 2, 3, 9]


def make_batch(repeat=100):
  encoded = [expression.encode(parser.parse(text, NAMES), VOCAB) for text in TEXTS] * repeat
  length = max(len(ids) for ids, _ in encoded)
  ids = np.array([i + [0] * (length - len(i)) for i, _ in encoded], np.int32)
  mantissas = np.array([c + [0.0] * (length - len(c)) for _, c in encoded], np.float32)
  domains = np.zeros((len(ids), 9, 2), np.float32)
  for row, count in enumerate(COUNTS * repeat):
    domains[row, :count] = [[1 + i, 2 + i] for i in range(count)]
  return ids, mantissas, domains


def place(ids, domains, **changes):
  options = {"distractor_probability": 0.0, "max_distractors": 2, "spread_probability": 0.0, **changes}
  return [np.asarray(a) for a in columns.place(jax.random.key(0), ids, domains, vocab=VOCAB, **options)]


def is_used(ids):
  """Which variables stand in each equation [B, D]."""
  return np.stack([(ids == VOCAB.first_variable_id + i).any(axis=1) for i in range(9)], axis=1)


@pytest.mark.parametrize("options", [
  {}, {"distractor_probability": 1.0}, {"spread_probability": 1.0},
  {"distractor_probability": 0.5, "spread_probability": 0.5, "max_distractors": 8}], ids=str)
def test_the_function_of_its_own_columns_stays(options):
  ids, mantissas, domains = make_batch()
  new_ids, new_domains = place(ids, domains, **options)
  # The i-th column in use has the range of variable i, and the equation, read off there, is the one before.
  used = is_used(new_ids)
  np.testing.assert_array_equal(used.sum(axis=1), COUNTS * 100)
  x = np.random.default_rng(0).uniform(1, 2, (len(ids), 20, 9)).astype(np.float32)
  moved = np.zeros_like(x)
  for row, column in enumerate(used):
    where = np.flatnonzero(column)
    moved[row][:, where] = x[row][:, : len(where)]
    np.testing.assert_array_equal(new_domains[row, where], domains[row, : len(where)])
  values, new_values = (interpreter.constant_values(i, mantissas, VOCAB) for i in (ids, new_ids))
  before, after = (interpreter.evaluate_many(i, v, p, vocab=VOCAB) for i, v, p in (
    (ids, values, x), (new_ids, new_values, moved)))
  np.testing.assert_allclose(after, before, rtol=1e-6)


def test_without_others_and_spread_nothing_moves():
  ids, _, domains = make_batch()
  new_ids, new_domains = place(ids, domains)
  np.testing.assert_array_equal(new_ids, ids)
  np.testing.assert_array_equal(new_domains, domains)


def test_columns_that_do_not_matter_come_among_the_first_and_within_their_number():
  ids, _, domains = make_batch()
  new_ids, new_domains = place(ids, domains, distractor_probability=0.5, max_distractors=3)
  present = (new_domains[..., 0] != new_domains[..., 1])
  extra = present.sum(axis=1) - np.array(COUNTS * 100)
  assert not extra[3::4].any()  # nine variables leave no room
  assert set(extra[0::4]) == {0, 1, 2, 3} and np.mean(extra[0::4] > 0) == pytest.approx(0.5, abs=0.15)
  assert (np.diff(present.astype(int), axis=1) <= 0).all()  # the first columns, without gaps
  assert (present & ~is_used(new_ids)).sum() == extra.sum()
  assert not new_domains[~present].any()
  assert len({tuple(row) for row in is_used(new_ids)[0::4]}) > 1  # and not always behind
  assert np.abs(new_domains).max() <= 10


def test_spread_columns_may_be_anywhere():
  ids, _, domains = make_batch()
  new_ids, new_domains = place(ids, domains, spread_probability=0.5)
  first = is_used(new_ids)[0::4].argmax(axis=1)
  assert set(first) == set(range(9)) and np.mean(first == 0) == pytest.approx(0.55, abs=0.15)
  np.testing.assert_array_equal(new_domains[..., 0] != new_domains[..., 1], is_used(new_ids))


def test_points_of_columns_that_are_absent_are_zero():
  ids, mantissas, domains = make_batch(10)
  new_ids, new_domains = place(ids, domains, spread_probability=1.0)
  drawn, is_valid, _, _ = points.draw_points(
    jax.random.key(1), new_ids, mantissas, new_domains, vocab=VOCAB, config=points.PointsConfig(num_points=8))
  assert np.asarray(is_valid).all()
  np.testing.assert_array_equal((np.asarray(drawn)[..., :-1] != 0).any(axis=1), is_used(new_ids))
