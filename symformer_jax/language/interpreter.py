"""Evaluates prefix programs on points: one stack machine, two execution plans, values with or without Jacobian.

The program is read from its last token to its first. Operands push a row of N values, an operator replaces its
arguments by its result; the first token leaves the answer on the bottom of the stack. With C constant slots every
row carries its C derivatives along (forward mode), so that value and Jacobian come out of one pass.

The machine is written for one program. `evaluate_many` maps it over programs by the plan that suits the platform:
a loop with a real branch per token on CPU (10x faster there), `vmap` with selects on accelerators.
"""

import functools
from typing import NamedTuple

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


@functools.cache
def _arity_table() -> np.ndarray:
  """Rows each opcode takes from the stack; every opcode puts one back (a no-op the one it took)."""
  return np.array([1, 0, 0, *(op.arity for op in operators.MODEL_OPERATORS)], np.int32)


def constant_values(ids: jax.Array, mantissas: jax.Array, vocab: vocabulary_lib.Vocabulary) -> jax.Array:
  """Turns the model's constants into numbers.

  Args:
    ids: tokens [..., L]; mantissas: c_m (or raw values in the base encoding) [..., L], read at constant tokens.
  Returns:
    values [..., L]: c_m * 10**c_e at constants, 0 elsewhere.
  """
  scale = jnp.asarray(np.asarray(vocab.constant_scale), mantissas.dtype)[ids]
  return jnp.where(scale != 0, mantissas * scale, 0)


class Program(NamedTuple):
  """Formulas in the machine's own terms; leading axes are batch axes.

  Attributes:
    opcodes: what to do at each token [L], int32; 0 does nothing.
    columns: the variable's column at variable tokens [L], int32, 0 elsewhere.
    numbers: the number at numeric tokens [L], 0 elsewhere.
    slots: the constant slot that overrides the number [L], int32; -1 for none.
    length: tokens up to the last that does something, int32 scalar.
  """

  opcodes: jax.Array
  columns: jax.Array
  numbers: jax.Array
  slots: jax.Array
  length: jax.Array


def translate(
  ids: jax.Array, values: jax.Array, *, vocab: vocabulary_lib.Vocabulary, is_free: jax.Array | None = None,
  num_slots: int = 0,
) -> Program:
  """Looks tokens up once, before any loop over points, steps or programs.

  Args:
    ids: prefix expressions [..., L], padded on the right; start and end tokens are skipped.
    values: numbers to stand at constant tokens and wherever `is_free` is True [..., L].
    vocab: static.
    is_free: numeric tokens that take their number from `values` [..., L]; default: the constant tokens.
    num_slots: C (static); the first C of the free tokens get slots 0 ... C-1 in prefix order, the others keep
      their numbers.
  Returns:
    The programs, with the batch axes of `ids`.
  """
  opcodes, operands = (jnp.asarray(t)[ids] for t in opcode_table(vocab))
  is_constant = jnp.asarray(np.asarray(vocab.is_constant))[ids]
  is_free = is_constant if is_free is None else is_free & (opcodes == _NUMBER)
  numbers = jnp.where(is_free | is_constant, values, operands.astype(values.dtype))
  rank = jnp.cumsum(is_free, axis=-1) - 1
  slots = jnp.where(is_free & (rank < num_slots), rank, -1)
  length = jnp.max(jnp.where(opcodes != _NOOP, jnp.arange(1, ids.shape[-1] + 1), 0), axis=-1)
  return Program(opcodes, jnp.where(opcodes == _VARIABLE, operands, 0), numbers, slots.astype(jnp.int32),
                 length.astype(jnp.int32))


def _times(derivative: jax.Array, tangents: jax.Array) -> jax.Array:
  """The chain rule's product [C, N]; what does not depend on a constant stays so where the derivative is infinite."""
  return jnp.where(tangents == 0, 0, derivative * tangents)


def _branches(num_slots: int):
  """One function `(first, second, number, column, seed) -> row` per opcode; rows are [1 + C, N]."""
  def leaf(value, tangents):
    return jnp.concatenate([value[None], tangents]) if num_slots else value[None]

  def noop(first, second, number, column, seed):
    return first

  def push_number(first, second, number, column, seed):
    return leaf(jnp.broadcast_to(number, column.shape), jnp.broadcast_to(seed[:, None], (num_slots, *column.shape)))

  def push_variable(first, second, number, column, seed):
    return leaf(column, jnp.zeros((num_slots, *column.shape), column.dtype))

  def unary(fn):
    def branch(first, second, number, column, seed):
      if not num_slots:
        return fn(first)
      value, derivative = jax.jvp(fn, (first[0],), (jnp.ones_like(first[0]),))
      return leaf(value, _times(derivative, first[1:]))
    return branch

  def binary(fn):
    def branch(first, second, number, column, seed):
      if not num_slots:
        return fn(first, second)
      value, push_forward = jax.linearize(fn, first[0], second[0])
      one, zero = jnp.ones_like(value), jnp.zeros_like(value)
      return leaf(value, _times(push_forward(one, zero), first[1:]) + _times(push_forward(zero, one), second[1:]))
    return branch

  by_arity = {1: unary, 2: binary}
  return [noop, push_number, push_variable, *(by_arity[op.arity](op.jnp_fn) for op in operators.MODEL_OPERATORS)]


