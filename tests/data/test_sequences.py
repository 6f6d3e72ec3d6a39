"""Teacher forcing and the three encodings."""

import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.data import sequences
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import END_ID, START_ID, Vocabulary


def _encode(text, vocab, width=12):
  ids, constants = expression.encode(parser.parse(text, ["x"]), vocab)
  pad = width - len(ids)
  return jnp.array([ids + [0] * pad]), jnp.array([constants + [0.0] * pad], jnp.float32)


def test_targets_are_inputs_moved_by_one():
  ids, constants = _encode("0.017*x + 1781.5", Vocabulary(1), width=7)
  s = sequences.teacher_forcing(ids, constants)
  length = 5
  assert s.ids[0, 0] == START_ID and s.targets[0, length] == END_ID
  np.testing.assert_array_equal(s.ids[0, 1 : length + 1], s.targets[0, :length])
  np.testing.assert_allclose(s.constants[0, 1 : length + 1], s.target_constants[0, :length])
  np.testing.assert_array_equal(s.is_target[0], [True] * 6 + [False] * 2)


def test_inputs_and_targets_of_a_batch_by_hand():
  ids = jnp.array([[8, 5, 53], [53, 0, 0]])
  found = sequences.teacher_forcing(ids, jnp.array([[0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]))
  assert found.ids.tolist() == [[START_ID, 8, 5, 53], [START_ID, 53, 0, 0]]
  assert found.targets.tolist() == [[8, 5, 53, END_ID], [53, END_ID, 0, 0]]
  assert found.constants.tolist() == [[0, 0, 0.5, 0], [0, 0, 0, 0]]
  assert found.target_constants.tolist() == [[0, 0.5, 0, 0], [0, 0, 0, 0]]
  assert found.is_target.tolist() == [[True] * 4, [True, True, False, False]]


@pytest.mark.parametrize("encoding", ["base", "skeleton"])
def test_every_token_is_re_encoded_as_itself_and_constants_as_one(encoding):
  extended, vocab = Vocabulary(2), Vocabulary(2, encoding)
  ids, values = sequences.to_encoding(jnp.arange(extended.size)[None], jnp.ones((1, extended.size)), vocab)
  np.testing.assert_allclose(values[0], np.array(extended.constant_scale) * (encoding == "base"), rtol=1e-6)
  expected = ["C" if is_constant else token
              for token, is_constant in zip(extended.tokens, extended.is_constant, strict=True)]
  assert [vocab.tokens[i] for i in ids[0].tolist()] == expected


def test_each_sequence_has_its_own_end():
  long, short = (_encode(text, Vocabulary(1), width=7) for text in ("0.017*x + 1781.5", "x"))
  both = sequences.teacher_forcing(*(jnp.concatenate(parts) for parts in zip(long, short, strict=True)))
  for i, one in enumerate((long, short)):
    for found, expected in zip(both, sequences.teacher_forcing(*one), strict=True):
      np.testing.assert_array_equal(found[i], expected[0])


def test_a_sequence_without_padding_still_ends():
  ids, constants = _encode("x + 1", Vocabulary(1), width=3)
  s = sequences.teacher_forcing(ids, constants)
  assert s.targets[0, 3] == END_ID and bool(s.is_target.all())


@pytest.mark.parametrize("encoding", ["extended", "base", "skeleton"])
def test_re_encoding_equals_encoding_from_the_tree(encoding):
  text = "0.017*x**2 - 1781.5*sin(3*x)/x + 2"
  vocab = Vocabulary(1, encoding)
  got = sequences.to_encoding(*_encode(text, Vocabulary(1), width=20), vocab)
  expected = _encode(text, vocab, width=20)
  np.testing.assert_array_equal(got[0], expected[0])
  np.testing.assert_allclose(got[1], expected[1], rtol=1e-6)
