"""Turns a checkpoint of a run, the newest or the best by validation, into a shippable model.

python -m launch.export --workdir=DIR --name=NAME --out=DIR [--which=best]

Beside the weights go two Bloom filters of the functions and skeletons that the model was trained on, and those of the
model it started from, so that an evaluation can tell what of its problems the model has met (`data_gen.seen`).
"""

from collections.abc import Sequence
import json
from pathlib import Path
import sys
from typing import Any

from absl import flags

from data_gen import seen
from symformer_jax import configuration, runner
from symformer_jax.errors import DataError, ModelError
from symformer_jax.pretrained import registry
from symformer_jax.training import checkpoint
from symformer_jax.training.config import TrainConfig

_WORKDIR = flags.DEFINE_string("workdir", None, "Work directory of launch.train.")
_NAME = flags.DEFINE_string("name", None, "Name of the model.")
_OUT = flags.DEFINE_string("out", None, "Folder to write card.json and weights.npz to.")
_WHICH = flags.DEFINE_enum(
  "which", "newest", ("newest", "best"), "The newest checkpoint, or that of the lowest validation loss.")
_SEEN = flags.DEFINE_list(
  "seen", None, "Folders of the equations trained on; by default those of the run's configuration.")


def main(argv):
  del argv
  workdir = Path(_WORKDIR.value)
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
  curve = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
  validation = [line for line in curve if line["kind"] == "validation" and line["step"] <= step]
  out = Path(_OUT.value)
  out.mkdir(parents=True, exist_ok=True)
  registry.save_model(
    out, name=_NAME.value, config=config.model, params=state.params, card={
      "training": {
        "steps": step, "examples": examples, "config": described, "started_from": ancestor,
        "examples_in_all": examples + (ancestor["examples_in_all"] if ancestor else 0),
        "validation": validation[-1] if validation else None},
      "seen": _write_seen(out, _SEEN.value or config.data.dirs, parent)})
  print(f"{_OUT.value}: {_NAME.value} after {step} steps")
  return runner.DONE


def _describe_ancestor(model: registry.LoadedModel | None) -> dict[str, Any] | None:
  """What the card says of the model whose parameters training started from."""
  if model is None:
    return None
  before = model.card["training"]
  return {"name": model.card["name"], "weights_sha256": model.card["weights_sha256"],
          "examples_in_all": before.get("examples_in_all", before["examples"]),
          "started_from": before.get("started_from")}


def _choose_step(workdir: Path) -> int:
  steps = [int(path.name) for path in (workdir / "checkpoints").glob("*") if path.name.isdigit()]
  if not steps:
    raise ModelError(f"no checkpoint below {workdir / 'checkpoints'}")
  if _WHICH.value == "newest":
    return max(steps)
  best = checkpoint.best_step(workdir)
  if best is None:
    raise ModelError(f"no checkpoint below {workdir / 'checkpoints'} was validated: use --which=newest")
  return best


def _write_seen(
  out: Path, directories: Sequence[str], parent: registry.LoadedModel | None,
) -> list[dict[str, Any]] | None:
  """What the card says of the training data's hashes; None, and a note, when the data are not here or too large."""
  try:
    parts = seen.collect(directories).parts
    if parent is not None:
      before = seen.read(parent.folder, parent.card)
      if before is None:
        raise DataError(f"the model it started from, {parent.card['name']}, has none")
      parts += before.parts
    found = seen.write(out, seen.Seen(parts))
  except DataError as error:
    print(f"note: without hashes of the training data: {error}", file=sys.stderr)
    return None
  if found is None:
    print(f"note: hashes of the training data are larger than {seen.MAX_SHIPPED_BYTES} bytes and stay out; "
          "launch.evaluate --seen=DIR reads them from the data", file=sys.stderr)
  return found


if __name__ == "__main__":
  flags.mark_flags_as_required(["workdir", "name", "out"])
  runner.run(main)
