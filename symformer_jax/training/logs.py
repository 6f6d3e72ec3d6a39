"""Training curves: JSON lines and TensorBoard, averaged over windows of steps, continued without a seam."""

import contextlib
import json
from pathlib import Path
import threading
from typing import Any

from tensorboardX import SummaryWriter

from symformer_jax import files


class Window:
  """Running sums of metrics since the last line; part of a checkpoint, so a resumed curve is the same."""

  def __init__(self, sums: dict[str, float] | None = None):
    self.sums = dict(sums or {})

  def add(self, metrics: dict[str, Any]) -> None:
    self.sums["count"] = self.sums.get("count", 0) + 1
    for name, value in metrics.items():
      self.sums[name] = self.sums.get(name, 0.0) + float(value)

  def skip(self) -> None:
    """Counts a step that changed nothing; its metrics are not finite."""
    self.sums["skipped"] = self.sums.get("skipped", 0) + 1

  def pop(self) -> dict[str, float]:
    """Means over the window, which starts anew, and `skipped`, the steps among it that are in no mean."""
    count, skipped = self.sums.pop("count", 0), self.sums.pop("skipped", 0)
    means = {name: total / count for name, total in self.sums.items()}
    self.sums = {}
    return means | ({"skipped": skipped} if skipped else {})


class Curves:
  """Writes `metrics.jsonl` and TensorBoard events below a work directory; only one host of a run does."""

  def __init__(self, workdir: str | Path, *, first_step: int, is_writer: bool = True):
    self._is_writer = is_writer
    self._lost: OSError | None = None
    if is_writer:
      self._open(workdir, first_step)

  def _open(self, workdir: str | Path, first_step: int) -> None:
    self._path = Path(workdir) / "metrics.jsonl"
    files.check_regular(self._path)
    self._drop_after(first_step)
    self._file = self._path.open("a")
    self._hook, threading.excepthook = threading.excepthook, self._on_thread_error
    self._board = SummaryWriter(str(Path(workdir) / "tensorboard"), purge_step=first_step)

  def _on_thread_error(self, failed: Any) -> None:
    """TensorBoard's writer is a thread, and nothing reads its queue once a full disk has ended it."""
    if isinstance(failed.exc_value, OSError):
      self._lost = failed.exc_value
    else:
      self._hook(failed)

  def _drop_after(self, step: int) -> None:
    """Forgets lines of steps that will be done again, and a line cut short by a kill."""
    if not self._path.exists():
      return
    kept = []
    for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():  # also what a crash made of it
      with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
        if json.loads(line)["step"] <= step:
          kept.append(line)
    files.write_text(self._path, "".join(f"{line}\n" for line in kept))

  def write(self, step: int, kind: str, values: dict[str, float]) -> None:
    if not self._is_writer:
      return
    if self._lost is not None:
      raise self._lost
    self._file.write(json.dumps({"step": step, "kind": kind, **values}) + "\n")
    self._file.flush()
    for name, value in values.items():
      self._board.add_scalar(f"{kind}/{name}", value, step)

  def abandon(self) -> None:
    """Where the disk takes nothing more: the end of the process does not try again to write what TensorBoard has."""
    if self._is_writer:
      self._board.file_writer.event_writer.close = lambda: None

  def close(self) -> None:
    if self._is_writer:
      self._file.close()
      self._board.close()
      threading.excepthook = self._hook
