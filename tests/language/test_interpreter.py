"""The stack machine against SymPy evaluated by mpmath, and its two plans against each other."""

import hypothesis
from hypothesis import strategies
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy

from symformer_jax.language import constants, expression, interpreter, operators
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.vocabulary import END_ID, START_ID, Vocabulary

VOCAB = Vocabulary(2, has_requested=True)
LENGTH = 24
# Inside and outside of every operator's domain, away from poles, where no precision suffices.
POINTS = (-2.3, -1.7, -0.9, -0.4, 0.3, 0.8, 1.4, 2.6)


def encode(node, length=LENGTH):
  """`(ids [L], values [L], positions of constants)` of a tree."""
  ids, mantissas = expression.encode(node, VOCAB)
  values = np.array(mantissas) * np.array(VOCAB.constant_scale)[ids]
  padding = (0, length - len(ids))
  return np.pad(np.array(ids, np.int32), padding), np.pad(values, padding), np.flatnonzero(values)


def high_precision(node, x):
  """Value and derivatives by the constants [1 + C, N], from SymPy and mpmath; NaN where not finite and real."""
  numbers = iter(range(LENGTH))
  slots = []

  def convert(n):
    if n.args:
      return operators.BY_NAME[n.token].sympy_fn(sympy, *(convert(arg) for arg in n.args))
    if n.is_number and not constants.is_small_integer(n.value):
      slots.append((sympy.Symbol(f"c{next(numbers)}", real=True), n.value))
      return slots[-1][0]
    return sympy.Integer(int(n.value)) if n.is_number else sympy.Symbol(f"x{n.value}", real=True)

  with sympy.evaluate(False):
    expr = convert(node)
  names = [sympy.Symbol(f"x{i}", real=True) for i in range(x.shape[1])] + [s for s, _ in slots]
  forms = [expr, *(sympy.diff(expr, s) for s, _ in slots)]
  functions = [sympy.lambdify(names, form, "mpmath") for form in forms]

  def at(function, point):
    with mpmath.workdps(40):
      try:
        value = function(*map(mpmath.mpf, point), *(mpmath.mpf(v) for _, v in slots))
      except (ZeroDivisionError, ValueError):
        return np.nan
      is_real = abs(mpmath.im(value)) < mpmath.mpf(10) ** -30
      return float(mpmath.re(value)) if is_real and mpmath.isfinite(value) else np.nan

  return np.array([[at(f, point) for point in x] for f in functions])


NUM_SLOTS, NUM_POINTS = 8, 16


@jax.jit
def run_padded(ids, values, constants_by_slot, x, is_free):
  program = interpreter.translate(ids, values, vocab=VOCAB, num_slots=NUM_SLOTS, is_free=is_free)
  return interpreter.run(program, constants_by_slot, x.T)


def run_ids(ids, values, x, is_free=None):
  """Value and Jacobian of the machine in float64 [1 + C, N]; all tests share one compiled machine."""
  is_free = np.array(VOCAB.is_constant)[ids] if is_free is None else is_free
  slots = np.flatnonzero(is_free)
  padded = np.pad(x, ((0, NUM_POINTS - len(x)), (0, 0)), mode="edge")
  with jax.enable_x64(True):
    rows = run_padded(ids, values, np.pad(values[slots], (0, NUM_SLOTS - len(slots))), padded, is_free)
  return np.asarray(rows)[:1 + len(slots), :len(x)]


def run(node, x):
  return run_ids(*encode(node)[:2], x)


