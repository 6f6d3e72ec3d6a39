"""Model folders: what is written is read, and what is damaged or foreign is refused in one line."""

import hashlib
import io
import json
import os
import re
import time
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.errors import InputError, ModelError
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
  model = registry.load_model(folder)
  params = symformer.init_params(CONFIG, jax.random.key(0))
  assert model.config == CONFIG and model.name == "m" and model.card["note"] == "test"
  jax.tree.map(
    lambda a, b: np.testing.assert_array_equal(a, b.astype(jnp.bfloat16).astype(jnp.float32)), model.params, params)


def test_matrices_in_8_bits_are_right_to_half_a_step_of_their_columns(tmp_path):
  params = symformer.init_params(CONFIG, jax.random.key(0))
  registry.save_model(tmp_path, name="m", config=CONFIG, params=params, card={}, bits=8)
  num_matrices = 0
  for kept, given in zip(jax.tree.leaves(registry.load_model(tmp_path).params), jax.tree.leaves(params), strict=True):
    given = np.asarray(given)
    if given.ndim < 2:
      np.testing.assert_array_equal(kept, given.astype(jnp.bfloat16).astype(np.float32))
    else:
      num_matrices += 1
      half = np.abs(given).max(axis=0) / 254
      assert (np.abs(kept - given) <= half * (1 + 1e-5)).all() and len(np.unique(given)) > len(np.unique(kept)) / 2
  assert num_matrices > 20


def test_a_column_of_zeros_stays_one_in_8_bits(tmp_path):
  params = jax.tree.map(jnp.zeros_like, symformer.init_params(CONFIG, jax.random.key(0)))
  registry.save_model(tmp_path, name="m", config=CONFIG, params=params, card={}, bits=8)
  assert not any(np.any(leaf) for leaf in jax.tree.leaves(registry.load_model(tmp_path).params))


@pytest.mark.parametrize("bits", [8, 16])
def test_weights_that_are_not_finite_are_not_stored(bits, tmp_path):
  params = jax.tree.map(lambda leaf: leaf.at[0].set(jnp.nan), symformer.init_params(CONFIG, jax.random.key(0)))
  with pytest.raises(ModelError, match="parameter .* is not finite"):
    registry.save_model(tmp_path / "m", name="m", config=CONFIG, params=params, card={}, bits=bits)
  assert not (tmp_path / "m").exists()


def test_foreign_weights_in_8_bits_are_refused(tmp_path):
  params = symformer.init_params(CONFIG, jax.random.key(0))
  registry.save_model(tmp_path, name="m", config=CONFIG, params=params, card={}, bits=8)
  with np.load(tmp_path / "weights.npz", allow_pickle=False) as file:
    arrays = dict(file)
  scales = next(name for name in arrays if name.endswith("/scales"))
  matrix = scales.removesuffix("/scales")
  for message, changed in (
    ("'|i1'), expected", {k: v for k, v in arrays.items() if k != scales}),
    ("'<f8'), expected", arrays | {scales: arrays[scales].astype(np.float64)}),
    ("'<u2'), expected", arrays | {matrix: arrays[matrix].astype(np.uint16)}),
    ("expected", arrays | {scales: arrays[scales][:-1]}),
    (f"parameter {matrix} is not finite", arrays | {scales: np.full_like(arrays[scales], np.inf)}),
    (f"parameter {matrix} is not finite", arrays | {scales: np.full_like(arrays[scales], 3e38)}),
  ):
    write_weights(tmp_path, archive(changed))
    with pytest.raises(ModelError, match=re.escape(message)):
      registry.load_model(tmp_path)


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
  with pytest.raises(ModelError, match="cannot open the model 'm{100}[.]{3}m{100}': File name too long"):
    registry.load_model("m" * 5000)


@pytest.mark.parametrize("name", [None, 3, b"univariate", ["univariate"]])
def test_what_is_no_name_is_refused(name):
  with pytest.raises(InputError, match=re.escape(f"name: expected that of a model, or a folder, got {name!r}")):
    registry.load_model(name)


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", None])
def test_what_is_no_number_of_variables_is_refused(count):
  message = re.escape(f"num_variables: expected a whole number of at least 1, got {count!r}")
  with pytest.raises(InputError, match=message):
    registry.load_model(num_variables=count)


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


def write_card(folder, **changes):
  card = json.loads((folder / "card.json").read_text())
  (folder / "card.json").write_text(json.dumps({k: v for k, v in (card | changes).items() if v is not None}))


@pytest.mark.parametrize(("text", "message"), [
  (b"[]", "expected a JSON object in card.json, got list"),
  (b"3", "expected a JSON object in card.json, got int"),
  (b"null", "expected a JSON object in card.json, got NoneType"),
  (b"\xff\xfe{", "is no model: expected card.json"),
  (b"", "is no model: expected card.json"),
  (b"[" * 100_000, "is no model: expected card.json"),
  (b" " * (registry.MAX_CARD_BYTES + 1), "more than 16 MB"),
], ids=["list", "number", "null", "bytes", "empty", "deep", "large"])
def test_a_card_that_is_none_is_refused(folder, text, message):
  (folder / "card.json").write_bytes(text)
  with pytest.raises(ModelError, match=message):
    registry.load_model(str(folder))


