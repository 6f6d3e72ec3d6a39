"""The mesh and the one table that says how every parameter is laid out on it."""

import re
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

from symformer_jax.errors import InputError
from symformer_jax.training.config import MeshConfig

AXES = ("data", "fsdp", "tensor")

# First match wins. Matrices that widen are cut along their output, those that narrow along their input, so that a
# tensor-parallel block needs one all-reduce; what is left over is cut along fsdp.
RULES: tuple[tuple[str, P], ...] = (
  (r"(query|key|value)/kernel$", P("fsdp", "tensor")),
  (r"attention/out/kernel$", P("tensor", "fsdp")),
  (r"inner/kernel$", P("fsdp", "tensor")),
  (r"outer/kernel$", P("tensor", "fsdp")),
  (r".*", P()),
)


def make_mesh(config: MeshConfig) -> Mesh:
  """The mesh ('data', 'fsdp', 'tensor') over all devices."""
  count = jax.device_count()
  fixed = config.fsdp * config.tensor
  data = count // fixed if config.data == -1 else config.data
  if data * fixed > count or data < 1:
    raise InputError(f"a mesh of {config} needs more than the {count} devices there are")
  devices = jax.devices()[: data * fixed]
  return jax.make_mesh((data, config.fsdp, config.tensor), AXES, axis_types=(AxisType.Auto,) * 3, devices=devices)


def check_batch(mesh: Mesh, batch_size: int) -> None:
  """Refuses a batch that cannot be cut evenly: an InputError."""
  num_parts = mesh.shape["data"] * mesh.shape["fsdp"]
  if batch_size % num_parts:
    raise InputError(f"data.batch_size must be a multiple of the {num_parts} devices of the mesh's axes data and fsdp, "
                     f"got {batch_size}")


def spec_of(path: tuple, leaf: Any, mesh: Mesh) -> P:
  """The rule of a parameter or of the optimiser state that mirrors it; axes that do not divide are left whole."""
  name = "/".join(str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path)
  spec = next(spec for pattern, spec in RULES if re.search(pattern, name))
  if len(spec) > getattr(leaf, "ndim", 0):
    return P()
  return P(*(axis if axis and leaf.shape[i] % mesh.shape[axis] == 0 else None for i, axis in enumerate(spec)))


def state_sharding(state: Any, mesh: Mesh) -> Any:
  """NamedShardings of a train state (arrays or their shapes), leaf by leaf."""
  return jax.tree_util.tree_map_with_path(lambda path, leaf: NamedSharding(mesh, spec_of(path, leaf, mesh)), state)


def layout_in_use(params: Any, mesh: Mesh) -> Any:
  """NamedShardings of parameters while a step computes with them: whole along fsdp, cut along tensor alone.

  Without this XLA may keep the matrices cut and exchange activations instead (docs/results/training_speed.md).
  """
  def of(path: tuple, leaf: Any) -> NamedSharding:
    kept = (axis if axis == "tensor" else None for axis in spec_of(path, leaf, mesh))
    return NamedSharding(mesh, P(*kept))
  return jax.tree_util.tree_map_with_path(of, params)


def batch_sharding(mesh: Mesh) -> NamedSharding:
  """Batches are cut along data and fsdp together."""
  return NamedSharding(mesh, P(("data", "fsdp")))
