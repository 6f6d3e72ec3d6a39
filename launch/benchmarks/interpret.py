"""The interpreter: 1024 generated formulas on 100 points, by both plans, with and without Jacobian."""

from collections.abc import Callable
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from launch.benchmarks import candidates as candidates_lib
from launch.benchmarks.refine import numpy_program
from symformer_jax.language import interpreter
from symformer_jax.language.vocabulary import Vocabulary

NUM_FORMULAS, NUM_POINTS = 1024, 112
SLOT_COUNTS = (0, 4, 16)
NUM_REPEATS = 9


def run() -> dict[str, Any]:
  """Milliseconds for all formulas; prints a row per plan and number of derivatives."""
  vocab = Vocabulary(1)
  drawn = candidates_lib.draw(NUM_FORMULAS, num_points=NUM_POINTS)
  ids, values, x = drawn.ids, drawn.values.astype(np.float32), drawn.x.astype(np.float32)
  results = {"num_formulas": NUM_FORMULAS, "num_points": NUM_POINTS, "mean_tokens": float((ids > 0).sum(1).mean()),
             "numpy_ms": _time_numpy(drawn, vocab)}
  print(f"numpy {results['numpy_ms']:.1f} ms")
  for plan in ("loop", "vmap"):
    for num_slots in SLOT_COUNTS:
      call = _make(vocab, plan, num_slots).lower(ids, values, x).compile()
      least = _least_ms(lambda call=call: jax.block_until_ready(call(ids, values, x)))
      results[f"{plan}_{num_slots}_ms"] = least
      print(f"{plan} with {num_slots} derivatives {least:.1f} ms")
  return results


def _make(vocab: Vocabulary, plan: str, num_slots: int) -> Any:
  """A jitted evaluation of all formulas; the sum keeps XLA from dropping any derivative."""
  @jax.jit
  def evaluate(ids: jax.Array, values: jax.Array, x: jax.Array) -> jax.Array:
    program = interpreter.translate(ids, values, vocab=vocab, num_slots=num_slots)
    at = jnp.where(program.slots >= 0, program.slots, num_slots)
    constants = jnp.zeros((len(ids), num_slots)).at[jnp.arange(len(ids))[:, None], at].set(program.numbers, mode="drop")
    if plan == "vmap":
      rows = jax.vmap(lambda p, c, points: interpreter.run(p, c, points.T))(program, constants, x)
    else:
      rows = jax.lax.map(lambda a: interpreter.run(a[0], a[1], a[2].T, num_tokens=a[0].length), (program, constants, x))
    return rows.sum(axis=1)
  return evaluate


def _least_ms(call: Callable[..., object]) -> float:
  call()
  times = []
  for _ in range(NUM_REPEATS):
    begin = time.perf_counter()
    call()
    times.append(time.perf_counter() - begin)
  return 1e3 * min(times)


def _time_numpy(drawn: candidates_lib.Candidates, vocab: Vocabulary) -> float:
  programs = [numpy_program(ids, vocab) for ids in drawn.ids]
  constants = [v[np.array(vocab.is_constant)[ids]] for ids, v in zip(drawn.ids, drawn.values, strict=True)]

  def evaluate_all() -> None:
    with np.errstate(all="ignore"):
      for program, c, x in zip(programs, constants, drawn.x, strict=True):
        program(c, x)

  return _least_ms(evaluate_all)
