"""Snapping: how often random constants of generated formulas are taken for exact ones, and exact ones found."""

from collections.abc import Callable
import math
import time
from typing import Any

import numpy as np

from launch.benchmarks import candidates as candidates_lib
from launch.benchmarks.refine import numpy_program
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import snapping

NUM_FORMULAS, NUM_POINTS = 128, 100
# Standard deviation of the noise, in standard deviations of y.
NOISES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
# Random constants: those of the generator, which have few digits, times exp of a normal draw of this size.
SPREAD = 0.1
EXACT = (1.0, 2.0, 3.0, 0.5, 1.5, 1 / 3, 2 / 3, 0.25, math.pi, 2 * math.pi, math.pi / 2, math.e, math.sqrt(2),
         math.sqrt(3))
# Odds that everything passes which the F test passes: many refits, so fewer formulas.
NO_ODDS, NUM_FORMULAS_NO_ODDS = 1e-30, 24


def run() -> dict[str, Any]:
  """Measures both kinds of constants at every noise; prints a row each."""
  drawn, vocab = candidates_lib.draw(NUM_FORMULAS, num_points=NUM_POINTS), Vocabulary(1)
  few = candidates_lib.Candidates(*(a[:NUM_FORMULAS_NO_ODDS] for a in drawn))
  rows = {}
  for noise in NOISES:
    begin = time.process_time()
    random_snapped = _random(drawn, vocab, noise, snapping.MIN_ODDS)
    row = {"random_snapped": random_snapped, "cpu_ms_per_formula": 1000 * (time.process_time() - begin) / NUM_FORMULAS,
           **_exact(drawn, vocab, noise), "random_snapped_by_f_test_alone": _random(few, vocab, noise, NO_ODDS)}
    print(f"noise {noise:g}".ljust(12), "  ".join(f"{k} {v:.4g}" for k, v in row.items()), flush=True)
    rows[f"noise {noise:g}"] = row
  return {"num_formulas": NUM_FORMULAS, "num_points": NUM_POINTS, **rows}


def _random(drawn: candidates_lib.Candidates, vocab: Vocabulary, noise: float, min_odds: float) -> float:
  """Share of random constants that are snapped."""
  def draw(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    return values * np.exp(SPREAD * rng.normal(size=values.shape))
  _, exacts = _snap_all(drawn, vocab, noise, draw, min_odds)
  return float(np.mean([special is not None for special in exacts]))


def _exact(drawn: candidates_lib.Candidates, vocab: Vocabulary, noise: float) -> dict[str, float]:
  """Shares of exact constants that are found and that are taken for another exact one."""
  def draw(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    return np.where(values != 0, rng.choice(EXACT, values.shape) * np.sign(values), 0)
  truths, exacts = _snap_all(drawn, vocab, noise, draw, snapping.MIN_ODDS)
  is_right = [s is not None and math.isclose(s.value, t, rel_tol=1e-12)
              for s, t in zip(exacts, truths, strict=True)]
  is_wrong = [s is not None and not right for s, right in zip(exacts, is_right, strict=True)]
  return {"num_exact": len(truths), "exact_found": float(np.mean(is_right)), "exact_mistaken": float(np.mean(is_wrong))}


def _snap_all(
  drawn: candidates_lib.Candidates, vocab: Vocabulary, noise: float,
  draw: Callable[[np.random.Generator, np.ndarray], np.ndarray], min_odds: float,
) -> tuple[list[float], list[Any]]:
  """True constants and what they were snapped to, of all formulas that the drawn constants leave defined."""
  rng = np.random.default_rng(2)
  truths: list[float] = []
  exacts: list[Any] = []
  is_constant = np.array(vocab.is_constant)
  for ids, values, x in zip(drawn.ids, drawn.values, drawn.x, strict=True):
    values, errors = draw(rng, values), rng.normal(size=NUM_POINTS)
    constants = values[is_constant[ids]]
    with np.errstate(all="ignore"):
      y = numpy_program(ids, vocab)(constants, x)
    spread = y.std()
    if not np.isfinite(spread) or spread <= 1e-6 * abs(y).max():
      continue
    _, snapped = snapping.snap_program(
      ids, values, x, y + noise * spread * errors, np.ones(NUM_POINTS), vocab=vocab, min_odds=min_odds)
    truths += constants.tolist()
    exacts += snapped.exact
  return truths, exacts
