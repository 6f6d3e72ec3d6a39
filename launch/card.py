"""Completes the card of an exported model: where it was trained, the results of its suites, what it is bad at.

python -m launch.card --model=DIR [--results=DIR] [--hardware=TEXT] [--weakness=TEXT --weakness=TEXT ...]

What is given replaces what the card said of it; the rest stays.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "launch.flags.card")

import json
from pathlib import Path
from typing import Any

from launch.flags import card as asked
from symformer_jax.commands import runner
from symformer_jax.errors import InputError, ModelError
from symformer_jax.files import check_regular, claimed, reason, write_text
from symformer_jax.pretrained import registry

# What the card keeps of a suite's summary.json, of the run and of each variant.
_RUN = ("command", "date", "commit", "hardware", "models")
_FIGURES = ("rows", "median_r2", "median_relative_error", "share_r2_above_0.99", "share_r2_above_0.999",
            "share_r2_above_0.9999", "share_recovered", "mean_seconds")


def main(argv: list[str]) -> int:
  """Writes card.json anew."""
  del argv
  runner.refuse_empty(asked.MODEL, asked.RESULTS)
  model = registry.load_model(runner.required(asked.MODEL))
  assert model.folder is not None, "one that was loaded has a folder"
  with claimed(model.folder, flag="--model"):
    _complete(model.folder)
  return runner.DONE


def _complete(folder: Path) -> None:
  """Writes what the flags give into the card of a folder that holds a model."""
  path = folder / registry.CARD
  card = json.loads(path.read_text(encoding="utf-8"))  # by now another process may have completed it
  if asked.HARDWARE.value is not None:
    if not isinstance(card.get("training"), dict):
      raise ModelError(f"{path} says nothing of training: export the model again")
    card["training"] = {**card["training"], "hardware": asked.HARDWARE.value}
  if asked.RESULTS.value is not None:
    card["results"] = _read_results(Path(asked.RESULTS.value))
  if asked.WEAKNESS.value is not None:
    card["weaknesses"] = asked.WEAKNESS.value
  try:
    write_text(path, json.dumps(card, indent=1) + "\n")
  except OSError as error:
    raise InputError(f"cannot write {path}: {reason(error)}") from None


def _read_results(folder: Path) -> dict[str, Any]:
  """Main figures by suite.

  Raises:
    InputError: no summary.json in any folder below, or one that is none.
  """
  paths = sorted(folder.glob("*/summary.json"))
  if not paths:
    raise InputError(f"--results: no summary.json in the folders of {str(folder)!r}")
  return {path.parent.name: _shorten(path) for path in paths}


def _shorten(path: Path) -> dict[str, Any]:
  try:
    check_regular(path)
    summary = json.loads(path.read_text(encoding="utf-8"))
    variants = {name or "all": {key: figures[key] for key in _FIGURES} for name, figures in summary["variants"].items()}
    return {**{key: summary[key] for key in _RUN}, "variants": variants}
  except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
    why = f"it has no key {error}" if isinstance(error, KeyError) else error
    raise InputError(f"{path} is no summary of launch.evaluate: {why}") from None


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS)
