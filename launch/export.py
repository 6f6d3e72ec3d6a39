"""Turns a checkpoint of a run, the newest or the best by validation, into a shippable model.

python -m launch.export --workdir=DIR --name=NAME --out=DIR [--which=best]

Beside the weights go two Bloom filters of the functions and skeletons that the model was trained on, and those of the
model it started from, so that an evaluation can tell what of its problems the model has met (`data_gen.seen`); none for
models of more than four variables.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "launch.flags.export", extra="train")

from collections.abc import Iterator, Sequence
import contextlib
import hashlib
import json
import logging
from pathlib import Path
import sys
import tempfile
from typing import Any

from data_gen import seen, writer
from data_gen.candidates import EXCLUDED
from launch.flags import export as asked
from symformer_jax import configuration
from symformer_jax.commands import runner
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError, ModelError
from symformer_jax.files import check_regular, check_writable, claimed, make_folder, reason
from symformer_jax.pretrained import registry
from symformer_jax.training import checkpoint
from symformer_jax.training.config import TrainConfig

# A function is looked up in every order of its columns: 24 of four, 362 880 of nine.
_MOST_VARIABLES = 4
# What the card keeps of a line of validation.
_CURVE = ("step", "cross_entropy", "constant_mse", "token_accuracy")


def main(argv: list[str]) -> int:
  del argv
  logging.getLogger("absl").addFilter(_is_not_orbax)
  runner.refuse_empty(asked.WORKDIR, asked.NAME, asked.OUT, asked.SEEN)
  workdir, name, place = Path(runner.required(asked.WORKDIR)), runner.required(asked.NAME), runner.required(asked.OUT)
  if not registry.is_name(name):  # a model that nobody could load
    raise InputError(f"--name: expected 1 to {registry.MAX_NAME} signs in a line")
  for directory in asked.SEEN.value or ():  # of those of the run, which may be elsewhere by now, a note is enough
    writer.find_folders(directory)
  step = _choose_step(workdir)
  state, meta = checkpoint.read(workdir, step)
  config = configuration.build(TrainConfig, meta["config"])
  described = configuration.to_dict(config)
  # Names of folders are enough: where they lay is nobody else's business.
  described["data"]["dirs"] = [Path(folder).name for folder in config.data.dirs]
  described["init_from"] = Path(config.init_from).name
  parent = registry.load_model(config.init_from) if config.init_from else None
  ancestor = _describe_ancestor(parent)
  examples = step * config.data.batch_size
  lines = [line for line in _read_curve(workdir / "metrics.jsonl") if line["step"] <= step]
  validation = [line for line in lines if line["kind"] == "validation"]
  out = make_folder(place, flag="--out")
  check_writable(out / registry.CARD, flag="--out")
  with claimed(out, flag="--out"), _moved_together(out) as folder:
    registry.save_model(
      folder, name=name, config=config.model, params=state.params, bits=int(asked.BITS.value), card={
        "training": {
          "steps": step, "examples": examples, "config": described, "started_from": ancestor,
          "examples_in_all": examples + (ancestor["examples_in_all"] if ancestor else 0),
          "hours": _hours(lines, config.data.batch_size),
          "data": _describe_data(asked.SEEN.value or config.data.dirs),
          "validation": validation[-1] if validation else None,
          "curve": [{name: line[name] for name in _CURVE if name in line} for line in validation]},
        "seen": _write_seen(
          folder, asked.SEEN.value or config.data.dirs, parent, config.model.vocabulary.num_variables),
        **({"by_name_only": True} if asked.BY_NAME_ONLY.value else {})})
  print(f"{asked.OUT.value}: {name} after {step} steps")
  return runner.DONE


@contextlib.contextmanager
def _moved_together(out: Path) -> Iterator[Path]:
  """A folder within `out` whose files are moved there at the end, the card last; after an error, such as that of a full
  disk, what `out` held is as it was.

  Raises:
    InputError: when they cannot be written.
  """
  try:
    with tempfile.TemporaryDirectory(prefix=".export-", dir=out) as folder:
      yield Path(folder)
      made = sorted(Path(folder).iterdir(), key=lambda path: path.name == registry.CARD)
      for stale in seen.stored_below(out):
        stale.unlink()
      for path in made:
        path.replace(out / path.name)
  except OSError as error:
    raise InputError(f"--out: cannot write to {str(out)!r}: {reason(error)}") from None


def _is_not_orbax(record: logging.LogRecord) -> bool:
  """Orbax warns of what is not there before it fails, which is told in a line."""
  return "orbax" not in Path(record.pathname).parts


def _read_curve(path: Path) -> list[dict[str, Any]]:
  """The lines of a run's metrics; one cut short by a kill is left out, as where the run is resumed.

  Raises:
    ModelError: when the file cannot be read.
  """
  try:
    check_regular(path)
    texts = path.read_text(encoding="utf-8").splitlines()
  except (OSError, UnicodeDecodeError) as error:
    raise ModelError(f"cannot read {path}: {reason(error)}") from None
  found = []
  for text in texts:
    with contextlib.suppress(ValueError, RecursionError):
      line = json.loads(text)
      if isinstance(line, dict) and isinstance(line.get("step"), int) and "kind" in line:
        found.append(line)
  return found


def _hours(lines: Sequence[dict[str, Any]], batch_size: int) -> float:
  """Time of the steps on the clock, without compiling and validating."""
  train = [line for line in lines if line["kind"] == "train" and _is_rate(line.get("examples_per_s"))]
  steps = [0, *(line["step"] for line in train)]
  seconds = sum((after - before) * batch_size / line["examples_per_s"]
                for before, after, line in zip(steps, steps[1:], train, strict=False))
  return round(seconds / 3600, 2)


def _is_rate(value: Any) -> bool:
  return isinstance(value, int | float) and value > 0  # a line may be of somebody else's hand


def _describe_data(directories: Sequence[str]) -> list[dict[str, Any]] | None:
  """What the generated folders are, by their manifests; None when they are not here."""
  try:
    return [_describe_folder(folder) for root in directories for folder in writer.find_folders(root)]
  except DataError:  # `_write_seen` says so
    return None


def _describe_folder(folder: Path) -> dict[str, Any]:
  """Among it how many problems were to be kept out, and how often one was met and dropped."""
  manifest, _ = writer.read_checked(folder)
  identity, text = manifest["identity"], (folder / writer.MANIFEST).read_bytes()
  equations = {split: sum(shard["equations"] for shard in manifest["shards"]
                          if shard["split"] == split and shard["finished"]) for split in records.SPLITS}
  dropped = sum(count for rule, count in manifest["counts"].items() if rule.startswith(EXCLUDED))
  return {"name": identity["config"]["name"], "simplify": identity["config"]["simplify"], "seed": identity["seed"],
          "equations": equations, "manifest_sha256": hashlib.sha256(text).hexdigest(),
          "problems_kept_out": len(identity["excluded_problems"]), "dropped_for_them": dropped}


def _describe_ancestor(model: registry.LoadedModel | None) -> dict[str, Any] | None:
  """What the card says of the model whose parameters training started from."""
  if model is None:
    return None
  before = model.card.get("training")
  if not isinstance(before, dict) or "examples" not in before:
    raise ModelError(f"the card in {model.folder}, which the run started from, says nothing of training")
  return {"name": model.card["name"], "weights_sha256": model.card["weights_sha256"],
          "examples_in_all": before.get("examples_in_all", before["examples"]),
          "started_from": before.get("started_from")}


def _choose_step(workdir: Path) -> int:
  names = [path.name for path in (workdir / "checkpoints").glob("*")]
  steps = [int(name) for name in names if name.isascii() and name.isdigit()]  # not ², which is a digit too
  if not steps:
    raise ModelError(f"no checkpoint below {workdir / 'checkpoints'}")
  if asked.WHICH.value == "newest":
    return max(steps)
  best = checkpoint.best_step(workdir)
  if best is None:
    raise ModelError(f"no checkpoint below {workdir / 'checkpoints'} was validated: use --which=newest")
  return best


def _write_seen(
  out: Path, directories: Sequence[str], parent: registry.LoadedModel | None, num_variables: int,
) -> list[dict[str, Any]] | None:
  """What the card says of the training data's hashes; None, and a note, when the data are not here or too large."""
  if num_variables > _MOST_VARIABLES:
    print(f"note: without hashes of the training data: a formula of {num_variables} variables has too many orders of "
          "its columns to be looked up", file=sys.stderr)
    return None
  try:
    parts = seen.collect(directories).parts
    if parent is not None and parent.folder is not None:
      before = seen.read(parent.folder, parent.card)
      if before is None:
        raise DataError(f"the model it started from, {parent.card['name']}, has none")
      # Data that this run was trained on again are there already.
      files = {_to_bytes(part) for part in parts}
      parts += tuple(part for part in before.parts if _to_bytes(part) not in files)
    found = seen.write(out, seen.Seen(parts))
  except DataError as error:
    print(f"note: without hashes of the training data: {error}", file=sys.stderr)
    return None
  if found is None:
    print(f"note: hashes of the training data are larger than {seen.MAX_SHIPPED_BYTES} bytes and stay out; "
          "launch.evaluate --seen=DIR reads them from the data", file=sys.stderr)
  return found


def _to_bytes(part: seen.Part) -> tuple[bytes, ...]:
  return tuple(one.to_bytes() for one in part.filters)


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS)