def run(program: Program, constants: jax.Array, columns: jax.Array, *, num_tokens: jax.Array | None = None) -> jax.Array:
  """Runs one program: values on the points and their derivatives by the constants.

  Args:
    program: one formula, see `translate`.
    constants: numbers of the slots [C]; C is the number of derivatives computed and may be 0.
    columns: points as columns [D, N].
    num_tokens: tokens to read, at least `program.length`; None reads all L, which can be differentiated in reverse.
  Returns:
    [1 + C, N], in the dtype of `columns`: y, then dy/dc.
  """
  num_slots, dtype = constants.shape[0], columns.dtype
  length, num_points = program.opcodes.shape[0], columns.shape[1]
  branches, arities = _branches(num_slots), jnp.asarray(_arity_table())
  slot_range = jnp.arange(num_slots)
  last = (length if num_tokens is None else num_tokens) - 1

  def step(t, carry):
    stack, top = carry
    i = last - t
    opcode, slot = program.opcodes[i], program.slots[i]
    number = program.numbers[i].astype(dtype)
    if num_slots:
      number = jnp.where(slot >= 0, constants[jnp.maximum(slot, 0)], number)
    seed = (slot_range == slot).astype(dtype)
    first, second = stack[jnp.maximum(top - 1, 0)], stack[jnp.maximum(top - 2, 0)]
    row = jax.lax.switch(opcode, branches, first, second, number, columns[program.columns[i]], seed)
    top = top - arities[opcode]
    stack = jax.lax.dynamic_update_index_in_dim(stack, row, jnp.maximum(top, 0), 0)
    return stack, top + 1

  # A prefix expression of L tokens never has more than (L + 1) / 2 operands waiting.
  stack = jnp.zeros(((length + 1) // 2, 1 + num_slots, num_points), dtype)
  stack, _ = jax.lax.fori_loop(0, length if num_tokens is None else num_tokens, step, (stack, jnp.int32(0)))
  return stack[0]


def evaluate(
  ids: jax.Array, values: jax.Array, x: jax.Array, *, vocab: vocabulary_lib.Vocabulary,
  is_free: jax.Array | None = None,
) -> jax.Array:
  """Evaluates one formula on N points; differentiable in `values` and `x`, forward and reverse.

  Args:
    ids: a valid prefix expression [L], padded on the right; start and end tokens are skipped.
    values: numbers to stand at constant tokens [L] (see `constant_values`) and where `is_free`; ignored elsewhere.
    x: points [N, D], in the formula's units, D at least the vocabulary's number of variables.
    vocab: static.
    is_free: numeric tokens that take their number from `values` [L]; default: the constant tokens.
  Returns:
    y [N], in the dtype of `x`; NaN or infinite where the formula is undefined: nothing is hidden.
  """
  program = translate(ids, values, vocab=vocab, is_free=is_free)
  return run(program, jnp.zeros((0,), x.dtype), x.T)[0]


def default_plan() -> str:
  """`loop` on CPU, `vmap` elsewhere: measured in docs/design.md, decision 2."""
  return "loop" if jax.default_backend() == "cpu" else "vmap"


def evaluate_many(
  ids: jax.Array, values: jax.Array, x: jax.Array, *, vocab: vocabulary_lib.Vocabulary, plan: str | None = None,
  is_free: jax.Array | None = None,
) -> jax.Array:
  """Evaluates K formulas, each on points of its own. `loop` reads only the tokens that are there.

  Args:
    ids: tokens [K, L]; values: [K, L]; x: points [K, N, D].
    vocab: static.
    plan: `loop`, `vmap` or None for the platform's. Only `vmap` can be differentiated in reverse.
    is_free: see `evaluate` [K, L].
  Returns:
    y [K, N].
  """
  program = translate(ids, values, vocab=vocab, is_free=is_free)
  none = jnp.zeros((0,), x.dtype)
  plan = plan or default_plan()
  if plan == "vmap":
    return jax.vmap(lambda p, points: run(p, none, points.T)[0])(program, x)
  if plan == "loop":
    return jax.lax.map(lambda a: run(a[0], none, a[1].T, num_tokens=a[0].length)[0], (program, x))
  raise ValueError(f"unknown plan {plan!r}: expected 'loop' or 'vmap'")
