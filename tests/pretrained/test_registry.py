"""Model folders: what is written is read, and what is damaged or foreign is refused in one line."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.errors import ModelError
from symformer_jax.model import symformer
from symformer_jax.model.config import DecoderConfig, EncoderConfig, ModelConfig
from symformer_jax.pretrained import registry

CONFIG = ModelConfig(
  encoder=EncoderConfig(width=8, num_heads=2, head_dim=4, ff_dim=16, num_layers=1, num_inducing=3, num_seeds=4),
  decoder=DecoderConfig(width=12, num_heads=2, head_dim=6, ff_dim=16, num_layers=1, max_length=14))


@pytest.fixture
def folder(tmp_path):
  params = symformer.init_params(CONFIG, jax.random.key(0))
  registry.save_model(tmp_path / "m", name="m", config=CONFIG, params=params, card={"note": "test"})
  return tmp_path / "m"


def test_round_trip_rounds_to_bfloat16(folder):
  model = registry.load_model(str(folder))
  params = symformer.init_params(CONFIG, jax.random.key(0))
  assert model.config == CONFIG and model.name == "m" and model.card["note"] == "test"
  jax.tree.map(
    lambda a, b: np.testing.assert_array_equal(a, b.astype(jnp.bfloat16).astype(jnp.float32)), model.params, params)


def test_shipped_models_load_and_auto_picks_by_variables():
  for name in registry.model_names():
    assert registry.load_model(name).name == name
  assert registry.load_model("auto").vocab.num_variables == 1
  assert registry.load_model("auto", num_variables=2).vocab.num_variables == 2
  assert registry.load_model("auto", num_variables=99).name == "bivariate"


def test_auto_leaves_out_a_model_that_is_for_its_name_only(tmp_path, monkeypatch):
  params = symformer.init_params(CONFIG, jax.random.key(0))
  for name, card in (("plain", {}), ("ask", {"by_name_only": True})):
    registry.save_model(tmp_path / name, name=name, config=CONFIG, params=params, card=card)
  monkeypatch.setattr(registry, "FOLDER", tmp_path)
  assert registry.pick_name(1) == registry.pick_name(7) == "plain"  # "ask" would come first
  assert registry.load_model("ask").name == "ask"


def test_unknown_name_lists_what_exists():
  with pytest.raises(ModelError, match="unknown model 'univariat': expected auto, .*univariate.* or a folder"):
    registry.load_model("univariat")


def test_truncated_weights_are_refused(folder):
  weights = folder / "weights.npz"
  weights.write_bytes(weights.read_bytes()[:-100])
  with pytest.raises(ModelError, match="weights in .* are damaged"):
    registry.load_model(str(folder))


@pytest.mark.parametrize("change", [
  lambda card: card["config"]["decoder"].update(width=16),
  lambda card: card["config"].update(norm="sideways"),
  lambda card: card["config"].update(colour="red"),
])
def test_foreign_configuration_is_refused(folder, change):
  card = json.loads((folder / "card.json").read_text())
  change(card)
  (folder / "card.json").write_text(json.dumps(card))
  with pytest.raises(ModelError, match="holds a foreign model"):
    registry.load_model(str(folder))


def test_other_vocabulary_is_refused(folder):
  card = json.loads((folder / "card.json").read_text())
  card["vocabulary_hash"] = "0" * 16
  (folder / "card.json").write_text(json.dumps(card))
  with pytest.raises(ModelError, match="another vocabulary"):
    registry.load_model(str(folder))


def test_a_folder_without_a_model_is_refused(tmp_path):
  with pytest.raises(ModelError, match="is no model: expected card.json and weights.npz"):
    registry.load_model(str(tmp_path))
