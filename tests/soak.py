"""A long run of the command: several hundred small data sets in one process, forwards and backwards.

tests/soak.py [--sets=300] [--samples=16] [--seed=0]

Checks that memory stays flat once every shape has been met, that no file stays open, that each data set has an answer,
and that answers do not depend on the order. Prints its figures; exit code 1 where one of these does not hold.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
# Growth of the second half of a run, MiB: what the allocator keeps here and there. A program that is compiled anew for
# each data set, or results that are kept, cost megabytes each.
MAX_GROWTH_MIB = 150
# Files that may be open at the end beside those after the first answer.
MAX_NEW_FILES = 4
# What differs between two runs that answer the same.
TIMES = {"seconds", "compile_seconds", "rounds"}
LAWS = (
  lambda x, c: c[0] * x[:, 0] + c[1], lambda x, c: c[0] * np.exp(-np.abs(c[1]) * x[:, -1]),
  lambda x, c: c[0] * np.sin(c[1] * x[:, 0]) + x[:, -1], lambda x, c: x[:, 0] ** 2 / (1 + np.abs(c[0]) * x[:, -1] ** 2),
  lambda x, c: c[0] * x.prod(axis=1), lambda x, c: np.sqrt(np.abs(x[:, 0])) + c[1] * x[:, -1],
  lambda x, c: c[0] + 0.0 * x[:, 0])


class Sample(NamedTuple):
  """After so many answers: resident memory, MiB, and open files of the process."""

  num_answers: int
  memory_mib: float
  num_files: int


def write_sets(folder: pathlib.Path, count: int, seed: int) -> list[pathlib.Path]:
  """Tables of 5 to 400 rows and 1 to 3 columns, with and without noise; every tenth cannot be read."""
  rng = np.random.default_rng(seed)
  paths = []
  for i in range(count):
    num_rows, num_columns = int(np.exp(rng.uniform(np.log(5), np.log(400)))), int(rng.integers(1, 4))
    x = rng.uniform(0.2, 3, (num_rows, num_columns)) * 10.0 ** rng.integers(-2, 3)
    y = LAWS[i % len(LAWS)](x, rng.uniform(-3, 3, 2))
    y = y + rng.choice([0, 0.01, 0.1]) * np.std(y) * rng.normal(size=num_rows)
    lines = [",".join([*(f"x{j}" for j in range(num_columns)), "y"])]
    lines += [",".join(map(repr, row)) for row in np.column_stack([x, y]).tolist()]
    paths.append(folder / f"set{i:04d}.csv")
    paths[-1].write_text("\n".join(lines[:3] if i % 10 == 9 else lines) + "\n", encoding="utf-8")
  return paths


def watch(command: list[str], out: pathlib.Path) -> tuple[int, list[Sample]]:
  """Runs the command; its exit code and what it holds, looked at whenever answers have come."""
  process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
  samples: list[Sample] = []
  while process.poll() is None:
    time.sleep(0.2)
    num_answers = out.read_bytes().count(b"\n") if out.exists() else 0
    if num_answers and (not samples or num_answers > samples[-1].num_answers):
      try:
        pages = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1])
        num_files = len(os.listdir(f"/proc/{process.pid}/fd"))
      except (OSError, IndexError, ValueError):  # it has just ended
        continue
      samples.append(Sample(num_answers, pages * os.sysconf("SC_PAGE_SIZE") / 2**20, num_files))
  return process.returncode, samples


def read_answers(out: pathlib.Path) -> dict[str, str]:
  """The answer of each file, without what depends on the clock."""
  records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
  return {record["data"]: json.dumps({k: v for k, v in record.items() if k not in TIMES}, sort_keys=True)
          for record in records}


def find_faults(paths: list[pathlib.Path], code: int, samples: list[Sample], answers: dict[str, str]) -> list[str]:
  """What one run did wrong, one line each."""
  faults = [] if code == 1 else [f"exit code {code}, expected 1: some tables cannot be read"]
  if len(answers) != len(paths):
    faults.append(f"{len(answers)} answers to {len(paths)} tables")
  unreadable = {str(path) for path in paths[9::10]}
  failed = {name for name, text in answers.items() if json.loads(text)["status"] == "failed"}
  if not unreadable <= failed:
    faults.append(f"tables of two rows were answered: {sorted(unreadable - failed)[:3]}")
  if len(samples) < 4:
    return [*faults, f"memory was seen {len(samples)} times, too few to compare"]
  half = min(samples, key=lambda s: abs(s.num_answers - len(paths) / 2))
  if samples[-1].memory_mib - half.memory_mib > MAX_GROWTH_MIB:
    faults.append(f"memory grew from {half.memory_mib:.0f} to {samples[-1].memory_mib:.0f} MiB in the second half")
  if samples[-1].num_files - samples[0].num_files > MAX_NEW_FILES:
    faults.append(f"open files grew from {samples[0].num_files} to {samples[-1].num_files}")
  return faults


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--sets", type=int, default=300, help="data sets of each of the two runs")
  parser.add_argument("--samples", type=int, default=16, help="candidates drawn from the model for each")
  parser.add_argument("--seed", type=int, default=0, help="which data sets")
  given = parser.parse_args()
  faults, found = [], []
  with tempfile.TemporaryDirectory(prefix="soak-") as name:
    folder = pathlib.Path(name)
    paths = write_sets(folder, given.sets, given.seed)
    for label, order in (("forwards", paths), ("backwards", paths[::-1])):
      out = folder / f"{label}.jsonl"
      begin = time.monotonic()
      command = [sys.executable, "-m", "symformer_jax.infer", f"--data={','.join(map(str, order))}", "--effort=quick",
                 f"--samples={given.samples}", f"--out={out}"]
      code, samples = watch(command, out)
      found.append(read_answers(out) if out.exists() else {})
      faults += [f"{label}: {fault}" for fault in find_faults(paths, code, samples, found[-1])]
      print(f"{label}: {len(found[-1])} answers in {time.monotonic() - begin:.0f} s")
      print("  answers, MiB, open files: " + "; ".join(
        f"{s.num_answers}, {s.memory_mib:.0f}, {s.num_files}" for s in samples), flush=True)
  different = [name for name, text in found[0].items() if found[1].get(name) != text]
  if different:
    faults.append(f"{len(different)} answers depend on the order: {', '.join(sorted(different)[:5])}")
  print("\n".join(faults) or "no fault")
  return 1 if faults else 0


if __name__ == "__main__":
  sys.exit(main())
