"""Parameters that data tell apart."""

import numpy as np
import pytest

from symformer_jax.selection import freedom
from symformer_jax.selection.freedom import told_apart


@pytest.fixture
def columns(rng):
  return rng.normal(size=(30, 4))


def test_what_others_make_up_is_left_out_and_what_is_fitted_stays(columns):
  a, b, c, d = columns.T
  both = np.column_stack([a + b, a, b, c])
  assert told_apart(both, np.array([0, 0, 1, 1]), 9).tolist() == [True, True, False, True]
  assert told_apart(both, np.array([1, 0, 0, 2]), 9).tolist() == [False, True, True, True]
  assert told_apart(both, np.array([2, 1, 1, 0]), 9).tolist() == [False, True, True, True]  # by rank
  assert told_apart(both, np.zeros(4, int), 1).all()  # fitted ones stay, whatever they are
  nearly = np.column_stack([a, a + 1e-4 * d, a + 1e-9 * d])
  assert told_apart(nearly, np.array([0, 1, 2]), 9).tolist() == [True, True, False]


def test_no_more_are_kept_than_there_is_room_for(columns):
  for most in range(1, 5):
    kept = told_apart(columns, np.array([0, 1, 1, 2]), most)
    assert kept.sum() == most and kept[0] and (most < 4) == (not kept[3])


@pytest.mark.parametrize("scale", [1e-250, 1e-5, 1e200])
def test_scales_of_columns_do_not_matter(columns, scale):
  mixed = np.column_stack([columns, columns[:, 0] + columns[:, 1]]) * [1, scale, 1, 1 / scale, scale]
  assert told_apart(mixed, np.array([0, 1, 0, 1, 2]), 9).tolist() == [True, True, True, True, False]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_columns_that_say_nothing_are_left_out(columns, bad):
  columns[:, 1] = np.where(np.arange(30) > 3, bad, 0.0)
  assert told_apart(columns, np.array([0, 1, 1, 2]), 9).tolist() == [True, False, True, True]


def test_rows_in_parts_tell_what_they_tell_together(columns, monkeypatch):
  mixed = np.column_stack([columns, columns @ [1, 2, 0, 1e-3]])
  ranks = np.array([0, 1, 1, 2, 1])
  together = told_apart(mixed, ranks, 9)
  monkeypatch.setattr(freedom, "CHUNK_ROWS", 7)
  assert told_apart(mixed, ranks, 9).tolist() == together.tolist() and together.sum() == 4


@pytest.mark.parametrize(("share", "is_kept"), [(1.5e-7, True), (0.7e-7, False)])
def test_a_column_is_made_up_of_which_others_leave_less_than_a_ten_millionth(share, is_kept):
  basis = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 2)))[0]
  columns = np.column_stack([basis[:, 0], np.sqrt(1 - share**2) * basis[:, 0] + share * basis[:, 1]])
  assert told_apart(columns, np.array([0, 1]), 9).tolist() == [True, is_kept]


@pytest.mark.parametrize(("place", "other"), [(0, 1), (1, 0), (60, 99)])
def test_columns_count_by_their_directions_however_many_rows_they_have(place, other):
  """Of a column of one row others leave nearly all, of another one of all rows, as the first, a third."""
  first = np.ones(100)
  alone, dense = np.zeros(100), np.ones(100)
  alone[place], dense[2:52] = 1.0, 0.5
  assert told_apart(np.column_stack([first, dense, alone]), np.array([0, 1, 1]), 2).tolist() == [True, False, True]
  # Of two of one row each the one of which the first, that is larger there, leaves less.
  first[place], first[other] = 2.0, 5.0
  beside = np.zeros(100)
  beside[other] = 1.0
  assert told_apart(np.column_stack([first, beside, alone]), np.array([0, 1, 1]), 2).tolist() == [True, False, True]


def test_no_rows_tell_nothing_apart():
  assert told_apart(np.zeros((0, 2)), np.array([0, 1]), 9).tolist() == [True, False]
