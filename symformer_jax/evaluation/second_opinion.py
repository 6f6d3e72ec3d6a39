"""SymPy's opinion whether two formulas are equal, asked of a process of its own that is killed when it thinks too long.

Only a second opinion: the judge goes by numbers (`metrics.is_recovered`). SymPy is blind to domains (`sqrt(x)**2`
is `x` to it), may think for hours, and may fill any memory; here it can do neither. The file is also that process:
questions come in on standard input, one JSON object a line, and verdicts go out on standard output.
"""

from collections.abc import Callable
import json
import os
import resource
import select
import subprocess
import sys
import time
from typing import Any

from symformer_jax.language import expression, parser, printing, sympy_trees
from symformer_jax.language.expression import Node

EQUAL, DIFFERENT, UNDECIDED = "equal", "different", "undecided"
TIMEOUT_S = 5.0
# Importing SymPy on a busy machine; no question is under way.
START_S = 120.0
# Constants are compared to the digits that a fit in float32 leaves.
DIGITS = 6
MAX_BYTES = 4 << 30
_COLUMNS = tuple(f"x{i}" for i in range(26))


class SecondOpinion:
  """Asks SymPy; the process is started by the first question and again after it had to be killed.

  A context manager: the process ends with it.

  Attributes:
    timeout_s: seconds of wall-clock time that a question may take.
  """

  def __init__(self, timeout_s: float = TIMEOUT_S):
    self.timeout_s = timeout_s
    self._process: subprocess.Popen | None = None
    self._verdicts: dict[str, str] = {}

  def __enter__(self) -> "SecondOpinion":
    return self

  def __exit__(self, *_: object) -> None:
    self._kill()

  def ask(self, truth: Node, predicted: Node) -> str:
    """`equal`, `different` or `undecided` (too slow, too large, or beyond SymPy); asked again, the same."""
    question = json.dumps({"truth": printing.to_text(truth, digits=DIGITS),
                           "predicted": printing.to_text(predicted, digits=DIGITS)})
    if question not in self._verdicts:
      self._verdicts[question] = self._ask(question)
    return self._verdicts[question]

  def _ask(self, question: str) -> str:
    try:
      if self._process is None:
        self._start()
      assert self._process is not None and self._process.stdin is not None
      self._process.stdin.write(question.encode() + b"\n")
      self._process.stdin.flush()
      verdict = self._read_line(self.timeout_s)
    except OSError:  # it died: out of memory, or stopped by somebody
      verdict = ""
    if verdict not in (EQUAL, DIFFERENT, UNDECIDED):
      self._kill()
      return UNDECIDED
    return verdict

  def _start(self) -> None:
    # The package may lie in a folder that is on the path of this process alone.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    self._process = subprocess.Popen(
      [sys.executable, "-m", __spec__.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
      env=environment)
    if not self._read_line(START_S):
      raise OSError("SymPy's process did not start")

  def _read_line(self, timeout_s: float) -> str:
    """The next line, or the empty string when none comes in time or the process has ended."""
    assert self._process is not None and self._process.stdout is not None
    end, line = time.monotonic() + timeout_s, b""
    while not line.endswith(b"\n"):
      is_ready, _, _ = select.select([self._process.stdout], [], [], max(end - time.monotonic(), 0))
      # Byte by byte: whatever follows the line must stay in the pipe.
      byte = os.read(self._process.stdout.fileno(), 1) if is_ready else b""
      if not byte:
        return ""
      line += byte
    return line.decode().strip()

  def _kill(self) -> None:
    if self._process is not None:
      self._process.kill()
      self._process.communicate()
      self._process = None


# --- the other process -----------------------------------------------------------------------------------------


def compare(truth: str, predicted: str) -> str:
  """What SymPy says of two formulas in x0, x1, ...; may take any time and memory.

  Raises:
    ExpressionError: for text that is longer or deeper than the parser reads.
  """
  difference = _read(truth) - _read(predicted)
  steps: tuple[Callable[[Any], Any], ...] = (lambda e: e, lambda e: e.expand(), lambda e: e.simplify())
  for step in steps:
    difference = step(difference)
    if difference == 0:
      return EQUAL
  verdict = difference.equals(0)
  return UNDECIDED if verdict is None else EQUAL if verdict else DIFFERENT


def _read(text: str) -> Any:
  return sympy_trees.to_sympy(parser.parse(text, _COLUMNS), is_exact=True)


def _serve() -> None:
  sympy_trees.to_sympy(expression.number(1))  # imports SymPy: no part of an answer
  resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
  print("ready", flush=True)
  for line in sys.stdin:
    try:
      verdict = compare(**json.loads(line))
    except Exception:  # SymPy raises what it likes, and no row may be lost to it
      verdict = UNDECIDED
    print(verdict, flush=True)


if __name__ == "__main__":
  _serve()
