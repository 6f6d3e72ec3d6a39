"""Shipped models: which there are, how one is written, read and checked.

A model is a folder without pickles: it holds `card.json` (name, configuration, vocabulary,
sha256 of the weights, how it was trained) and `weights.npz` (one array per parameter: bfloat16 stored as 16-bit
integers, or matrices as 8-bit integers with a scale for each column beside them).
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np

from symformer_jax import configuration, npz
from symformer_jax.arguments import check_whole
from symformer_jax.errors import InputError, ModelError
from symformer_jax.files import check_regular, reason, replacing, shorten
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model.config import ModelConfig

FOLDER = Path(__file__).parent
CARD, WEIGHTS = "card.json", "weights.npz"
# Those shipped have 20 kB.
MAX_CARD_BYTES = 16 << 20
# Of a name, which results show.
MAX_NAME = 200
# Four thousand million parameters; their hash takes a quarter of a minute.
MAX_WEIGHTS_BYTES = 8 << 30
# bfloat16 as integers of 16 bits; matrices in 8 bits, and the suffix of the array of their scales.
_STORED, _STORED_SHORT, _SCALES = "<u2", "|i1", "/scales"
_LARGEST_SHORT = 127


@dataclasses.dataclass(frozen=True)
class LoadedModel:
  """A network ready for use.

  Attributes:
    name: as shown in results.
    config: its shape.
    make_params: makes `params`, once.
    card: everything the card says.
    folder: where it was read from; None for one made in memory.
  """

  name: str
  config: ModelConfig
  make_params: Callable[[], Any]
  card: dict[str, Any]
  folder: Path | None = None

  @functools.cached_property
  def params(self) -> Any:
    """float32 parameters on the device; those of a shipped model are read when they are first used, which takes a
    second that data met by cheaper sources need not wait for.
    """
    return self.make_params()

  @property
  def vocab(self) -> Vocabulary:
    return self.config.vocabulary


def model_names() -> list[str]:
  """Names of the models in this installation."""
  return sorted(path.parent.name for path in FOLDER.glob(f"*/{CARD}"))


def load_model(name: str | os.PathLike[str] = "auto", *, num_variables: int = 1) -> LoadedModel:
  """Loads a shipped model by name, or an exported one by folder.

  Args:
    name: a shipped model, a folder written by `launch.export`, or `auto`: the shipped one that knows so many variables
      and fewest more, or most where none does; of two the one of the shorter name. A model whose card says
      `by_name_only` (one still in training) is left out.
    num_variables: D, read by `auto`.
  Raises:
    InputError: for a name that is neither text nor a path, and a number of variables that is none.
    ModelError: unknown name (the message says which exist), damaged or foreign files.
  """
  if not isinstance(name, str | os.PathLike):
    raise InputError(f"name: expected that of a model, or a folder, got {shorten(repr(name))}")
  check_whole("num_variables", num_variables)
  name = os.fspath(name)
  if name == "auto":
    return load_model(pick_name(num_variables))
  if name in model_names():
    return _read(FOLDER / name)
  try:
    is_folder = Path(name).is_dir()
  except OSError as error:  # a name that is too long, a folder above it that may not be entered
    raise ModelError(f"cannot open the model {shorten(name)!r}: {reason(error)}") from None
  if is_folder:
    model = _read(Path(name))
    _ = model.params  # whatever is wrong with a stranger's is said at once
    return model
  known = ", ".join(["auto", *model_names()])
  raise ModelError(f"unknown model {shorten(name)!r}: expected {known} or a folder of an exported model")


def pick_name(num_variables: int) -> str:
  """What `auto` stands for (see `load_model`)."""
  cards = {name: json.loads((FOLDER / name / CARD).read_text(encoding="utf-8")) for name in model_names()}
  known = {name: card["config"]["vocabulary"]["num_variables"] for name, card in cards.items()
           if not card.get("by_name_only")}
  if not known:
    raise ModelError("this installation has no shipped model")
  enough = min(num_variables, max(known.values()))
  return min((count, name) for name, count in known.items() if count >= enough)[1]


def save_model(
  folder: Path | str, *, name: str, config: ModelConfig, params: Any, card: dict[str, Any], bits: int = 16
) -> None:
  """Writes a model folder; parameters are rounded to bfloat16, or with `bits` of 8 as in `_round`: half the size.

  Raises:
    ModelError: for parameters that are not finite, before anything is written.
  """
  arrays: dict[str, Any] = {}
  for path, leaf in _flatten(params).items():
    if not np.isfinite(leaf).all():
      raise ModelError(f"the model cannot be stored: parameter {path} is not finite")
    arrays |= _round(path, np.asarray(leaf), is_short=bits == 8)
  folder = Path(folder)
  folder.mkdir(parents=True, exist_ok=True)
  buffer = io.BytesIO()
  np.savez_compressed(buffer, **arrays)
  weights = buffer.getvalue()
  text = json.dumps({
    "name": name, "config": configuration.to_dict(config), "vocabulary_hash": config.vocabulary.hash,
    "weights_sha256": hashlib.sha256(weights).hexdigest(), **card}, indent=1)
  for file, data in ((WEIGHTS, weights), (CARD, text.encode() + b"\n")):
    with replacing(folder / file) as temporary:
      temporary.write_bytes(data)


def _round(path: str, values: np.ndarray, *, is_short: bool) -> dict[str, np.ndarray]:
  """What is stored of a parameter; in 8 bits only matrices, the largest value of each column being 127 times its
  scale.
  """
  if not is_short or values.ndim < 2:
    return {path: values.astype(ml_dtypes.bfloat16).view(np.uint16)}
  scales = np.abs(values).max(axis=0).astype(np.float32) / _LARGEST_SHORT
  return {path: np.round(values / np.where(scales > 0, scales, 1)).astype(np.int8), path + _SCALES: scales}


def _restore(path: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
  """A parameter as `_round` stored it, float32."""
  array = arrays[path]
  if path + _SCALES in arrays:
    with np.errstate(invalid="ignore", over="ignore"):  # scales of a stranger's: what is not finite is refused
      return array.astype(np.float32) * arrays[path + _SCALES]
  return array.view(ml_dtypes.bfloat16).astype(np.float32)


def _read(folder: Path) -> LoadedModel:
  card = _read_card(folder)
  try:
    config = configuration.build(ModelConfig, card["config"])
  except InputError as error:
    raise ModelError(f"{folder} holds a foreign model: {error}") from None
  if config.vocabulary.hash != card["vocabulary_hash"]:
    hashes = f"{card['vocabulary_hash']}, here {config.vocabulary.hash}"
    raise ModelError(f"{folder} was made with another vocabulary ({hashes})")

  def make_params() -> Any:
    return jax.device_put(_read_params(folder, card["weights_sha256"], config))

  return LoadedModel(card["name"], config, make_params, card, folder)


def _read_card(folder: Path) -> dict[str, Any]:
  """The card, with all that is read here, of the right kind."""
  path = folder / CARD
  try:
    check_regular(path)
    if path.stat().st_size > MAX_CARD_BYTES:
      raise ValueError(f"{CARD} has more than {MAX_CARD_BYTES >> 20} MB")
    card = json.loads(path.read_text(encoding="utf-8"))
  except (OSError, ValueError, RecursionError) as error:  # of JSON and of UTF-8 among them; nested too deep
    raise ModelError(f"{folder} is no model: expected {CARD} and {WEIGHTS} ({error})") from None
  if not isinstance(card, dict):
    raise ModelError(f"{folder} is no model: expected a JSON object in {CARD}, got {type(card).__name__}")
  for key, kind in (("name", str), ("config", dict), ("vocabulary_hash", str), ("weights_sha256", str)):
    if not isinstance(card.get(key), kind):
      got = type(card[key]).__name__ if key in card else "nothing"
      raise ModelError(f"{folder} holds a foreign model: {CARD}: {key}: expected {kind.__name__}, got {got}")
  if not is_name(card["name"]):
    raise ModelError(f"{folder} holds a foreign model: {CARD}: name: expected 1 to {MAX_NAME} signs in a line")
  return card


def is_name(text: str) -> bool:
  """Whether a model may be called so: one line of signs that can be printed, not of spaces alone."""
  return text.isprintable() and bool(text.strip()) and len(text) <= MAX_NAME


def _flatten(params: Any) -> dict[str, Any]:
  leaves = jax.tree_util.tree_flatten_with_path(params)[0]
  return {"/".join(str(k.key) for k in path): leaf for path, leaf in leaves}


def _read_params(folder: Path, sha256: str, config: ModelConfig) -> Any:
  """The parameter tree of `config` from the weights file: all of it, nothing else, finite."""
  # Imported late: it takes half a second, as what follows does.
  from symformer_jax.model import symformer

  try:
    check_regular(folder / WEIGHTS)
    with open(folder / WEIGHTS, "rb") as file:
      if os.fstat(file.fileno()).st_size > MAX_WEIGHTS_BYTES:
        raise ModelError(f"{folder} holds a foreign model: {WEIGHTS} has more than {MAX_WEIGHTS_BYTES >> 30} GB")
      if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
        raise ModelError(f"the weights in {folder} are damaged: their sha256 is not the one in {CARD}")
      arrays = npz.read(file, lambda headers: _check_headers(headers, config))
  except OSError as error:
    raise ModelError(f"{folder} is no model: expected {CARD} and {WEIGHTS} ({error})") from None
  except InputError as error:
    raise ModelError(f"{folder} holds a foreign model: {WEIGHTS}: {error}") from None
  wanted = symformer.abstract_params(config)
  values = {path: _restore(path, arrays) for path in _flatten(wanted)}
  for path, array in values.items():
    if not np.isfinite(array).all():
      raise ModelError(f"{folder} holds a foreign model: parameter {path} is not finite")
  return jax.tree.unflatten(jax.tree.structure(wanted), list(values.values()))


def _check_headers(headers: Mapping[str, npz.Header], config: ModelConfig) -> None:
  from symformer_jax.model import symformer

  # Before the tree of the parameters is built, which takes some half a second for each layer.
  if (num_layers := config.encoder.num_layers + config.decoder.num_layers) > len(headers):
    raise InputError(f"{len(headers)} arrays, too few for the {num_layers} layers of its configuration")
  leaves = _flatten(symformer.abstract_params(config))
  expected = {path: (leaf.shape, _STORED) for path, leaf in leaves.items()}
  for path, leaf in leaves.items():
    if path + _SCALES in headers:
      expected |= {path: (leaf.shape, _STORED_SHORT), path + _SCALES: (leaf.shape[1:], "<f4")}
  for path, form in expected.items():
    got = (headers[path].shape, headers[path].dtype.str) if path in headers else "missing"
    if got != form:
      raise InputError(f"parameter {path} is {got}, expected {form}")
  if unknown := sorted(set(headers) - set(expected)):
    raise InputError(f"{unknown[0]!r} is no parameter of its configuration")
