"""Random trees: shapes against exact enumeration, operators and leaves against the paper's tables."""

from collections import Counter
import functools

import numpy as np
import pytest
import scipy.stats

from configs.data import bivariate, univariate
from data_gen import config as config_lib, trees
from symformer_jax.errors import InputError
from symformer_jax.language.expression import Node, number, variable, walk


@functools.cache
def all_shapes(num_operators: int) -> tuple[tuple[int, ...], ...]:
  """Every unary-binary tree with so many inner nodes, as arities in prefix order: built by recursion on subtrees."""
  if num_operators == 0:
    return ((0,),)
  found = [(1, *inner) for inner in all_shapes(num_operators - 1)]
  for left in range(num_operators):
    found += [(2, *a, *b) for a in all_shapes(left) for b in all_shapes(num_operators - 1 - left)]
  return tuple(found)


@pytest.mark.parametrize("num_operators", range(7))
def test_the_count_is_that_of_all_trees(num_operators):
  # 1, 2, 6, 22, 90, ...: the large Schroeder numbers (OEIS A006318).
  assert trees.count_subtrees(1, num_operators) == len(set(all_shapes(num_operators)))


@pytest.mark.parametrize("num_operators", [1, 2, 3])
def test_all_shapes_are_equally_likely(num_operators, rng):
  shapes = all_shapes(num_operators)
  drawn = Counter(tuple(trees.sample_shape(rng, num_operators)) for _ in range(4000))
  assert set(drawn) <= set(shapes)
  assert scipy.stats.chisquare([drawn[shape] for shape in shapes]).pvalue > 1e-3


@pytest.fixture(scope="module")
def sample() -> list[Node]:
  sampler = trees.TreeSampler(config_lib.from_dict(bivariate.get_config().to_dict()))
  rng = np.random.default_rng(7)
  return [sampler.sample(rng) for _ in range(4000)]


def assert_frequencies(drawn: Counter, weights: dict) -> None:
  total, weight = sum(drawn[key] for key in weights), sum(weights.values())
  expected = [total * w / weight for w in weights.values()]
  assert scipy.stats.chisquare([drawn[key] for key in weights], expected).pvalue > 1e-3


def test_operators_have_the_papers_probabilities(sample):
  tokens = Counter(n.token for tree in sample for n in walk(tree))
  # Typed from the paper's supplementary tables, not read from the config.
  assert_frequencies(tokens, {
    "pow2": 8, "pow3": 6, "pow4": 4, "pow5": 4, "pow6": 3, "inv": 8, "sqrt": 8, "exp": 2, "ln": 4, "sin": 4, "cos": 4,
    "tan": 2, "cot": 2, "asin": 1, "acos": 1, "atan": 1, "acot": 1,
  })
  assert_frequencies(tokens, {"+": 8, "-": 5, "*": 8, "/": 5, "pow": 2})


def test_leaves_have_the_papers_probabilities(sample):
  leaves = [n for tree in sample for n in walk(tree) if not n.args]
  def kind(leaf):
    if not leaf.is_number:
      return "variable"
    return "zero" if leaf.value == 0 else "integer" if leaf.value == int(leaf.value) else "float"
  assert_frequencies(Counter(map(kind, leaves)), {"variable": 20, "integer": 10, "float": 10, "zero": 1})
  assert_frequencies(Counter(n.value for n in leaves if n.token == "variable"), {0: 1, 1: 1})
  whole = Counter(n.value for n in leaves if kind(n) == "integer")
  assert_frequencies(whole, dict.fromkeys([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5], 1))
  floats = [n.value for n in leaves if kind(n) == "float"]
  assert scipy.stats.kstest(floats, scipy.stats.uniform(-5, 10).cdf).pvalue > 1e-3
  assert all(value == round(value, 4) for value in floats)


def test_the_number_of_operators_is_uniform_up_to_ten(sample):
  assert_frequencies(Counter(map(trees.count_operators, sample)), dict.fromkeys(range(1, 11), 1))


def test_values_of_a_constant_have_the_shape_of_the_points():
  columns = np.zeros((1, 3, 4))
  assert trees.values(number(2), columns).shape == (3, 4)
  np.testing.assert_array_equal(trees.values(Node("+", (variable(0), number(2))), columns), np.full((3, 4), 2.0))


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"max_operator": 3}, "config: unknown key 'max_operator', .*did you mean 'max_operators'"),
    ({"unary": {"sinn": 1.0}}, "a key of unary is 'sinn', expected one of .*did you mean 'sin'"),
    ({"binary": {"+": 0.0}}, "all probabilities of binary are zero"),
    ({"leaves": {"variable": -1.0}}, "probability leaves.variable must be finite and not negative, got -1.0"),
    ({"max_tokens": 0}, "max_tokens must lie between 1 and 10000, got 0"),
    ({"simplify": "quick"}, "simplify is 'quick', expected one of simplify, fast, rules"),
  ],
)
def test_an_unusable_config_says_what_is_wrong(change, message):
  with pytest.raises(InputError, match=message):
    config_lib.from_dict({**univariate.get_config().to_dict(), **change})
