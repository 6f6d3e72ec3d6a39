"""Training: examples/s against a large matrix product, input rate, the parts of a step; steps for other meshes.

`--config` names the configuration (default: `small`), whose values can be overridden; without config.data.dirs it is
fed the packed equations of the package. With `--devices=N` nothing is run: the sharded step is compiled for N
forced CPU devices, and its memory and its exchanges between devices are read from the compiled module.
"""

import collections
from collections.abc import Callable, Iterator, Sequence
import dataclasses
import re
import resource
import time
from typing import Any

from absl import flags
import jax
import jax.numpy as jnp
import numpy as np

from configs import small
from symformer_jax import configuration
from symformer_jax.commands import config_flag
from symformer_jax.data import pipeline
from symformer_jax.data.pipeline import Batch
from symformer_jax.evaluation import problems
from symformer_jax.training import loop, sharding, speed, step as step_lib
from symformer_jax.training.config import TrainConfig
from symformer_jax.training.optimizer import make_optimizer
from symformer_jax.training.state import init_state

NUM_STEPS, NUM_INPUT_BATCHES = 5, 100
# Where wall-clock time is shared with other work, rates per CPU second are compared, on a matrix of this side.
MATRIX_SIZE = 1024
BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
EXCHANGES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_EXCHANGE = re.compile(rf"= (?P<shapes>.*?) (?P<kind>{'|'.join(EXCHANGES)})(-start)?\(")
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")


def run() -> dict[str, Any]:
  """The figures as a dict; prints them."""
  chosen = flags.FLAGS["config"]
  values = config_flag.read(chosen) if chosen.value is not None else small.get_config().to_dict()
  config = configuration.build(TrainConfig, values)
  results = _compile_only(config) if flags.FLAGS.devices else _measure(config)
  for name, value in results.items():
    print(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
  return results


def _empty_batch(config: TrainConfig) -> Batch:
  """Shapes of the longest batch of a configuration."""
  size, length = config.data.batch_size, config.data.length_buckets[-1] - 1
  return jax.eval_shape(lambda: Batch(
    ids=jnp.zeros((size, length), jnp.int32), mantissas=jnp.zeros((size, length), jnp.float32),
    domains=jnp.zeros((size, config.model.vocabulary.num_variables, 2), jnp.float32)))


# --- compiled only ---------------------------------------------------------------------------------------------------


def _compile_only(config: TrainConfig) -> dict[str, Any]:
  """Memory per device and exchanges of the step on the configuration's mesh over all devices."""
  mesh = sharding.make_mesh(config.mesh)
  optimizer = make_optimizer(config)
  state = jax.eval_shape(lambda: init_state(config, optimizer))
  begin = time.process_time()
  train_step, _, _ = loop.jit_steps(config, optimizer, mesh, state)
  compiled = train_step.lower(state, _empty_batch(config)).compile()
  memory, text = compiled.memory_analysis(), compiled.as_text()
  assert memory is not None and text is not None, "the compiler for CPUs tells both"
  return {
    "mesh": dict(mesh.shape), "batch": config.data.batch_size, "compile_cpu_s": time.process_time() - begin,
    "state_mib_per_device": memory.argument_size_in_bytes / 2**20,
    "temporary_mib_per_device": memory.temp_size_in_bytes / 2**20, "exchanges": find_exchanges(text)}


def find_exchanges(text: str) -> dict[str, dict[str, float]]:
  """Exchanges between devices in a compiled module: of each kind how many, and MiB of results on each device.

  Those inside a loop count once.
  """
  found: dict[str, list[int]] = collections.defaultdict(list)
  for line in text.splitlines():
    if match := _EXCHANGE.search(line):
      found[match["kind"]].append(sum(
        BYTES.get(kind, 0) * int(np.prod([int(n) for n in sizes.split(",") if n], dtype=np.int64))
        for kind, sizes in _SHAPE.findall(match["shapes"])))
  return {kind: {"count": len(sizes), "mib": sum(sizes) / 2**20} for kind, sizes in sorted(found.items())}


# --- measured --------------------------------------------------------------------------------------------------------


def _measure(config: TrainConfig) -> dict[str, Any]:
  if not config.data.dirs:
    fresh = problems.FRESH_EQUATIONS[min(config.model.vocabulary.num_variables, 2)]
    # The packed equations are few and of the validation split: enough to measure, never to train on.
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, dirs=(str(fresh),)))
    split = "validation"
  else:
    split = "train"
  iterator = pipeline.make_iterator(
    config.data, 0, split=split, num_variables=config.model.vocabulary.num_variables)
  batches = [next(iterator) for _ in range(NUM_STEPS)]
  width = max(batch.ids.shape[1] for batch in batches)
  batches = [batch.widened(width) for batch in batches]
  rate = speed.measure_matrix_rate(config.compute_dtype)
  parts = _time_parts(config, batches)
  flops = speed.flops_per_example(config, width + 1)
  examples, examples_cpu = (config.data.batch_size / s for s in (parts["step"].wall, parts["step"].cpu))
  wait, wait_cpu = _time_input(iterator)
  matrix = jnp.ones((MATRIX_SIZE, MATRIX_SIZE), config.compute_dtype)
  product = _time(jax.jit(jnp.matmul).lower(matrix, matrix).compile(), [(matrix, matrix)] * NUM_STEPS)
  beside = {name: part.wall for name, part in parts.items() if name not in ("step", "gradient")}
  return {
    "batch": config.data.batch_size, "length": width + 1, "gflop_per_example": flops / 1e9,
    "examples_per_s": examples, "examples_per_cpu_s": examples_cpu,
    "gflops_per_s": examples * flops / 1e9, "matrix_gflops_per_s": rate / 1e9, "utilization": examples * flops / rate,
    "gflops_per_cpu_s": examples_cpu * flops / 1e9, "matrix_gflops_per_cpu_s": 2e-9 * MATRIX_SIZE**3 / product.cpu,
    "input_examples_per_s": config.data.batch_size / wait,
    "input_examples_per_cpu_s": config.data.batch_size / wait_cpu,
    "peak_mib": peak_mib(),
    "ms": {name: 1e3 * part.wall for name, part in parts.items()},
    "largest_part_beside_the_model": max(beside, key=lambda name: beside[name])}


