"""The work in a step, and how fast it is done: model FLOPs from the traced network, rates over windows of steps."""

import functools
import math
import time
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr
import jax.numpy as jnp

from symformer_jax.data.sequences import Sequences
from symformer_jax.model import symformer
from symformer_jax.training import losses, step as step_lib
from symformer_jax.training.config import TrainConfig

# Side of the square matrices whose product stands for what a device can do, and how often it is tried.
MATRIX_SIZES = {"cpu": 1024}
LARGE_MATRIX, NUM_TRIES = 8192, 5


@functools.cache
def flops_per_example(config: TrainConfig, length: int) -> int:
  """Floating-point operations of a training step in its matrix products, for one example of `length` tokens.

  Three times those of the forward pass, as is the custom for model FLOP utilisation: what rematerialisation adds is
  not counted.
  """
  points, columns = config.points.num_points, config.model.vocabulary.num_variables + 1

  def some_examples() -> step_lib.Examples:
    ints, floats, flags = (jnp.zeros((1, length), t) for t in (jnp.int32, jnp.float32, jnp.bool_))
    return step_lib.Examples(
      jnp.zeros((1, points, columns), jnp.float32), jnp.zeros((1, points), jnp.bool_),
      Sequences(ints, floats, ints, floats, flags), floats)

  one = jnp.int32(1)
  traced = jax.make_jaxpr(lambda params, some: step_lib.compute_loss(
    params, some, losses.Counts(one, one), config=config, weight=jnp.float32(1), dropout_key=None))(
      symformer.abstract_params(config.model), jax.eval_shape(some_examples))
  return 3 * _product_flops(traced.jaxpr)


def _shape(operand: Any) -> tuple[int, ...]:
  """Of an operand that is an array, as those of a product are: its type does not say so."""
  return operand.aval.shape


def _product_flops(jaxpr: Jaxpr) -> int:
  total = 0
  for equation in jaxpr.eqns:
    if equation.primitive.name == "dot_general":
      (contracted, _), _ = equation.params["dimension_numbers"]
      shape, result = _shape(equation.invars[0]), _shape(equation.outvars[0])
      total += 2 * math.prod(result) * math.prod(shape[i] for i in contracted)
    for value in equation.params.values():
      inner = value.jaxpr if isinstance(value, ClosedJaxpr) else value
      if isinstance(inner, Jaxpr):
        total += _product_flops(inner) * equation.params.get("length", 1)
  return total


def measure_matrix_rate(dtype: str) -> float:
  """FLOP/s of a large matrix product on one device: the best of a few tries."""
  size = MATRIX_SIZES.get(jax.default_backend(), LARGE_MATRIX)
  device = jax.local_devices()[0]
  matrix = jax.device_put(jnp.ones((size, size), dtype), device)
  product = jax.jit(jnp.matmul).lower(matrix, matrix).compile()
  jax.block_until_ready(product(matrix, matrix))
  times = []
  for _ in range(NUM_TRIES):
    begin = time.perf_counter()
    jax.block_until_ready(product(matrix, matrix))
    times.append(time.perf_counter() - begin)
  return 2 * size**3 / min(times)


class Meter:
  """Rates since the last line of the log; wall-clock, so no part of a checkpoint."""

  def __init__(self, config: TrainConfig, device_rate: float):
    """Args: device_rate: FLOP/s of a large matrix product on one device."""
    self._config, self._peak = config, device_rate * jax.device_count()
    self.start()

  def start(self) -> None:
    """Begins a window."""
    self._since, self._examples, self._flops, self._wait_s = time.perf_counter(), 0, 0, 0.0

  def add(self, length: int, wait_s: float) -> None:
    """Counts a step on sequences of `length` tokens that waited so long for its batch."""
    self._examples += self._config.data.batch_size
    self._flops += self._config.data.batch_size * flops_per_example(self._config, length)
    self._wait_s += wait_s

  def pop(self) -> dict[str, float]:
    """Examples and model FLOPs per second, model FLOP utilisation and the share of time spent waiting for input.

    Utilisation is against the rate of a large matrix product that was measured when the run began.
    """
    seconds = time.perf_counter() - self._since
    rates = {
      "examples_per_s": self._examples / seconds, "gflops_per_s": self._flops / seconds / 1e9,
      "utilization": self._flops / seconds / self._peak, "input_wait": self._wait_s / seconds}
    self.start()
    return rates
