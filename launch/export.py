"""Turns a run's newest checkpoint into a shippable model.

python -m launch.export --workdir=DIR --name=NAME --out=DIR
"""

import json
from pathlib import Path

from absl import flags
import orbax.checkpoint as ocp

from symformer_jax import configuration, runner
from symformer_jax.errors import ModelError
from symformer_jax.pretrained import registry
from symformer_jax.training.config import TrainConfig

_WORKDIR = flags.DEFINE_string("workdir", None, "Work directory of launch.train.")
_NAME = flags.DEFINE_string("name", None, "Name of the model.")
_OUT = flags.DEFINE_string("out", None, "Folder to write card.json and weights.npz to.")


def main(argv):
  del argv
  workdir = Path(_WORKDIR.value)
  folder = (workdir / "checkpoints").absolute()
  steps = sorted(int(path.name) for path in folder.glob("*") if path.name.isdigit())
  if not steps:
    raise ModelError(f"no checkpoint below {folder}")
  with ocp.CheckpointManager(folder) as manager:
    restored = manager.restore(
      steps[-1], args=ocp.args.Composite(state=ocp.args.StandardRestore(), meta=ocp.args.JsonRestore()))
  config = configuration.build(TrainConfig, restored["meta"]["config"])
  described = configuration.to_dict(config)
  # Names of folders are enough: where they lay is nobody else's business.
  described["data"]["dirs"] = [Path(folder).name for folder in config.data.dirs]
  curve = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
  validation = [line for line in curve if line["kind"] == "validation" and line["step"] <= steps[-1]]
  registry.save_model(
    _OUT.value, name=_NAME.value, config=config.model, params=restored["state"]["params"], card={
      "training": {
        "steps": steps[-1], "examples": steps[-1] * config.data.batch_size, "config": described,
        "validation": validation[-1] if validation else None}})
  print(f"{_OUT.value}: {_NAME.value} after {steps[-1]} steps")
  return runner.DONE


if __name__ == "__main__":
  flags.mark_flags_as_required(["workdir", "name", "out"])
  runner.run(main)