@dataclasses.dataclass(frozen=True)
class _Seconds:
  """Least wall-clock time of a call, and least CPU time."""

  wall: float
  cpu: float


def _time(call: Callable[..., Any], arguments: Sequence[tuple]) -> _Seconds:
  """Over one call for each of the tuples of arguments, after a first one that is not counted."""
  jax.block_until_ready(call(*arguments[0]))
  wall, cpu = [], []
  for argument in arguments:
    begin, begin_cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(call(*argument))
    wall.append(time.perf_counter() - begin)
    cpu.append(time.process_time() - begin_cpu)
  return _Seconds(min(wall), min(cpu))


def _time_parts(config: TrainConfig, batches: list[Batch]) -> dict[str, _Seconds]:
  """A whole step, and its parts compiled each on its own: points, gradient of the model, update of the parameters."""
  optimizer = make_optimizer(config)
  state = jax.jit(lambda: init_state(config, optimizer))()
  step = jax.jit(step_lib.make_train_step(config, optimizer))
  draw = jax.jit(lambda batch: step_lib.prepare(jax.random.key(0), batch, config, config.points)[0])

  def loss(params: Any, examples: step_lib.Examples) -> jax.Array:
    counts = step_lib.count_targets(examples, config)
    return step_lib.compute_loss(
      params, examples, counts, config=config, weight=jnp.float32(1.0), dropout_key=jax.random.key(0))[0]

  gradient = jax.jit(jax.grad(loss))
  examples = draw(batches[0])
  grads = gradient(state.params, examples)
  update = jax.jit(optimizer.update)
  return {
    "step": _time(step, [(state, batch) for batch in batches]),
    "gradient": _time(gradient, [(state.params, examples)] * NUM_STEPS),
    "points": _time(draw, [(batch,) for batch in batches]),
    "update": _time(update, [(grads, state.opt_state, state.params)] * NUM_STEPS),
    "transfer": _time(jax.device_put, [(batch,) for batch in batches])}


def _time_input(iterator: Iterator[Batch]) -> tuple[float, float]:
  """Wall-clock and CPU seconds that the input needs for a batch."""
  begin, begin_cpu = time.perf_counter(), time.process_time()
  for _ in range(NUM_INPUT_BATCHES):
    next(iterator)
  return (time.perf_counter() - begin) / NUM_INPUT_BATCHES, (time.process_time() - begin_cpu) / NUM_INPUT_BATCHES


def peak_mib() -> float:
  """Most memory of the device, where it keeps count, else of the process."""
  stats = jax.local_devices()[0].memory_stats()
  if stats and "peak_bytes_in_use" in stats:
    return stats["peak_bytes_in_use"] / 2**20
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
