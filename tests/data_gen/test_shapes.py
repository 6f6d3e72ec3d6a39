"""The shape of a law does not depend on names, order, signs and coefficients; on all else it does."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from configs.data import laws as laws_config
from data_gen import config as config_lib, laws, shapes, simplify
from data_gen.exclusion import rename
from symformer_jax.language.expression import Node, chain, flatten, number
from symformer_jax.language.parser import parse

NAMES = ("x", "y", "z", "w", "v", "u", "t", "s", "r")
CONFIG = config_lib.from_dict(laws_config.get_config().to_dict())
LISTS = "symformer_jax/evaluation/problem_lists/"


def shape_of(text):
  return shapes.shape(simplify.simplify(parse(text, NAMES), "rules", digits=8))


def _shuffled(node: Node, rng: np.random.Generator) -> Node:
  """The tree with operands in another order and other numbers before its terms."""
  if node.token not in ("+", "*"):
    return node._replace(args=tuple(_shuffled(arg, rng) for arg in node.args))
  operands = [_shuffled(arg, rng) for arg in flatten(node, node.token)]
  if node.token == "*" and not any(arg.is_number for arg in operands):
    operands.append(number(float(rng.uniform(1.1, 3))))
  return chain(node.token, [operands[i] for i in rng.permutation(len(operands))])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_names_order_and_coefficients_make_no_difference(seed):
  rng = np.random.default_rng(seed)
  with np.errstate(all="ignore"):
    law = laws.LawSampler(CONFIG).sample(rng)
  if law is None:
    return
  renamed = rename(law.tree, tuple(int(i) for i in rng.permutation(9)))
  assert shapes.shape(_shuffled(renamed, rng)) == shapes.shape(law.tree)


@pytest.mark.parametrize(("first", "second"), [
  ("x*y/z", "3.7*v/w*s"),
  ("x*y + z*w", "0.1*s*y - 2*x*t"),
  ("x/sqrt(1 - y**2/z**2)", "5*z/sqrt(2.5 - 0.3*x**2/v**2)"),
  ("-x*cos(z)", "x*cos(y)"),
])
def test_the_same_law_in_other_units(first, second):
  assert shape_of(first) == shape_of(second)


@pytest.mark.parametrize(("first", "second"), [
  ("x*y/z", "x/(y*z)"),
  ("x**2*y", "x**3*y"),
  ("x**0.4*y", "x**0.6*y"),
  ("x*y + z*w", "x*y + x*z"),
  ("x*y + z*w", "x*y + z"),
  ("x*sin(y)", "y*sin(y)"),
  ("x + y", "x + y + 1"),
  ("exp(x)*y", "sin(x)*y"),
])
def test_other_laws_have_other_shapes(first, second):
  assert shape_of(first) != shape_of(second)


def test_every_law_of_the_lists_that_is_no_common_good_is_kept_out():
  problems = shapes.read_problems(f"{LISTS}feynman.csv,{LISTS}laws.csv", CONFIG)
  assert len(problems.names) > 100 and len(problems.by_shape) > 85
  assert problems.matches(simplify.simplify(parse("7*t*s*u/v", NAMES), "rules", digits=8))
  assert not problems.matches(simplify.simplify(parse("x*y*z", NAMES), "rules", digits=8))


@pytest.mark.parametrize(("text", "count"), [
  ("3*x", 0), ("x*y", 1), ("-2.5*x*y/z", 3), ("1 - x**2", 2), ("sin(2*x)", 1)])
def test_operators_are_counted_without_signs_and_coefficients(text, count):
  assert shapes.count_operators(simplify.simplify(parse(text, NAMES), "rules", digits=8)) == count