def assert_agrees(actual, expected, tolerance=1e-10):
  """Equal where finite, and finite at the same points; derivatives count where the value is finite."""
  is_finite = np.isfinite(expected[0])
  np.testing.assert_array_equal(np.isfinite(actual[0]), is_finite)
  known = is_finite & np.isfinite(expected)
  np.testing.assert_allclose(actual[known], expected[known], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("op", operators.MODEL_OPERATORS, ids=lambda op: op.name)
def test_every_operator_agrees_with_sympy_in_value_and_derivative(op):
  x = np.array([[a, b] for a in POINTS for b in (0.7, -1.3)])
  scaled = Node("*", (variable(0), number(0.37)))
  args = (scaled,) if op.arity == 1 else (scaled, Node("*", (variable(1), number(1.9))))
  assert_agrees(run(Node(op.name, args), x), high_precision(Node(op.name, args), x))


@pytest.mark.parametrize("token", ["tanh", "sinh", "cosh", "abs"])
def test_functions_on_request_agree_with_sympy_in_value_and_derivative(token):
  x = np.array([[a, 0.0] for a in POINTS])
  node = Node(token, (Node("*", (variable(0), number(0.37))),))
  assert_agrees(run(node, x), high_precision(node, x))


def test_kinks_and_steps_have_the_slopes_of_their_sides():
  """By hand: SymPy has distributions. At a kink half of each side, at a step none; nothing is NaN."""
  x = np.array([[-2.0, 0.0], [0.0, 0.0], [1.5, 1.5], [3.0, 4.0]])
  scaled = Node("*", (variable(0), number(0.5)))
  values = 0.5 * x[:, 0]
  y = x[:, 1]
  slopes = {"abs": np.sign(values), "sign": 0 * values, "min": (values < y) + 0.5 * (values == y),
            "max": (values > y) + 0.5 * (values == y)}
  for token, slope in slopes.items():
    node = Node(token, (scaled, variable(1))[: operators.BY_NAME[token].arity])
    expected = {"abs": np.abs(values), "sign": np.sign(values), "min": np.minimum(values, y),
                "max": np.maximum(values, y)}[token]
    np.testing.assert_array_equal(run(node, x), [expected, slope * x[:, 0]])


def test_a_program_of_a_models_vocabulary_compiles_nothing_for_other_operators():
  ids, values = encode(number(1))[:2]
  plain = interpreter.translate(ids, values, vocab=Vocabulary(2))
  requested = interpreter.translate(ids, values, vocab=VOCAB)
  assert plain.requested is None and requested.requested is not None
  texts = [str(jax.make_jaxpr(lambda p: interpreter.run(p, jnp.zeros(0), jnp.ones((2, 3))))(program))
           for program in (plain, requested)]
  assert ["tanh" in text for text in texts] == [False, True]


@pytest.mark.parametrize("exponent", [4.0, -3.0, 5.0, 2.5])
def test_powers_of_negative_bases_are_real_for_integer_exponents_only(exponent):
  node = Node("pow", (Node("*", (variable(0), number(0.9))), number(exponent)))
  x = np.array([[a, 0.0] for a in POINTS])
  assert_agrees(run(node, x), high_precision(node, x))


leaves = strategies.one_of(
  strategies.sampled_from([variable(0), variable(1)]),
  strategies.integers(-5, 5).map(number),
  strategies.floats(-5, 5).map(lambda v: number(round(v, 3) or 0.5)),
)
trees = strategies.recursive(
  leaves,
  lambda inner: strategies.one_of(
    *(strategies.tuples(*[inner] * op.arity).map(lambda args, name=op.name: Node(name, args))
      for op in operators.MODEL_OPERATORS)),
  max_leaves=6,
)


def is_tame(rows):
  """Whether float64 can be expected to agree: nothing huge, where a rounding of x would be seen."""
  finite = rows[np.isfinite(rows)]
  return finite.size > 0 and np.abs(finite).max() < 1e4


@hypothesis.settings(max_examples=60)
@hypothesis.given(trees)
def test_random_formulas_agree_with_sympy(node):
  hypothesis.assume(len(list(expression.walk(node))) <= LENGTH)
  x = np.array([[0.31, 1.7], [1.9, 0.45], [2.7, 3.3]])
  expected = high_precision(node, x)
  hypothesis.assume(is_tame(expected))
  actual = run(node, x)
  # SymPy's own evaluation may pass through a complex number or a removable pole; then only our value is compared.
  known = np.isfinite(expected) & np.isfinite(actual)
  np.testing.assert_allclose(actual[known], expected[known], rtol=1e-7, atol=1e-7)
  hypothesis.target(float(known.mean()))


def batch(num=40, seed=0):
  """Formulas of mixed length with an undefined one among them; `(ids, values, x [K, N, 2])`."""
  rng = np.random.default_rng(seed)
  names = [op.name for op in operators.MODEL_OPERATORS]

  def tree(size):
    if size == 0:
      return variable(int(rng.integers(2))) if rng.random() < 0.5 else number(rng.uniform(-3, 3))
    op = operators.BY_NAME[names[rng.integers(len(names))]]
    return Node(op.name, tuple(tree((size - 1) // op.arity) for _ in range(op.arity)))

  undefined = Node("ln", (Node("neg", (Node("pow2", (variable(0),)),)),))
  nodes = [undefined, *(tree(int(n)) for n in rng.integers(0, 7, num))]
  coded = [encode(n, length=40)[:2] for n in nodes]
  ids, values = np.stack([c[0] for c in coded]), np.stack([c[1] for c in coded])
  return ids, values, rng.uniform(-3, 3, (len(nodes), 17, 2))


def test_plans_agree_in_float64_to_the_last_digits():
  ids, values, x = batch()
  with jax.enable_x64(True):
    evaluate = jax.jit(interpreter.evaluate_many, static_argnames=("vocab", "plan"))
    loop, vmap = (np.asarray(evaluate(ids, values, x, vocab=VOCAB, plan=plan)) for plan in ("loop", "vmap"))
  np.testing.assert_array_equal(np.isfinite(loop), np.isfinite(vmap))
  assert not np.isfinite(loop[0]).any() and np.isfinite(loop).mean() > 0.3
  finite = np.isfinite(loop)
  np.testing.assert_allclose(loop[finite], vmap[finite], rtol=1e-12)


def test_unknown_plan_is_refused():
  ids, values, x = batch(2)
  with pytest.raises(ValueError, match="unknown plan 'fast': expected 'loop' or 'vmap'"):
    interpreter.evaluate_many(ids, values, x, vocab=VOCAB, plan="fast")


def test_start_and_end_tokens_change_nothing():
  ids, values, _ = encode(Node("+", (variable(0), number(2.5))))
  framed = np.concatenate([[START_ID], ids[:3], [END_ID], ids[5:]]).astype(np.int32)
  shifted = np.concatenate([[0.0], values[:3], [0.0], values[5:]])
  x = np.array([[1.0, 0.0], [2.0, 0.0]])
  np.testing.assert_array_equal(run_ids(framed, shifted, x), [[3.5, 4.5], [1.0, 1.0]])


def test_freed_integers_take_their_value_from_outside():
  ids, values, _ = encode(Node("*", (number(3), variable(0))))  # no constant token
  is_free = ids == VOCAB.zero_id + 3
  given = np.where(is_free, 3.5, values)
  x = np.array([[2.0, 0.0]])
  np.testing.assert_array_equal(run_ids(ids, given, x), [[6.0]])
  np.testing.assert_array_equal(run_ids(ids, given, x, is_free), [[7.0], [2.0]])


def test_evaluate_differentiates_in_reverse_to_the_jacobian_of_forward_mode():
  node = Node("*", (number(1.5), Node("sin", (Node("*", (number(0.6), variable(0))),))))
  ids, values, slots = encode(node)
  x = np.array([[0.3, 0], [1.1, 0], [-2.0, 0]])
  with jax.enable_x64(True):
    by_reverse = jax.jit(jax.jacrev(lambda v: interpreter.evaluate(ids, v, x, vocab=VOCAB)))(values)
  np.testing.assert_allclose(by_reverse[:, slots].T, run(node, x)[1:], rtol=1e-14)


def test_an_infinite_slope_leaves_constants_that_do_not_pass_it_alone():
  # c * sqrt(x0) at 0: the slope of the root is infinite, but the derivative by c is 0.
  node = Node("*", (number(2.5), Node("sqrt", (variable(0),))))
  np.testing.assert_array_equal(run(node, np.array([[0.0, 0.0], [4.0, 0.0]])), [[0.0, 5.0], [0.0, 2.0]])


def test_exponents_are_found_in_nested_powers():
  inner = Node("pow", (Node("+", (variable(0), number(1.5))), number(2.5)))
  node = Node("pow", (Node("*", (number(0.7), inner)), Node("+", (number(3.5), variable(1)))))
  ids, values, _ = encode(Node("+", (node, Node("pow", (variable(0), number(4.5))))))
  program = interpreter.translate(ids, values, vocab=VOCAB)
  np.testing.assert_array_equal(values[np.asarray(program.is_exponent)], [2.5, 4.5])


def test_constant_values_join_mantissa_and_exponent():
  ids = jnp.asarray([VOCAB.ids["C3"], VOCAB.ids["C-2"], VOCAB.ids["x0"]])
  np.testing.assert_allclose(
    interpreter.constant_values(ids, jnp.asarray([0.25, -0.5, 0.9]), VOCAB), [250.0, -0.005, 0.0], rtol=1e-6)


def test_whole_exponents_stay_whole_in_float32():
  """x ** n for x < 0 is NaN when n is off by one unit in the last place."""
  vocab = Vocabulary(1)
  for n in range(6, 1000):
    ids, mantissas = expression.encode(number(n), vocab)
    value = interpreter.constant_values(jnp.array(ids), jnp.array(mantissas, jnp.float32), vocab)
    assert float(value[0]) == n
  # What is not whole is left alone, and the slope is that of the product.
  ids, mantissas = jnp.array([vocab.ids["C1"]]), jnp.array([0.60001], jnp.float32)
  assert float(interpreter.constant_values(ids, mantissas, vocab)[0]) == pytest.approx(6.0001, abs=1e-6)
  slope = jax.grad(lambda m: interpreter.constant_values(ids, m, vocab)[0])(jnp.array([0.6], jnp.float32))
  assert float(slope[0]) == 10


def test_free_tokens_beyond_the_slots_keep_their_numbers():
  ids, _, _ = encode(expression.chain("+", [Node("*", (number(3), variable(0))), number(4)]))
  is_number = np.isin(ids, [VOCAB.zero_id + 3, VOCAB.zero_id + 4])
  values = np.zeros(LENGTH)
  values[is_number] = (3.5, 4.5)
  x = np.array([[1.0, 0.0], [2.0, 0.0]])
  program = interpreter.translate(ids, values, vocab=VOCAB, is_free=is_number, num_slots=1)
  found = interpreter.run(program, jnp.asarray([7.0]), jnp.asarray(x.T))
  np.testing.assert_allclose(found, [7 * x[:, 0] + 4.5, x[:, 0]])  # the value, and the slope of the one slot


@pytest.mark.parametrize(("length", "num_rows"), [(1, 2), (2, 2), (5, 4), (6, 4), (24, 13)])
def test_the_stack_has_a_row_for_each_operand_that_can_wait_and_one_to_look_at(monkeypatch, length, num_rows):
  """x0 + (x0 + (x0 + ...)) has (L + 1) / 2 operands waiting when its first sum is made: it is read backwards."""
  shapes, number_of = [], VOCAB.ids["2"]
  program = interpreter.translate(jnp.full(length, number_of), jnp.zeros(length), vocab=VOCAB)
  monkeypatch.setattr(jax.lax, "fori_loop", lambda first, last, step, stack: shapes.append(stack.shape) or stack)
  interpreter.run(program, jnp.zeros(3), jnp.zeros((2, 7)))
  assert shapes == [(num_rows, 1 + 3, 7)]
