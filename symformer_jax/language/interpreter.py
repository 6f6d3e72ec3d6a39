"""Evaluates prefix programs on points: one stack machine, two execution plans.

The program is read from its last token to its first. Operands push a row of N values, an operator replaces its
arguments by its result; the first token leaves the answer on the bottom of the stack. The machine is written
for one program. `evaluate_many` maps it over programs by the plan that suits the platform: a loop with a
real branch per token on CPU (10x faster there), `vmap` with selects on accelerators.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.language import operators, vocabulary as vocabulary_lib

_NOOP, _NUMBER, _VARIABLE, _FIRST_OPERATOR = 0, 1, 2, 3


@functools.cache
def opcode_table(vocab: vocabulary_lib.Vocabulary) -> tuple[np.ndarray, np.ndarray]:
  """Opcode and operand of each token id.

  Returns:
    `(opcodes [V], operands [V])`, int32: the operand is the integer's value or the variable's column.
  """
  names = [op.name for op in operators.MODEL_OPERATORS]
  opcodes, operands = np.zeros(vocab.size, np.int32), np.zeros(vocab.size, np.int32)
  for i, token in enumerate(vocab.tokens):
    if token in names:
      opcodes[i] = _FIRST_OPERATOR + names.index(token)
    elif i >= vocab.first_variable_id:
      opcodes[i], operands[i] = _VARIABLE, i - vocab.first_variable_id
    elif vocab.arity[i] == 0:
      opcodes[i] = _NUMBER
      operands[i] = 0 if vocab.is_constant[i] else int(token)
  return opcodes, operands


def constant_values(ids: jax.Array, mantissas: jax.Array, vocab: vocabulary_lib.Vocabulary) -> jax.Array:
  """Turns the model's constants into numbers.

  Args:
    ids: tokens [..., L]; mantissas: c_m (or raw values in the base encoding) [..., L], read at constant tokens.
  Returns:
    values [..., L]: c_m * 10**c_e at constants, 0 elsewhere.
  """
  scale = jnp.asarray(np.asarray(vocab.constant_scale), mantissas.dtype)[ids]
  return jnp.where(scale != 0, mantissas * scale, 0)


def _branches():
  """One function `(stack [S, N], top, number, column [N]) -> (stack, top)` per opcode; `top` is the free row."""
  def push(stack, top, row):
    return jax.lax.dynamic_update_index_in_dim(stack, row, top, 0), top + 1

  def noop(stack, top, number, column):
    return stack, top

  def push_number(stack, top, number, column):
    return push(stack, top, jnp.broadcast_to(number, column.shape))

  def push_variable(stack, top, number, column):
    return push(stack, top, column)

  def unary(fn):
    def branch(stack, top, number, column):
      row = jax.lax.dynamic_index_in_dim(stack, top - 1, 0, keepdims=False)
      return jax.lax.dynamic_update_index_in_dim(stack, fn(row), top - 1, 0), top
    return branch

  def binary(fn):
    def branch(stack, top, number, column):
      first = jax.lax.dynamic_index_in_dim(stack, top - 1, 0, keepdims=False)
      second = jax.lax.dynamic_index_in_dim(stack, top - 2, 0, keepdims=False)
      return jax.lax.dynamic_update_index_in_dim(stack, fn(first, second), top - 2, 0), top - 1
    return branch

  by_arity = {1: unary, 2: binary}
  return [noop, push_number, push_variable, *(by_arity[op.arity](op.jnp_fn) for op in operators.MODEL_OPERATORS)]


def evaluate(ids: jax.Array, values: jax.Array, x: jax.Array, *, vocab: vocabulary_lib.Vocabulary) -> jax.Array:
  """Evaluates one formula on N points; differentiable in `values` and `x`, forward and reverse.

  Args:
    ids: a valid prefix expression [L], padded on the right; start and end tokens are skipped.
    values: numbers to stand at constant tokens [L] (see `constant_values`); ignored elsewhere.
    x: points [N, D], in the formula's units, D at least the vocabulary's number of variables.
    vocab: static.
  Returns:
    y [N], in the dtype of `x`; NaN or infinite where the formula is undefined: nothing is hidden.
  """
  opcodes, operands = (jnp.asarray(t) for t in opcode_table(vocab))
  length = ids.shape[0]
  numbers = jnp.where(jnp.asarray(vocab.is_constant)[ids], values, operands[ids]).astype(x.dtype)  # [L]
  columns = x.T  # [D, N]
  branches = _branches()

  def step(carry, token):
    stack, top = carry
    token_id, number = token
    opcode = opcodes[token_id]
    column = columns[jnp.where(opcode == _VARIABLE, operands[token_id], 0)]
    return jax.lax.switch(opcode, branches, stack, top, number, column), None

  # A prefix expression of L tokens never has more than (L + 1) / 2 operands waiting.
  stack = jnp.zeros(((length + 1) // 2 + 1, x.shape[0]), x.dtype)
  (stack, _), _ = jax.lax.scan(step, (stack, jnp.int32(0)), (ids, numbers), reverse=True)
  return stack[0]


def default_plan() -> str:
  """`loop` on CPU, `vmap` elsewhere: measured in docs/design.md, decision 2."""
  return "loop" if jax.default_backend() == "cpu" else "vmap"


def evaluate_many(
  ids: jax.Array, values: jax.Array, x: jax.Array, *, vocab: vocabulary_lib.Vocabulary, plan: str | None = None
) -> jax.Array:
  """Evaluates K formulas, each on points of its own.

  Args:
    ids: tokens [K, L]; values: [K, L]; x: points [K, N, D].
    vocab: static.
    plan: `loop`, `vmap` or None for the platform's.
  Returns:
    y [K, N].
  """
  plan = plan or default_plan()
  one = functools.partial(evaluate, vocab=vocab)
  if plan == "vmap":
    return jax.vmap(one)(ids, values, x)
  if plan == "loop":
    return jax.lax.map(lambda args: one(*args), (ids, values, x))
  raise ValueError(f"unknown plan {plan!r}: expected 'loop' or 'vmap'")
