"""Files that are read and written: their encoding is named whatever the locale is, their size bounded; copies."""

import json
import pickle

import pytest

from launch import card, evaluate, export
from symformer_jax import files, saved, testing
from symformer_jax.errors import InputError, ModelError
from symformer_jax.pretrained import registry

pytestmark = pytest.mark.usefixtures("other_locale")


def test_texts_are_written_as_utf8_and_what_is_no_letter_escaped(tmp_path):
  files.write_text(tmp_path / "t.txt", "\u00e9\udc80\n")
  assert (tmp_path / "t.txt").read_bytes() == b"\xc3\xa9\\udc80\n"


def test_saved_fits_are_read_as_utf8(tmp_path):
  path = tmp_path / "s.json"
  path.write_bytes('{"format": "kind-1", "name": "\u00e9"}'.encode())
  assert saved.read(path, "kind", 1, lambda record, version: (record["name"], version), what="fit") == ("\u00e9", 1)


CARD = {"name": "\u00e9", "config": {"vocabulary": {"num_variables": 1}}, "vocabulary_hash": "h", "weights_sha256": "s"}


def test_cards_are_read_as_utf8_up_to_a_size(tmp_path, monkeypatch):
  (tmp_path / "m").mkdir()
  data = json.dumps(CARD, ensure_ascii=False).encode()
  (tmp_path / "m" / registry.CARD).write_bytes(data)
  assert registry._read_card(tmp_path / "m") == CARD
  monkeypatch.setattr(registry, "FOLDER", tmp_path)
  assert registry.pick_name(1) == "m"
  monkeypatch.setattr(registry, "MAX_CARD_BYTES", len(data))
  assert registry._read_card(tmp_path / "m") == CARD
  monkeypatch.setattr(registry, "MAX_CARD_BYTES", len(data) - 1)
  with pytest.raises(ModelError, match="card.json has more than 0 MB"):
    registry._read_card(tmp_path / "m")


def test_weights_are_hashed_up_to_a_size(tmp_path, monkeypatch):
  (tmp_path / registry.WEIGHTS).write_bytes(b"12345678")
  monkeypatch.setattr(registry, "MAX_WEIGHTS_BYTES", 8)
  with pytest.raises(ModelError, match="their sha256 is not the one in card.json"):
    registry._read_params(tmp_path, "s", None)
  monkeypatch.setattr(registry, "MAX_WEIGHTS_BYTES", 7)
  with pytest.raises(ModelError, match="weights.npz has more than 0 GB"):
    registry._read_params(tmp_path, "s", None)


def test_sizes_of_models_that_are_read():
  assert registry.MAX_CARD_BYTES == 16 * 2**20 and registry.MAX_WEIGHTS_BYTES == 8 * 2**30


def test_what_commands_of_launch_read_is_utf8(tmp_path):
  (tmp_path / "a").mkdir()
  figures = dict.fromkeys(card._FIGURES, "\u00e9")
  summary = {**dict.fromkeys(card._RUN, "\u00e9"), "variants": {"v": figures}}
  (tmp_path / "a" / "summary.json").write_bytes(json.dumps(summary, ensure_ascii=False).encode())
  assert card._read_results(tmp_path)["a"]["variants"]["v"] == figures
  (tmp_path / "a" / "settings.json").write_bytes('{"name": "\u00e9"}'.encode())
  assert evaluate._open_folder(str(tmp_path / "a"), {"name": "\u00e9"}) == tmp_path / "a"
  with pytest.raises(InputError, match="holds results of --name=\u00e9, not n"):
    evaluate._open_folder(str(tmp_path / "a"), {"name": "n"})
  (tmp_path / "metrics.jsonl").write_bytes('{"step": 1, "kind": "\u00e9"}\n'.encode())
  assert export._read_curve(tmp_path / "metrics.jsonl") == [{"step": 1, "kind": "\u00e9"}]


def test_copies_of_a_stand_in_for_a_model_are_as_it_is():
  given = testing.FixedProposer(["2*x1"], num_variables=2, max_length=9, noise=0.5)
  found = pickle.loads(pickle.dumps(given))
  assert (found.vocab.num_variables, found.max_length, found.noise, found.programs) == (2, 9, 0.5, given.programs)
