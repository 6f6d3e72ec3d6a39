"""The model of one to nine variables that ships in training: for its name only, and used on tables of any width."""

import jax
import numpy as np
import pytest

from symformer_jax import load_model, search
from symformer_jax.decoding import sampling
from symformer_jax.engine.rows import Rows
from symformer_jax.pretrained import registry
from symformer_jax.sources.network import samples


@pytest.fixture(scope="module")
def nine():
  return load_model("nine")


def test_it_is_no_default(nine):
  assert nine.vocab.num_variables == 9 and nine.config.encoder.features == "columns"
  assert nine.card["by_name_only"] is True and "in training" in nine.card["weaknesses"][0]
  assert all(registry.pick_name(count) != "nine" for count in range(1, 12))


def test_padded_columns_are_no_columns_to_the_encoder(nine, rng):
  x, y = rng.uniform(1, 5, (64, 3)), rng.normal(size=64)
  points = np.column_stack([samples._widened(x, nine), y])[None]
  is_valid = np.ones((1, 64), bool)
  first = np.asarray(sampling.encode(nine, points, is_valid))
  # What stands in an absent column cannot matter: there is nothing but its zeros; a value there makes it a column.
  changed = points.copy()
  changed[0, 5, 7] = 1e-3
  assert np.abs(np.asarray(sampling.encode(nine, changed, is_valid)) - first).max() > 1e-3
  # A row of weight 0 is padding, whatever it holds.
  padded = np.concatenate([points, np.full((1, 4, 10), 3.0)], axis=1)
  flags = np.concatenate([is_valid, np.zeros((1, 4), bool)], axis=1)
  count = np.asarray(sampling.encode(nine, padded, flags))
  changed = padded.copy()
  changed[0, 64:] = -7.0
  np.testing.assert_array_equal(np.asarray(sampling.encode(nine, changed, flags)), count)


@pytest.mark.parametrize(("law", "names"), [
  (lambda x: 2.5 * x[:, 0] * x[:, 1] ** 2, ("a", "b")),
  pytest.param(lambda x: 0.3 * x[:, 0] * x[:, 1] / x[:, 2], ("a", "b", "c"), marks=pytest.mark.slow),
  (lambda x: x[:, 0] * x[:, 1] * x[:, 2] * x[:, 3], ("a", "b", "c", "d")),
])
def test_alone_it_finds_short_laws_in_tables_of_any_width(nine, law, names):
  x = np.random.default_rng(3).uniform(1, 5, (80, len(names)))
  [result] = search(nine, [(x, law(x))], names=[names], n_samples=256, recombine=False, key=jax.random.key(0))
  assert result.best.r2 > 1 - 1e-9
  assert result.counts.sampled == result.counts.valid  # no sample names a column that the table does not have


def test_rows_of_a_table_with_all_columns_are_not_padded(nine, rng):
  rows = Rows(rng.normal(size=(5, 9)), rng.normal(size=5), np.ones(5))
  np.testing.assert_array_equal(samples._widened(rows.x, nine), rows.x.astype(np.float32))