@pytest.mark.parametrize(("changes", "message"), [
  ({"name": None}, "card.json: name: expected str, got nothing"),
  ({"name": 3}, "card.json: name: expected str, got int"),
  ({"name": "a\n\x1b[31mb"}, "card.json: name: expected 1 to 200 signs in a line"),
  ({"name": " "}, "card.json: name: expected 1 to 200 signs in a line"),
  ({"name": "a" * 201}, "card.json: name: expected 1 to 200 signs in a line"),
  ({"vocabulary_hash": None}, "card.json: vocabulary_hash: expected str, got nothing"),
  ({"weights_sha256": []}, "card.json: weights_sha256: expected str, got list"),
  ({"config": "small"}, "card.json: config: expected dict, got str"),
  ({"config": {"encoder": {"width": "a"}}}, "config.encoder.width: expected a value of type int, got 'a'"),
  ({"config": {"encoder": {"width": True}}}, "config.encoder.width: expected a value of type int, got True"),
  ({"config": {"encoder": {"width": -1}}}, "encoder.width must lie between 1 and 65536, got -1"),
  ({"config": {"decoder": {"num_layers": 100_000}}}, "decoder.num_layers must lie between 1 and 256, got 100000"),
  ({"config": {"decoder": {"num_layers": 256}}}, "too few for the 260 layers of its configuration"),
  ({"config": {"decoder": 3}}, "config.decoder: expected its own keys and values, got 3"),
  ({"config": {"dropout": "none"}}, "config.dropout: expected a value of type float, got 'none'"),
  ({"config": {"dropout": 1.0}}, "dropout must be at least 0 and below 1, got 1.0"),
  ({"config": {"vocabulary": {"num_variables": 10**12}}}, "at most 65536 variables"),
])
def test_a_damaged_card_is_refused(folder, changes, message):
  write_card(folder, **changes)
  with pytest.raises(ModelError, match=re.escape(message)):
    registry.load_model(str(folder))


def write_weights(folder, data):
  """Puts weights in the folder that its card vouches for: only what they hold can be wrong."""
  (folder / "weights.npz").write_bytes(data)
  write_card(folder, weights_sha256=hashlib.sha256(data).hexdigest())


def archive(arrays):
  buffer = io.BytesIO()
  np.savez_compressed(buffer, **arrays)
  return buffer.getvalue()


@pytest.fixture
def arrays(folder):
  with np.load(folder / "weights.npz", allow_pickle=False) as file:
    return dict(file)


def saved(array):
  buffer = io.BytesIO()
  np.save(buffer, array)
  return buffer.getvalue()


class Bomb:
  """A pickle that would be seen: unpacking it makes a file."""

  def __init__(self, path):
    self.path = str(path)

  def __reduce__(self):
    return open, (self.path, "w")


def test_damaged_weights_are_refused(folder, arrays, tmp_path):
  first, *_ = arrays
  pickled = np.empty(1, object)
  pickled[0] = Bomb(tmp_path / "unpickled")
  infinite = arrays[first].copy()
  infinite.flat[0] = np.array(np.nan, np.float32).astype(jnp.bfloat16).view(np.uint16)
  cases = [
    ("cannot be read as npz", b""), ("cannot be read as npz", saved(arrays[first])),
    ("is missing", archive({k: v for k, v in arrays.items() if k != first})),
    ("is ((", archive(arrays | {first: arrays[first].astype(np.float32)})),
    ("1), '<u2'), expected", archive(arrays | {first: arrays[first][..., None]})),
    ("'extra' is no parameter of its configuration", archive(arrays | {"extra": np.zeros(1 << 28, np.uint8)})),
    ("Python objects", archive(arrays | {first: pickled})),
    (f"parameter {first} is not finite", archive(arrays | {first: infinite})),
  ]
  for message, data in cases:
    write_weights(folder, data)
    with pytest.raises(ModelError, match="holds a foreign model: ") as caught:
      registry.load_model(str(folder))
    assert message in str(caught.value) and "\n" not in str(caught.value)
  assert not (tmp_path / "unpickled").exists()


def test_weights_of_any_size_are_refused_before_they_are_hashed(folder):
  with open(folder / "weights.npz", "r+b") as file:
    file.truncate(50 * 10**9)  # a sparse file: no disk holds it
  begin = time.monotonic()
  with pytest.raises(ModelError, match="weights.npz has more than 8 GB"):
    registry.load_model(str(folder))
  assert time.monotonic() - begin < 10


def test_a_size_in_a_header_is_believed_by_nobody(folder, arrays):
  first, *_ = arrays
  lying = io.BytesIO()
  np.lib.format.write_array_header_1_0(lying, {"descr": "<u2", "fortran_order": False, "shape": (10**12,)})
  buffer = io.BytesIO(archive({k: v for k, v in arrays.items() if k != first}))
  with zipfile.ZipFile(buffer, "a") as file:
    file.writestr(f"{first}.npy", lying.getvalue())
  write_weights(folder, buffer.getvalue())
  with pytest.raises(ModelError, match="does not hold what its header says"):
    registry.load_model(str(folder))


def test_other_vocabulary_is_refused(folder):
  card = json.loads((folder / "card.json").read_text())
  card["vocabulary_hash"] = "0" * 16
  (folder / "card.json").write_text(json.dumps(card))
  with pytest.raises(ModelError, match="another vocabulary"):
    registry.load_model(str(folder))


@pytest.mark.parametrize("name", ["card.json", "weights.npz"])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(folder, name):
  (folder / name).unlink()
  os.mkfifo(folder / name)
  with pytest.raises(ModelError, match=rf"is no model: expected .* is no regular file: '.*{name}'"):
    registry.load_model(str(folder))


def test_a_folder_without_a_model_is_refused(tmp_path):
  with pytest.raises(ModelError, match="is no model: expected card.json and weights.npz"):
    registry.load_model(str(tmp_path))


def test_weights_of_a_shipped_model_are_read_when_they_are_first_used(monkeypatch):
  asked = []
  monkeypatch.setattr(registry, "_read_params", lambda folder, sha256, config: asked.append(folder.name) or {})
  model = registry.load_model("univariate")
  assert not asked and model.vocab.num_variables == 1
  assert model.params is model.params and asked == ["univariate"]
