"""Evaluates prefix programs on points: one stack machine, two execution plans, values with or without Jacobian.

The program is read from its last token to its first. Operands push a row of N values, an operator replaces its
arguments by its result; the first token leaves the answer on the bottom of the stack. With C constant slots every
row carries its C derivatives along (forward mode), so that value and Jacobian come out of one pass.

The machine is written for one program. `evaluate_many` maps it over programs by the plan that suits the platform:
a loop with a real branch per token on CPU (10x faster there), `vmap` with selects on accelerators.
"""

from collections.abc import Callable, Sequence
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.language import operators, vocabulary as vocabulary_lib
from symformer_jax.types import Array

_NOOP, _NUMBER, _VARIABLE, _FIRST_OPERATOR = 0, 1, 2, 3
# Those of models first: their opcodes are the same in every program.
_OPERATORS = (*operators.MODEL_OPERATORS, *operators.REQUESTED_OPERATORS)
_POW = _FIRST_OPERATOR + [op.name for op in operators.MODEL_OPERATORS].index("pow")


@functools.cache
def opcode_table(vocab: vocabulary_lib.Vocabulary) -> tuple[np.ndarray, np.ndarray]:
  """Opcode and operand of each token id.

  Returns:
    `(opcodes [V], operands [V])`, int32: the operand is the integer's value or the variable's column.
  """
  names = [op.name for op in _OPERATORS]
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
  return np.array([1, 0, 0, *(op.arity for op in _OPERATORS)], np.int32)


def constant_values(ids: Array, mantissas: Array, vocab: vocabulary_lib.Vocabulary) -> jax.Array:
  """Turns the model's constants into numbers.

  Args:
    ids: tokens [..., L]; mantissas: c_m (or raw values in the base encoding) [..., L], read at constant tokens.
  Returns:
    values [..., L]: c_m * 10**c_e at constants, 0 elsewhere; whole numbers come out whole.
  """
  scale = jnp.asarray(np.asarray(vocab.constant_scale), mantissas.dtype)[ids]
  values = jnp.where(scale != 0, mantissas * scale, 0)
  # 0.15f * 100 is not 15 in float32, and x ** 15.000001 is NaN for x < 0. The gradient passes as if unrounded.
  nearest = jnp.round(values)
  is_whole = jnp.abs(values - nearest) <= 2 * jnp.finfo(values.dtype).eps * jnp.abs(values)
  return values + jax.lax.stop_gradient(jnp.where(is_whole, nearest - values, 0))


class Program(NamedTuple):
  """Formulas in the machine's own terms; leading axes are batch axes.

  Attributes:
    opcodes: what to do at each token [L], int32; 0 does nothing.
    columns: the variable's column at variable tokens [L], int32, 0 elsewhere.
    numbers: the number at numeric tokens [L], 0 elsewhere.
    slots: the constant slot that overrides the number [L], int32; -1 for none.
    rows: the stack's row for each token's result [L], int32: where it lies is known before the program runs.
    is_exponent: numeric tokens that are the whole exponent of a `pow` [L].
    length: tokens up to the last that does something, int32 scalar.
    requested: 0 where operators on request may stand in the program; None, as of most, where they may not: then no code
      is compiled for them.
  """

  opcodes: jax.Array
  columns: jax.Array
  numbers: jax.Array
  slots: jax.Array
  rows: jax.Array
  is_exponent: jax.Array
  length: jax.Array
  requested: jax.Array | None = None


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
  ids, values = jnp.asarray(ids), jnp.asarray(values)
  opcodes, operands = (jnp.asarray(t)[ids] for t in opcode_table(vocab))
  is_constant = jnp.asarray(np.asarray(vocab.is_constant))[ids]
  is_free = is_constant if is_free is None else is_free & (opcodes == _NUMBER)
  numbers = jnp.where(is_free | is_constant, values, operands.astype(values.dtype))
  rank = jnp.cumsum(is_free, axis=-1) - 1
  slots = jnp.where(is_free & (rank < num_slots), rank, -1)
  length = jnp.max(
    jnp.where(opcodes != _NOOP, jnp.broadcast_to(jnp.arange(1, ids.shape[-1] + 1), ids.shape), 0), axis=-1)
  pushed = 1 - jnp.asarray(_arity_table())[opcodes]
  rows = jnp.maximum(jax.lax.cumsum(pushed, axis=ids.ndim - 1, reverse=True) - 1, 0)
  columns = jnp.where(opcodes == _VARIABLE, operands, 0)
  is_exponent = _find_exponents(opcodes, rows)
  requested = jnp.zeros(ids.shape[:-1], jnp.int32) if vocab.has_requested else None
  return Program(
    opcodes, columns, numbers, slots.astype(jnp.int32), rows, is_exponent, length.astype(jnp.int32), requested)


def _find_exponents(opcodes: jax.Array, rows: jax.Array) -> jax.Array:
  """Numeric tokens [..., L] whose result is the second argument of a `pow`.

  A `pow` replaces its second argument in the same row; that argument is the next token to the right with that row.
  """
  length = opcodes.shape[-1]
  position = jnp.broadcast_to(jnp.arange(length), opcodes.shape)
  is_later = position[..., :, None] < position[..., None, :]  # [..., L, L]: the second right of the first
  is_same = (rows[..., :, None] == rows[..., None, :]) & is_later & (opcodes != _NOOP)[..., None, :]
  following = jnp.where(jnp.any(is_same, -1), jnp.argmax(is_same, -1), length)  # [..., L]
  is_target = (following[..., :, None] == position[..., None, :]) & (opcodes == _POW)[..., :, None]
  return jnp.any(is_target, axis=-2) & (opcodes == _NUMBER)


