"""Trees as functions of JAX and torch, closures over the operator table (NumPy: `expression.evaluate`)."""

from collections.abc import Callable
from typing import Any

from symformer_jax.errors import InputError
from symformer_jax.language import operators
from symformer_jax.language.expression import VARIABLE, Node


def jax_function(node: Node) -> Callable[..., Any]:
  """From X [N, D] to y [N], in the precision of X; differentiable, and may be jitted and mapped."""
  import jax.numpy as jnp

  def value(n: Node, x: Any) -> Any:
    if n.args:
      return operators.BY_NAME[n.token].jnp_fn(*(value(arg, x) for arg in n.args))
    return x[:, n.value] if n.token == VARIABLE else jnp.asarray(n.value, x.dtype)

  def function(X: Any) -> Any:
    X = jnp.asarray(X)
    X = X.astype(jnp.result_type(X, jnp.float32))
    return jnp.broadcast_to(value(node, X), X.shape[:1])

  return function


def torch_function(node: Node) -> Callable[..., Any]:
  """From a tensor X [N, D] to y [N], in its precision and on its device; differentiable.

  Raises:
    InputError: where torch is not installed.
  """
  try:
    import torch
  except ImportError:
    raise InputError("torch is not installed: pip install '.[torch]'") from None

  def value(n: Node, x: Any) -> Any:
    if n.args:
      return operators.BY_NAME[n.token].torch_fn(torch, *(value(arg, x) for arg in n.args))
    return x[:, n.value] if n.token == VARIABLE else torch.as_tensor(n.value, dtype=x.dtype, device=x.device)

  def function(X: Any) -> Any:
    X = torch.as_tensor(X)
    X = X if X.is_floating_point() else X.to(torch.get_default_dtype())
    return torch.broadcast_to(value(node, X), X.shape[:1])

  return function
