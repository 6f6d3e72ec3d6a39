"""Other systems in the same table: asked with the same points, seed, time limit and cores, each in its own process."""

from collections.abc import Mapping
import csv
import dataclasses
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import numpy as np

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.evaluation import choices, peer_fits
from symformer_jax.evaluation.answers import Answer
from symformer_jax.evaluation.suites import Task
from symformer_jax.files import check_regular
from symformer_jax.language import parser

# Peer -> the package that pip installs.
PACKAGES = {"operon": "pyoperon", "gplearn": "gplearn", "rils_rols": "rils-rols", "pysr": "pysr"}
FILE = "file"
PEERS = choices.PEERS
# Seconds of a fit when the user gives none: what a model of this package takes on 2 cores, and some more.
MAX_TIME_S = 10.0
# Beyond the time limit: imports, and the last step that a peer does not interrupt.
GRACE_S = 60.0
COLUMNS = choices.PREDICTION_COLUMNS


@dataclasses.dataclass(frozen=True)
class Peers:
  """Those that can be asked.

  Attributes:
    versions: name -> version, of peers that are installed.
    missing: name -> why it cannot be asked.
    python: the interpreter in whose environment they are.
    predictions: of the peer `file`: formula and seconds by problem name and seed; seed None for all seeds.
  """

  versions: Mapping[str, str]
  missing: Mapping[str, str]
  python: str
  predictions: Mapping[tuple[str, int | None], tuple[str, float]]

  def __call__(self, task: Task, points: np.ndarray) -> Answer:
    """A peer's formula for points [N, D+1]; an answer without a node says why there is none."""
    name = task.method.peer
    label = f"{name} {self.versions[name]}".strip()
    if name == FILE:
      found = self.predictions.get((task.problem.name, task.seed)) or self.predictions.get((task.problem.name, None))
      if found is None:
        return Answer(None, "the file of predictions has no such problem", 0.0, 0.0, label)
      return _read_answer(*found, 0.0, label, task.problem.names)
    try:
      reply = _fit(self.python, name, points, seed=task.seed, max_time=task.method.max_time or MAX_TIME_S)
    except InputError as error:
      return Answer(None, str(error), 0.0, 0.0, label)
    columns = tuple(f"x{i}" for i in range(points.shape[1] - 1))
    return _read_answer(reply["expression"], reply["seconds"], reply["import_seconds"], label, columns)


def _read_answer(text: str, seconds: float, import_seconds: float, label: str, columns: tuple[str, ...]) -> Answer:
  try:
    return Answer(parser.parse(text, columns), "", seconds, import_seconds, label)
  except ExpressionError as error:
    return Answer(None, f"its formula cannot be read: {error}", seconds, import_seconds, label)


def open_peers(names: tuple[str, ...], *, python: str | None = None, predictions: str | None = None) -> Peers:
  """Finds out which peers are installed.

  Args:
    names: some of `PEERS`.
    python: an interpreter with the peers' packages; this one by default.
    predictions: for `file`: a CSV with columns name, expression, and seed and seconds if wanted.
  Raises:
    InputError: unknown name, a file missing or unreadable.
  """
  unknown = [name for name in names if name not in PEERS]
  if unknown:
    raise InputError(f"--baseline: unknown system {unknown[0]!r}, expected some of {', '.join(PEERS)}")
  if (FILE in names) != (predictions is not None):
    raise InputError("--baseline=file and --predictions=FILE.csv: expected both or neither")
  python = python or sys.executable
  versions, missing = {}, {}
  for name in names:
    version = "" if name == FILE else _version(python, PACKAGES[name])
    if version is None:
      missing[name] = f"not installed: pip install {PACKAGES[name]}"
    else:
      versions[name] = version
  return Peers(versions, missing, python, read_predictions(predictions) if predictions else {})


def _version(python: str, package: str) -> str | None:
  code = f"import importlib.metadata as m; print(m.version({package!r}))"
  try:
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=GRACE_S)
  except OSError as error:
    raise InputError(f"--baseline_python: cannot run {python!r}: {error.strerror}") from None
  return asked.stdout.strip() if asked.returncode == 0 else None


def read_predictions(path: str) -> dict[tuple[str, int | None], tuple[str, float]]:
  """Formulas that were found elsewhere, by problem name and seed.

  Raises:
    InputError: names the row and says what is wrong with it.
  """
  try:
    check_regular(path)
    text = pathlib.Path(path).read_text(encoding="utf-8-sig")
  except (OSError, UnicodeDecodeError) as error:
    raise InputError(f"--predictions: cannot read {path!r}: {error}") from None
  rows = csv.DictReader(text.splitlines(), restval="")
  try:
    return _predictions(rows, path)
  except csv.Error as error:
    raise InputError(f"--predictions: cannot read {path!r}: {error}") from None


def _predictions(rows: csv.DictReader, path: str) -> dict[tuple[str, int | None], tuple[str, float]]:
  absent = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
  if absent:
    raise InputError(f"--predictions: no column {absent[0]!r}, expected {','.join(COLUMNS)}, got {rows.fieldnames}")
  found = {}
  for i, row in enumerate(rows, 1):
    try:
      key = row["name"], int(row["seed"]) if row.get("seed") else None
      if key in found:
        raise ValueError("the name stands in a row above, too, with the same seed or none; expected one prediction")
      found[key] = row["expression"], _read_seconds(row.get("seconds") or "0")
    except ValueError as error:
      raise InputError(f"--predictions: {path}, row {i} ({row['name']}): {error}") from None
  return found


def _read_seconds(text: str) -> float:
  """Seconds of a prediction; the means of a summary are numbers that JSON has."""
  seconds = float(text)
  if not 0 <= seconds < math.inf:
    raise ValueError(f"seconds: expected a finite number of at least 0, got {text!r}")
  return seconds


def _fit(python: str, name: str, points: np.ndarray, *, seed: int, max_time: float) -> dict[str, Any]:
  """Runs `peer_fits` and kills it, with all it started, when it does not end in time.

  Raises:
    InputError: says what the peer said last, or that it was killed.
  """
  num_cores = len(os.sched_getaffinity(0))
  question = {"peer": name, "x": points[:, :-1].tolist(), "y": points[:, -1].tolist(), "seed": seed,
              "max_time": max_time, "num_cores": num_cores}
  threads = {f"{library}_NUM_THREADS": str(num_cores) for library in ("OMP", "OPENBLAS", "MKL")}
  process = subprocess.Popen(
    [python, peer_fits.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    start_new_session=True, env={**os.environ, **threads})
  try:
    reply, said = process.communicate(json.dumps(question), timeout=max_time + GRACE_S)
  except subprocess.TimeoutExpired:
    raise InputError(f"{name} was killed: no answer {GRACE_S:g} s after its time limit of {max_time:g} s") from None
  finally:
    if process.poll() is None:
      os.killpg(process.pid, signal.SIGKILL)
      process.communicate()
  if process.returncode != 0 or not reply.strip():
    last = (said.strip().splitlines() or ["no message"])[-1]
    raise InputError(f"{name} failed (exit code {process.returncode}): {last[:200]}")
  return json.loads(reply)