def _times(derivative: jax.Array, tangents: jax.Array) -> jax.Array:
  """The chain rule's product [C, N]; what does not depend on a constant stays so where the derivative is infinite."""
  return jnp.where(tangents == 0, 0, derivative[None] * tangents)


def _branches(table: Sequence[operators.Operator], *, has_derivatives: bool) -> list[Callable[..., jax.Array]]:
  """One function `(pair [2, N], number, column [N]) -> [1, N] or [3, N]` per opcode.

  The pair is what lies where the result will: an operator's last argument, and above it a binary operator's first. With
  derivatives those by the two follow the value. What a branch does does not depend on the number of constants: there is
  one for every operator, each is compiled, and on an accelerator all of them run.
  """
  def result(value: jax.Array, *derivatives: jax.Array) -> jax.Array:
    if not has_derivatives:
      return value[None]
    return jnp.stack([value, *derivatives, *[jnp.zeros_like(value)] * (2 - len(derivatives))])

  def noop(pair: jax.Array, number: jax.Array, column: jax.Array) -> jax.Array:
    return result(pair[0], jnp.ones_like(pair[0]))

  def push_number(pair: jax.Array, number: jax.Array, column: jax.Array) -> jax.Array:
    return result(jnp.broadcast_to(number, column.shape))

  def push_variable(pair: jax.Array, number: jax.Array, column: jax.Array) -> jax.Array:
    return result(column)

  def unary(fn: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def branch(pair: jax.Array, number: jax.Array, column: jax.Array) -> jax.Array:
      if not has_derivatives:
        return result(fn(pair[0]))
      return result(*jax.jvp(fn, (pair[0],), (jnp.ones_like(pair[0]),)))
    return branch

  def binary(fn: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def branch(pair: jax.Array, number: jax.Array, column: jax.Array) -> jax.Array:
      last, first = pair
      if not has_derivatives:
        return result(fn(first, last))
      value, push_forward = jax.linearize(fn, first, last)
      one, zero = jnp.ones_like(value), jnp.zeros_like(value)
      return result(value, push_forward(zero, one), push_forward(one, zero))
    return branch

  by_arity = {1: unary, 2: binary}
  return [noop, push_number, push_variable, *(by_arity[op.arity](op.jnp_fn) for op in table)]


def run(
  program: Program, constants: jax.Array, columns: jax.Array, *, num_tokens: jax.Array | None = None
) -> jax.Array:
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
  table = operators.MODEL_OPERATORS if program.requested is None else _OPERATORS
  branches, slot_range = _branches(table, has_derivatives=num_slots > 0), jnp.arange(num_slots)
  arities = jnp.asarray(_arity_table())
  last = (length if num_tokens is None else num_tokens) - 1

  def step(t: jax.Array, stack: jax.Array) -> jax.Array:
    i = last - t
    opcode, slot, row = program.opcodes[i], program.slots[i], program.rows[i]
    number = program.numbers[i].astype(dtype)
    if num_slots:
      number = jnp.where(slot >= 0, constants[jnp.maximum(slot, 0)], number)
    pair = jax.lax.dynamic_slice_in_dim(stack, row, 2)
    result = jax.lax.switch(opcode, branches, pair[:, 0], number, columns[program.columns[i]])
    if num_slots:
      seed = (slot_range == slot).astype(dtype)[:, None]
      # What lies in the pair and is no argument may be anything.
      by_last, by_first = (
        jnp.where(arities[opcode] > place, _times(result[1 + place], pair[place, 1:]), 0) for place in (0, 1))
      result = jnp.concatenate([result[:1], seed + by_last + by_first])
    return jax.lax.dynamic_update_index_in_dim(stack, result, row, 0)

  # A prefix expression of L tokens never has more than (L + 1) / 2 operands waiting; one row above is looked at.
  stack = jnp.zeros(((length + 1) // 2 + 1, 1 + num_slots, num_points), dtype)
  return jax.lax.fori_loop(0, length if num_tokens is None else num_tokens, step, stack)[0]


def with_constants(program: Program, constants: jax.Array) -> Program:
  """The program with the numbers of its slots [C] in it, which `run` then needs no more."""
  numbers = jnp.where(program.slots >= 0, constants[jnp.maximum(program.slots, 0)], program.numbers)
  return program._replace(numbers=numbers)


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
  x = jnp.asarray(x)
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
  plan = plan or default_plan()
  if plan not in ("loop", "vmap"):
    raise ValueError(f"unknown plan {plan!r}: expected 'loop' or 'vmap'")
  x = jnp.asarray(x)
  program = translate(ids, values, vocab=vocab, is_free=is_free)
  none = jnp.zeros((0,), x.dtype)
  if plan == "vmap":
    return jax.vmap(lambda p, points: run(p, none, points.T)[0])(program, x)
  return jax.lax.map(lambda a: run(a[0], none, a[1].T, num_tokens=a[0].length)[0], (program, x))
