"""Formulas that a person has written, fitted to many rows by `refine`: how many are solved, and CPU seconds."""

import time
from typing import Any

import numpy as np

from symformer_jax import refine
from symformer_jax.language import parser
from symformer_jax.refinement.named import NamedFormula

# Of the kinds that NIST's certified fits are of (docs/results/refinement.md): formula, constants, least and largest x.
FORMULAS: dict[str, tuple[str, tuple[float, ...], tuple[float, float]]] = {
  "decay": ("b1*exp(-b2*x0)", (3, 0.7), (0, 6)),
  "saturation": ("b1*(1 - exp(-b2*x0))", (239, 5.5e-4), (77, 760)),
  "peak": ("b1*exp(-(x0 - b2)**2/(2*b3**2))", (5, 3, 0.6), (0, 6)),
  "narrow peak": ("b1/b2*exp(-0.5*((x0 - b3)/b2)**2)", (1.55, 4.09, 451.5), (400, 500)),
  "logistic": ("b1/(1 + exp(b2 - b3*x0))", (72, 2.6, 0.067), (9, 79)),
  "Hill": ("b1*x0**b3/(b2**b3 + x0**b3)", (2, 3, 2.7), (0.1, 12)),
  "two decays": ("b1*exp(-b2*x0) + b3*exp(-b4*x0)", (2, 1.3, 1.1, 0.2), (0, 8)),
  "wave": ("b1*sin(b2*x0 + b3) + b4", (2, 3.1, 0.5, 1), (0, 10)),
  "fraction": ("(b1 + b2*x0 + b3*x0**2)/(1 + b4*x0 + b5*x0**2)", (1.08, -0.12, 0.04, -0.05, 0.02), (1, 20)),
  "shifted power": ("b1*(b2 + x0)**(-1/b3)", (-2500, 46.7, 0.93), (8, 200)),
  "shifted rate": ("b1*exp(b2/(x0 + b3))", (5.6e-3, 6181, 345), (50, 125)),
  "arctangent": ("b1 - b2*x0 - arctan(b3/(x0 - b4))/pi", (0.2, -6e-6, 1204, -181), (-5000, 200)),
  "decay and peak": ("b1*exp(-b2*x0) + b3*exp(-(x0 - b4)**2/b5**2)", (98, 0.01, 100, 67, 23), (1, 250)),
  "two columns": ("b1*x0**b2*exp(-b3*x1) + b4", (1.5, 0.5, 0.8, -2), (0.1, 5)),
}
# Number of rows, of data sets of each formula, and the formulas.
SIZES = ((4096, 2, tuple(FORMULAS)), (200_000, 2, ("decay", "wave", "two columns")))
# Standard deviation of the noise by that of y.
NOISE = 0.01


def run() -> dict[str, Any]:
  """By number of rows, for each formula the shares solved and CPU seconds; prints a row each."""
  found: dict[str, Any] = {}
  for num_rows, num_sets, names in SIZES:
    for name in names:
      fits = [_fit(name, num_rows, seed) for seed in range(num_sets)]
      solved, seconds = np.mean([fit[0] for fit in fits]), [fit[1] for fit in fits]
      found[f"{name}, {num_rows} rows"] = {"solved": float(solved), "cpu_s": seconds}
      print(f"{name}, {num_rows} rows: solved {solved:.2f}, CPU s {', '.join(f'{s:.1f}' for s in seconds)}", flush=True)
  return found


def _fit(name: str, num_rows: int, seed: int) -> tuple[bool, float]:
  """Whether a fit is as near as the truth, within 1 %, and its CPU seconds; the first of a formula compiles."""
  formula, truth, span = FORMULAS[name]
  rng = np.random.default_rng([seed, num_rows])
  x = rng.uniform(*span, (num_rows, 2 if "x1" in formula else 1))
  constants = [f"b{i + 1}" for i in range(len(truth))]
  node = parser.parse(formula, ("x0", "x1"), allow_symbols=True)
  clean = NamedFormula(node, constants).evaluator(x)(np.array(truth, float))[0]
  y = clean + NOISE * clean.std() * rng.normal(size=num_rows)
  start = time.process_time()
  [fit] = refine(formula, [x], [y], seed=seed)  # type: ignore[misc]  # a list for lists
  return fit.rss <= 1.01 * np.sum((y - clean) ** 2), time.process_time() - start
