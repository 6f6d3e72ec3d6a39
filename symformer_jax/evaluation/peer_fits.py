"""Fits one data set with another system and prints its formula: run as a file, in a process and a Python of its own.

Reads one JSON object from standard input: {peer, x [N][D], y [N], seed, max_time (s), num_cores}. Writes one line
of JSON: {expression, over columns x0, x1, ...; seconds of the fit alone; import_seconds}. It imports nothing of this
package, so that a peer may live in an environment where the package is not installed.
"""

from collections.abc import Callable, Iterator, Sequence
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # else within `main`, after the clock of the imports has begun
  import numpy as np

# What a formula may be made of, as near to the model's operators as each system's set allows.
OPERON_SYMBOLS = "add,sub,mul,div,constant,variable,sin,cos,tan,exp,log,sqrt,square,pow,asin,acos,atan"
PYSR_UNARY = ["sin", "cos", "tan", "exp", "log", "sqrt", "asin", "acos", "atan"]
# gplearn counts generations, not seconds: it is continued by one until the time is over.
GPLEARN_FUNCTIONS = ("add", "sub", "mul", "div", "sqrt", "log", "sin", "cos", "tan", "inv")
# A search without noise is over when it has found the function, as the model's own early stop is.
SOLVED_MSE = 1e-16


def fit_operon(
  x: "np.ndarray", y: "np.ndarray", seed: int, max_time: float, num_cores: int
) -> "Iterator[str | None]":
  from pyoperon.sklearn import SymbolicRegressor

  yield None
  found = SymbolicRegressor(
    allowed_symbols=OPERON_SYMBOLS, optimizer_iterations=5, generations=10**6, max_evaluations=10**9,
    max_time=max(int(max_time), 1), n_threads=num_cores, random_state=seed)
  found.fit(x, y)
  yield found.get_model_string(found.model_, 17, names=[f"x{i}" for i in range(x.shape[1])])


def fit_gplearn(
  x: "np.ndarray", y: "np.ndarray", seed: int, max_time: float, num_cores: int
) -> "Iterator[str | None]":
  from gplearn.genetic import SymbolicRegressor

  yield None
  end = time.perf_counter() + max_time
  found = SymbolicRegressor(
    population_size=1000, generations=1, function_set=GPLEARN_FUNCTIONS, metric="mse", parsimony_coefficient=1e-4,
    stopping_criteria=SOLVED_MSE, warm_start=True, random_state=seed, low_memory=True,
    n_jobs=1)  # with two jobs it takes twice as long: its generations are short, and starting workers is not
  while True:
    found.fit(x, y)
    if time.perf_counter() > end or found._program.raw_fitness_ <= SOLVED_MSE:
      break
    found.set_params(generations=found.generations + 1)
  yield _gplearn_text(found._program.program)


# gplearn's own meaning but for arguments within 0.001 of a pole, where it returns 0 or 1 in place of the value.
_GPLEARN_TEXT = {
  "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "div": "({} / {})", "sqrt": "sqrt(abs({}))",
  "log": "log(abs({}))", "inv": "(1 / {})", "sin": "sin({})", "cos": "cos({})", "tan": "tan({})",
}


def _gplearn_text(program: Sequence[Any]) -> str:
  """Infix text of a program in prefix order: functions, column numbers (int) and constants (float)."""
  def read(position: int) -> tuple[str, int]:
    node = program[position]
    if isinstance(node, int):
      return f"x{node}", position + 1
    if not hasattr(node, "arity"):
      return f"({float(node)!r})", position + 1
    arguments, position = [], position + 1
    for _ in range(node.arity):
      text, position = read(position)
      arguments.append(text)
    return _GPLEARN_TEXT[node.name].format(*arguments), position
  return read(0)[0]


def fit_rils_rols(
  x: "np.ndarray", y: "np.ndarray", seed: int, max_time: float, num_cores: int
) -> "Iterator[str | None]":
  from rils_rols.rils_rols import RILSROLSRegressor

  yield None
  found = RILSROLSRegressor(max_time=max(int(max_time), 1), max_fit_calls=10**9, random_state=seed)
  found.fit(x, y)
  yield str(found.model_string())  # SymPy's


def fit_pysr(
  x: "np.ndarray", y: "np.ndarray", seed: int, max_time: float, num_cores: int
) -> "Iterator[str | None]":
  os.environ["PYTHON_JULIACALL_THREADS"] = str(num_cores)
  from pysr import PySRRegressor

  yield None
  found = PySRRegressor(
    binary_operators=["+", "-", "*", "/", "^"], unary_operators=PYSR_UNARY, constraints={"^": (-1, 9)},
    timeout_in_seconds=max_time, niterations=10**6, random_state=seed, progress=False, verbosity=0,
    temp_equation_file=True)
  found.fit(x, y, variable_names=[f"x{i}" for i in range(x.shape[1])])
  yield str(found.sympy())


FITS: "dict[str, Callable[..., Iterator[str | None]]]" = {
  "operon": fit_operon, "gplearn": fit_gplearn, "rils_rols": fit_rils_rols, "pysr": fit_pysr,
}


def main() -> None:
  # Formulas alone may go to standard output: peers print there.
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)
  question = json.load(sys.stdin)
  begun = time.perf_counter()
  import numpy as np

  x, y = np.array(question["x"]), np.array(question["y"])
  fit = FITS[question["peer"]](x, y, question["seed"], question["max_time"], question["num_cores"])
  next(fit)  # imports
  imported = time.perf_counter()
  expression = next(fit)
  fitted = time.perf_counter()
  answers.write(json.dumps({"expression": expression, "seconds": fitted - imported,
                            "import_seconds": imported - begun}) + "\n")
  answers.close()


if __name__ == "__main__":
  main()
