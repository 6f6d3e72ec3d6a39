"""The token sets."""

import pytest

from symformer_jax.language.vocabulary import ENCODINGS, END_ID, PAD_ID, START_ID, Vocabulary


def test_the_papers_54_tokens():
  vocab = Vocabulary(1)
  assert vocab.size == 54
  assert sum(vocab.is_constant) == vocab.num_constant_tokens == 21
  assert [vocab.tokens[i] for i in (PAD_ID, START_ID, END_ID)] == ["pad", "start", "end"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("num_variables", [1, 2, 7])
def test_ids_invert_tokens(encoding, num_variables):
  vocab = Vocabulary(num_variables, encoding)
  assert [vocab.ids[token] for token in vocab.tokens] == list(range(vocab.size))
  assert len(vocab.arity) == len(vocab.is_constant) == len(vocab.constant_scale) == vocab.size
  assert vocab.size == 3 + 18 + (21 if encoding == "extended" else 1) + 11 + num_variables


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_more_variables_change_no_other_id(encoding):
  small, large = Vocabulary(1, encoding), Vocabulary(5, encoding)
  assert large.tokens[: small.size] == small.tokens


def test_landmarks():
  vocab = Vocabulary(2)
  assert vocab.tokens[vocab.first_constant_id] == "C-10"
  assert vocab.tokens[vocab.first_variable_id :] == ("x0", "x1")
  assert [vocab.tokens[vocab.zero_id + i] for i in (-5, 0, 5)] == ["-5", "0", "5"]


def test_arities_are_those_of_operators_and_without_one_there_is_no_place_in_a_formula():
  vocab = Vocabulary()
  assert vocab == Vocabulary(1)
  assert [vocab.arity[vocab.ids[token]] for token in ("pad", "start", "end", "+", "sin", "C1", "3", "x0")] == [
    -1, -1, -1, 2, 1, 0, 0, 0]


def test_scales_of_constant_tokens():
  vocab = Vocabulary(1)
  scales = [vocab.constant_scale[vocab.ids[token]] for token in ("C-10", "C-3", "C0", "C10")]
  assert scales == [1e-10, 1e-3, 1.0, 1e10]
  assert vocab.constant_scale[vocab.ids["sin"]] == 0
  assert Vocabulary(1, "base").constant_scale[Vocabulary(1, "base").ids["C"]] == 1


def test_hash_tells_token_sets_apart():
  hashes = {Vocabulary(d, e).hash for d in (1, 2) for e in ENCODINGS}
  assert len(hashes) == 6 and {len(text) for text in hashes} == {16}  # as cards and manifests have them
  assert Vocabulary(2).hash == Vocabulary(2, "extended").hash


def test_messages():
  with pytest.raises(ValueError, match="at least one variable, got 0"):
    Vocabulary(0)
  with pytest.raises(ValueError, match="unknown encoding 'fancy': expected one of extended, base, skeleton"):
    Vocabulary(1, "fancy")
