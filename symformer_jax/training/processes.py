"""Several hosts in one run: their start, their shares of a batch, and what they have to agree on.

Every host runs the same program; with one host all of this comes down to `jax.device_put`.
"""

import re
from typing import Any

import jax
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
import numpy as np

from symformer_jax.data.pipeline import Batch
from symformer_jax.errors import InputError

# Of TCP; of a larger one the hosts would wait for each other for five minutes.
_LARGEST_PORT = 65535


def start(*, coordinator: str | None, num_processes: int | None, process_id: int | None) -> None:
  """Joins the hosts of a run; call it before anything else touches a device.

  Args:
    coordinator: `HOST:PORT` of process 0; None with the others None takes all three from Slurm, a TPU pod, GKE or
      Open MPI, as `jax.distributed` knows them.
  Raises:
    InputError: for a coordinator without a port, a process beyond the last, when the cluster cannot be told, or the
      other processes do not come.
  """
  if coordinator is not None:
    port = re.fullmatch(r".+:([0-9]{1,5})", coordinator)
    if not port or not 1 <= int(port[1]) <= _LARGEST_PORT:
      raise InputError(f"--coordinator: expected HOST:PORT of process 0, got {coordinator!r}")
  if num_processes is not None and process_id is not None and process_id >= num_processes:
    raise InputError(f"--process_id: expected 0 to {num_processes - 1} with --num_processes={num_processes}, got "
                     f"{process_id}")
  try:
    jax.distributed.initialize(
      coordinator_address=coordinator, num_processes=num_processes, process_id=process_id)
  except (RuntimeError, ValueError) as error:
    raise InputError(
      f"the processes of the run do not find each other ({str(error).splitlines()[0]}); give --coordinator, "
      "--num_processes and --process_id where no cluster is detected") from None


def is_first() -> bool:
  """Whether this process writes logs and curves."""
  return jax.process_index() == 0


def agree(batch: Batch, wants_stop: bool) -> tuple[Batch, bool]:
  """Brings this host's rows to the width of the widest host's, and its wish to stop to all.

  Returns:
    The rows, and whether any host wants to stop after this step.
  """
  if jax.process_count() == 1:
    return batch, wants_stop
  # One small exchange a step; it also keeps hosts from running ahead of each other.
  width, stop = multihost_utils.process_allgather(np.array([batch.ids.shape[1], wants_stop], np.int32)).max(axis=0)
  return batch.widened(int(width)), bool(stop)


def to_devices(batch: Batch, sharding: NamedSharding) -> Batch:
  """This host's rows of a batch as part of arrays over all devices."""
  if jax.process_count() == 1:
    return jax.device_put(batch, sharding)
  return jax.tree.map(lambda rows: jax.make_array_from_process_local_data(sharding, rows), batch)


def share_out(batch: Batch, sharding: NamedSharding) -> Batch:
  """A batch that every host holds whole, as arrays over all devices."""
  if jax.process_count() == 1:
    return jax.device_put(batch, sharding)
  return jax.tree.map(lambda a: jax.make_array_from_callback(a.shape, sharding, lambda index: a[index]), batch)


def gather(tree: Any) -> Any:
  """Arrays spread over devices and hosts as NumPy arrays, whole, on every host."""
  return jax.device_get(tree) if jax.process_count() == 1 else multihost_utils.process_allgather(tree, tiled=True)
