"""Parts of the generator, each where it just holds and where it just does not: no run, no process, no long formula."""

import collections
import contextlib
import dataclasses
import errno
import hashlib
import json
import math
import os
import re
import runpy
import signal
import sys
import threading
import time
import types

import numpy as np
import pytest
import sympy

from configs.data import bivariate, laws as laws_config, univariate
from data_gen import (
  benchmark,
  bloom,
  candidates,
  config as config_lib,
  defaults,
  domains,
  exclusion,
  filters,
  generate,
  inspect as inspect_lib,
  job as job_lib,
  laws,
  seen,
  shapes,
  simplify,
  stored,
  trees,
  workers,
  writer as writer_lib,
)
from data_gen.config import GeneratorConfig, LawsConfig
from symformer_jax import ranges
from symformer_jax.data import records
from symformer_jax.errors import DataError, ExpressionError, InputError
from symformer_jax.evaluation import problems
from symformer_jax.language import expression, operators, printing
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary

UNIVARIATE = config_lib.from_dict({**univariate.get_config().to_dict(), "simplify": "rules"})
BIVARIATE = config_lib.from_dict({**bivariate.get_config().to_dict(), "simplify": "rules"})
LAWS = config_lib.from_dict(laws_config.get_config().to_dict())
NAMES = ("x", "y", "z", "w")
X = variable(0)


def formula(text):
  return parse(text, NAMES)


# --- configurations ----------------------------------------------------------------------------------------------


def test_the_defaults_are_what_the_paper_says():
  """SymFormer, sec. 3.3: ten operators, integers to 5, |C| of 1e-10 to 1e10, fifty tokens, boxes to 5, |y| to 1e7."""
  config = dataclasses.replace(UNIVARIATE)
  paper = {"num_variables": 1, "max_operators": 10, "max_integer": 5, "max_float": 5.0, "float_decimals": 4,
           "num_points": 100, "num_tries": 4, "box_edge": 5.0, "max_abs_value": 1e7, "min_constant": 1e-10,
           "max_constant": 1e10, "max_tokens": 50}
  defaults = {field.name: field.default for field in dataclasses.fields(GeneratorConfig)}
  assert {name: defaults[name] for name in paper} == paper
  assert defaults["simplify"] == "simplify" and defaults["unique"] == "equation" and defaults["simplify_digits"] == 8
  # A quarter of a shard of 8192 is no block; 32 blocks of 256 are one. A candidate of five seconds is lost.
  assert defaults["shard_equations"] == 32 * records.BLOCK_EQUATIONS and defaults["time_limit_s"] == 5.0
  assert config == UNIVARIATE
  of_laws = {field.name: field.default for field in dataclasses.fields(LawsConfig)}
  assert (of_laws["centred"], of_laws["small_as_given"]) == (0.1, 0.3)


def test_every_number_of_a_config_has_its_range():
  assert set(config_lib.RANGES) == set(ranges.numbers_of(GeneratorConfig))
  assert set(LAWS._ranges()) == set(ranges.numbers_of(LawsConfig))
  for name, allowed in LAWS._ranges().items():
    kind = type(getattr(LAWS, name))
    for value in (-1, allowed.most * 2) if kind is int else (-1.0, allowed.most * 2, math.inf, math.nan):
      with pytest.raises(InputError, match=f"^config: {name} must (lie|be) .*, got "):
        dataclasses.replace(LAWS, **{name: kind(value)})
  for name in ("max_operators", "num_points", "box_edge", "time_limit_s"):
    kind = type(getattr(UNIVARIATE, name))
    dataclasses.replace(UNIVARIATE, **{name: kind(1)})
    with pytest.raises(InputError, match=f"^config: {name} must (lie|be) .*, got 0"):
      dataclasses.replace(UNIVARIATE, **{name: kind(0)})
  assert dataclasses.replace(UNIVARIATE, float_decimals=0, min_nesting=0).float_decimals == 0
  assert dataclasses.replace(LAWS, centred=0.0, small_as_given=1.0).centred == 0


@pytest.mark.parametrize(("change", "message"), [
  ({"unary": {"sinn": 1.0}}, "config: a key of unary is 'sinn', expected one of .*; did you mean 'sin'"),
  ({"unary": {"+": 1.0}}, "a key of unary"), ({"binary": {"sin": 1.0}}, "a key of binary"),
  ({"unary": {"tanh": 1.0}}, "a key of unary"),  # no model knows it
  ({"leaves": {"variable": -1.0}}, "probability leaves.variable must be finite and not negative, got -1"),
  ({"leaves": {"variable": math.inf}}, "must be finite"), ({"leaves": {"variable": 0.0}}, "leaves are zero"),
  ({"leaves": {"variable": 0.0, "integer": 1.0}}, "leaves.variable is 0: formulas without variables are constants"),
  ({"leaves": {"integer": 1.0}}, "leaves.variable is 0"),
  ({"name": "../other"}, "config: name is '../other', expected that of a folder"), ({"name": ""}, "name is ''"),
  ({"name": ".hidden"}, "name is '.hidden'"), ({"name": "a/b"}, "name is 'a/b'"), ({"name": "a" * 101}, "name is 'aa"),
  ({"leaves": {"variable": "1"}}, "config: probability leaves.variable: expected a value of type float, got '1'"),
  ({"leaves": 1.0}, "config: leaves: expected probabilities by name, got 1.0"),
  ({"max_operators": 101}, "config: max_operators must lie between 1 and 100, got 101"),
  ({"max_operators": 2.5}, "config: max_operators: expected a value of type int, got 2.5"),
  ({"num_variables": 10}, "config: num_variables must lie between 1 and 9, got 10"),  # 3**10 boxes
  ({"num_points": 2**13, "num_tries": 2**12}, "num_points times num_tries times num_variables must be at most 167772"),
  ({"min_constant": 2.0, "max_constant": 1.0}, "config: min_constant must be at most the 1 of max_constant, got 2"),
  ({"name": 3}, "config: name: expected a value of type str, got 3"), ({"kind": "law"}, "kind is 'law', expected"),
  ({"simplify": "fats"}, "simplify is 'fats', .*; did you mean 'fast'"), ({"unique": "x"}, "unique is 'x'"),
  ({"max_operator": 3}, "unknown key 'max_operator', .*did you mean 'max_operators'")])
def test_what_a_config_may_not_say(change, message):
  with pytest.raises(InputError, match=message):
    config_lib.from_dict({**univariate.get_config().to_dict(), **change})
  for weights in ({"variable": 1.0, "zero": 0.0}, {"variable": 0.5}):
    config_lib.from_dict({**univariate.get_config().to_dict(), "leaves": weights})
  most = config_lib.from_dict({
    **univariate.get_config().to_dict(), "max_operators": 100, "num_variables": 9, "name": "A-1.b_" + "a" * 94})
  shape = trees.sample_shape(np.random.default_rng(0), most.max_operators)
  assert sum(arity > 0 for arity in shape) == 100


def test_laws_have_tables_of_their_own():
  values = laws_config.get_config().to_dict()
  for change, message in (({"variables": {"10": 1.0}}, "a key of variables is '10'"),
                          ({"variables": {"0": 1.0}}, "a key of variables is '0'"),
                          ({"repeats": {"x": 1.0}}, "a key of repeats is 'x', expected a number such as 0 or 2"),
                          ({"repeats": {"3/2": 1.0}}, "a key of repeats is '3/2', expected a number such as 0 or 2"),
                          ({"repeats": {"999": 1.0}}, "a key of repeats is '999'"),
                          ({"exponents": {"1/0": 1.0}}, "a key of exponents is '1/0', expected a number such as -1 or"),
                          ({"sum_exponents": {"1e999999999": 1.0}}, "a key of sum_exponents is '1e999999999'"),
                          # These would be drawn for ever.
                          ({"exponents": {"-1": 1.0, "1": 0.0}}, "all probabilities of exponents above 0 are zero"),
                          ({"forms": {"sum": 1.0}}, "probabilities of forms for parts of a product are zero|of a sum"),
                          ({"forms": {"product": 1.0, "monomial": 1.0}}, "of forms for parts of a product are zero"),
                          ({"single_forms": {"sum": 1.0}}, "all probabilities of single_forms for parts of a sum are")):
    with pytest.raises(InputError, match=message):
      config_lib.from_dict({**values, **change})
  top = str(LAWS.num_variables)
  for good in ({"variables": {top: 1.0, "1": 1.0}}, {"exponents": {"-3/2": 1.0, "0.5": 1.0}}, {"num_variables": 26},
               {"forms": {"monomial": 1.0}, "single_forms": {"monomial": 1.0}}):
    assert config_lib.from_dict({**values, **good}).kind == "laws"


def test_a_config_is_a_file_of_python(tmp_path):
  (tmp_path / "c.txt").write_text("def get_config():\n  return 1\n")
  with pytest.raises(InputError, match="config must be a Python file, got .*c.txt"):
    config_lib.load_config(str(tmp_path / "c.txt"), {})


def test_what_a_config_raises_may_have_no_text(tmp_path):
  path = tmp_path / "c.py"
  path.write_text("class E(Exception):\n  def __str__(self):\n    raise OSError\ndef get_config():\n  raise E\n")
  with pytest.raises(InputError, match="^config .*c.py: E$"):
    config_lib.load_config(str(path), {})


def test_a_config_file_is_run_and_changed_where_that_is_asked_for(tmp_path):
  path = tmp_path / "c.py"
  path.write_text("from configs.data import univariate\ndef get_config():\n  return univariate.get_config()\n")
  changed = config_lib.load_config(str(path), {"simplify": "rules", "shard_equations": None})
  assert changed == dataclasses.replace(UNIVARIATE, shard_equations=changed.shard_equations)
  assert config_lib.load_config(str(path), {}).simplify == univariate.get_config().simplify


# --- trees -------------------------------------------------------------------------------------------------------


def test_unary_binary_trees_are_counted():
  """Motzkin-like: 1, 2, 6, 22, 90 trees of 0 ... 4 inner nodes, the large Schroeder numbers."""
  assert [trees.count_subtrees(1, n) for n in range(5)] == [1, 2, 6, 22, 90]
  assert trees.count_subtrees(0, 0) == 1 and trees.count_subtrees(0, 3) == 0


def test_the_last_of_cumulative_shares_is_taken_where_rounding_leaves_it_below_one():
  class Last:
    def random(self):
      return 1.0 - 1e-17
  arities = trees.sample_shape(Last(), 3)
  assert sum(arities) == len(arities) - 1 and sum(a > 0 for a in arities) == 3


@pytest.mark.parametrize(("breadth", "prefix"), [
  ([2, 1, 2, 0, 0, 0], [2, 1, 0, 2, 0, 0]), ([1, 2, 0, 0], [1, 2, 0, 0]), ([2, 0, 1, 0], [2, 0, 1, 0]),
  ([2, 2, 1, 0, 0, 0], [2, 2, 0, 0, 1, 0])])
def test_breadth_first_becomes_prefix_order(breadth, prefix):
  assert trees._to_prefix(breadth) == prefix


def test_a_weighted_choice_is_by_shares_in_the_order_of_names():
  class Fixed:
    def __init__(self, value):
      self.value = value

    def random(self):
      return self.value
  choice = trees.Choice({"c": 2.0, "a": 1.0, "b": 0.0, "d": 1.0})
  assert choice.names == ["a", "c", "d"] and choice.cumulative == [1, 3, 4]
  assert [choice.draw(Fixed(u)) for u in (0.0, 0.249, 0.25, 0.74, 0.75, 0.999)] == ["a", "a", "c", "c", "d", "d"]


def test_values_of_trees(rng):
  columns = rng.random((2, 7)) + 1
  np.testing.assert_allclose(trees.values(formula("sin(x)/y - x**y"), columns),
                             np.sin(columns[0]) / columns[1] - columns[0] ** columns[1], rtol=1e-12)
  constant = trees.values(formula("2.5"), columns)
  assert constant.shape == (7,) and (constant == 2.5).all()
  assert trees.values(formula("cos(2)"), np.ones((1, 2, 3))).shape == (2, 3)
  for op in operators.OPERATORS:
    with np.errstate(all="ignore"):
      constant = trees.values(Node(op.name, (number(0.5),) * op.arity), columns)
    assert constant.shape == (7,) and (constant == constant[0]).all(), op.name
  assert trees.count_operators(formula("sin(x)*y + 2")) == 3 and trees.count_operators(X) == 0


def test_leaves_have_the_sizes_of_their_config():
  def leaves(kind, **changes):
    sampler = trees.TreeSampler(dataclasses.replace(BIVARIATE, leaves={"variable": 1e-12, kind: 1.0}, **changes))
    draws = np.random.default_rng(0)
    return [sampler._leaf(draws) for _ in range(400)]
  whole = {leaf.value for leaf in leaves("integer")}
  assert whole == {*range(-5, 0), *range(1, 6)}
  signs = np.sign([leaf.value for leaf in leaves("integer")])
  assert 0.4 < np.mean(signs > 0) < 0.6
  floats = [leaf.value for leaf in leaves("float", max_float=3.0, float_decimals=1)]
  assert 2.9 <= max(floats) <= 3.0 and -3.0 <= min(floats) <= -2.9 and {round(f, 1) for f in floats} == set(floats)
  assert {leaf.value for leaf in leaves("zero")} == {0} and all(leaf.is_number for leaf in leaves("zero"))
  assert {leaf.value for leaf in leaves("variable")} == {0, 1}


def test_trees_have_one_to_the_most_operators():
  sampler = trees.TreeSampler(dataclasses.replace(UNIVARIATE, max_operators=3))
  draws = np.random.default_rng(0)
  sampled = [sampler.sample(draws) for _ in range(300)]
  for node in (node for tree in sampled for node in expression.walk(tree)):
    assert node.token in ({}, UNIVARIATE.unary, UNIVARIATE.binary)[len(node.args)] or not node.args
  counts = collections.Counter(map(trees.count_operators, sampled))
  assert set(counts) == {1, 2, 3} and min(counts.values()) > 70


# --- boxes, filters, problems ------------------------------------------------------------------------------------


def test_boxes_are_products_of_three_intervals_the_largest_first():
  found = domains.boxes(2, 5.0)
  sides = [tuple(map(tuple, box)) for box in found]
  assert len(set(sides)) == 9 and sides[0] == ((-5, 5), (-5, 5))
  sizes = [np.prod(box[:, 1] - box[:, 0]) for box in found]
  assert sizes == [100, 50, 50, 50, 50, 25, 25, 25, 25] and sides[1] == ((-5, 5), (0, 5))


def test_points_leave_out_the_end_at_zero():
  class Least:
    def random(self, shape):
      return np.zeros(shape)
  found = domains.draw_points(Least(), np.array([[0.0, 5], [-5, 0], [-5, 5]]), (2,))
  np.testing.assert_array_equal(found, [[5, 5], [-5, -5], [-5, -5]])

  class Half:
    def random(self, shape):
      return np.full(shape, 0.75)
  found = domains.draw_points(Half(), np.array([[0.0, 4], [-4, 0], [-4, 4]]), (1,))
  np.testing.assert_array_equal(found, [[1], [-1], [2]])


def test_one_finite_draw_of_several_is_taken(rng):
  config = dataclasses.replace(UNIVARIATE, num_points=3, num_tries=40)
  with np.errstate(all="ignore"):
    box, columns, y = domains.find_box(formula("sqrt(x + 1)"), rng, config)
    assert box.tolist() == [[-5, 5]] and (columns >= -1).all() and np.allclose(y, np.sqrt(columns[0] + 1))
    assert columns.shape == (1, 3) and y.shape == (3,)
    assert domains.find_box(formula("sqrt(-1 - x**2)"), rng, config) is None
    box, columns, y = domains.try_box(formula("sqrt(x + 1)"), np.array([[-3.0, 5.0]]), rng, config)
    assert columns.shape == (1, 3) and np.allclose(y, np.sqrt(columns[0] + 1)) and (columns <= 5).all()
    assert domains.try_box(formula("sqrt(x)"), np.array([[-3.0, -1.0]]), rng, config) is None
  _, wide, _ = domains.try_box(X, np.array([[2.0, 10.0]]), np.random.default_rng(0),
                               dataclasses.replace(config, num_points=1000))
  assert 2 <= wide.min() < 2.05 and 9.95 < wide.max() < 10


def test_filters_at_their_bounds():
  assert not filters.is_too_large(np.array([-1e7, 3.0]), UNIVARIATE)
  assert filters.is_too_large(np.array([np.nextafter(-1e7, -1e8), 3.0]), UNIVARIATE)
  assert filters.is_near_constant(np.array([1e6, 1e6 - 1.0]))
  assert not filters.is_near_constant(np.array([1e6, 1e6 - 1.01]))
  assert filters.is_near_constant(np.zeros(3)) and not filters.is_near_constant(np.array([0.0, 1e-300]))
  for constant, is_out in ((1e-10, False), (9e-11, True), (-1e10, False), (1.1e10, True), (3, False), (0.5, False)):
    assert filters.is_constant_out_of_range(Node("+", (X, number(constant))), UNIVARIATE) == is_out


def test_straight_lines_are_those_whose_bend_is_rounding(rng):
  columns = rng.uniform(-3, 3, (2, 100))
  plane = 2 * columns[0] - 3 * columns[1] + 7
  assert filters.is_near_linear(columns, plane)
  bend = columns[0] ** 2 - np.mean(columns[0] ** 2)
  bend /= np.max(np.abs(bend))
  scale = np.max(np.abs(plane))
  assert filters.is_near_linear(columns, plane + 0.5e-8 * scale * bend)
  assert not filters.is_near_linear(columns, plane + 1.5e-8 * scale * bend)


def test_two_evaluations_of_one_function_agree_at_nineteen_of_twenty_points():
  values = np.linspace(1, 2, 100)
  off = values.copy()
  off[:5] *= 1.01
  assert filters.is_equal(values, off)
  off[5] *= 1.01
  assert not filters.is_equal(values, off)
  near = np.full(100, 2.0)
  assert filters.is_equal(near, near * (1 + 0.9e-3)) and not filters.is_equal(near, near * (1 + 1.2e-3))
  # Near a zero the mean absolute value is the scale; where all is 0 rounding is allowed.
  wave = np.concatenate([np.full(50, 1.0), np.zeros(50)])
  assert filters.is_equal(wave, wave + 0.45e-3) and not filters.is_equal(wave, wave + 0.7e-3)
  assert filters.is_equal(np.zeros(9), np.full(9, 1e-12)) and not filters.is_equal(np.zeros(9), np.full(9, 1.1e-12))
  half = values.copy()
  half[:50] = np.nan
  assert filters.is_equal(half, values) and filters.is_equal(values, half)
  half[50] = np.inf
  assert not filters.is_equal(half, values)


def test_a_formula_is_known_by_its_values_at_six_points_or_more():
  values = np.full((2, 48), np.nan)
  values[0, :6], values[1, :5] = np.arange(1, 7), np.arange(1, 6)
  problems = exclusion.Exclusion(("six", "five"), values)
  y = np.arange(1.0, 49)
  assert problems.matches(y) == "six" and problems.matches(y * (1 + 0.9e-5)) == "six"
  assert problems.matches(y * (1 + 1.2e-5)) == ""
  y[5] = np.nan
  assert problems.matches(y) == ""
  y[5] = 7
  assert problems.matches(y) == "" and exclusion.Exclusion((), np.zeros((0, 48))).matches(y) == ""
  assert exclusion.Exclusion(("zero",), np.zeros((1, 48))).matches(np.zeros(48)) == "zero"


def test_probes_are_a_third_positive_and_within_the_box():
  points = exclusion._probe_points(3, 4.0)
  assert points.shape == (3, 48) and np.abs(points).max() <= 4 and np.abs(points).max() > 3.8
  assert (points[:, ::3] >= 0).all() and (points < 0).all(axis=0).any()
  assert np.isfinite(exclusion.probe(formula("log(x)*sqrt(y)"), BIVARIATE)).sum() >= 16


def test_functions_have_the_fingerprints_that_published_models_know_them_by():
  assert exclusion.fingerprint(exclusion.probe(formula("sin(x) + 1.5"), UNIVARIATE)) == 7437223433876895395
  assert exclusion.fingerprint(exclusion.probe(formula("sin(x) + y"), BIVARIATE)) == 13666508193712746971


def test_problems_are_kept_out_in_every_variable(tmp_path):
  path = tmp_path / "p.csv"
  path.write_bytes(b"family,name,n_vars,expression\nf,c,1,2.5\nf,one,1,sin(x)\n"
                   b'f,"two\r\nlines",2,x - y\nf,three,3,x*y*z\n')
  found = exclusion.read_problems(path, UNIVARIATE)
  assert found.names == ("c", "one") and (found.values[0] == 2.5).all()
  found = exclusion.read_problems(path, BIVARIATE)
  assert found.names == ("c", "c", "one", "one", *["two\r\nlines"] * 2)
  np.testing.assert_allclose(found.values[4], -found.values[5])


def test_the_fingerprint_of_a_function_is_twelve_values_of_twelve_bits():
  values = np.linspace(1.1, 30.3, 48)
  first = exclusion.fingerprint(values)
  assert first == exclusion.fingerprint(values[:12]) and first != exclusion.fingerprint(values[:11])
  changed = values.copy()
  changed[11] *= 1.001
  assert exclusion.fingerprint(changed) != first  # 12 bits tell a thousandth
  exact = np.array([1.0, 1.5, 3.0, 1e6] * 3)
  assert exclusion.fingerprint(exact * (1 + 1e-5)) == exclusion.fingerprint(exact)
  assert exclusion.fingerprint(exact * (1 + 2**-12)) != exclusion.fingerprint(exact)
  zero = np.where(np.arange(12) % 2, 0.0, 1.0)
  assert exclusion.fingerprint(zero + 1e-13) == exclusion.fingerprint(zero) == exclusion.fingerprint(
    np.where(zero == 0, -0.0, zero))
  assert exclusion.fingerprint(zero + 1e-11) != exclusion.fingerprint(zero)
  assert exclusion.fingerprint(np.full(12, np.nan)) == exclusion.fingerprint(np.full(12, -np.inf))
  assert exclusion.fingerprint(np.full(12, np.nan)) != exclusion.fingerprint(np.zeros(12))
  assert 0 <= first < 2**64


def test_fingerprints_of_data_that_are_stored_stay_what_they_were():
  """They lie beside the shards of published data, and in the filters that go with models."""
  texts = ("sin(x) + y", "x*y", "sqrt(x)")
  found = [exclusion.fingerprint(exclusion.probe(formula(text), BIVARIATE)) for text in texts]
  text = repr([*found, [stored.hash_skeleton([3, 4, 5], Vocabulary(2))]])
  assert hashlib.sha256(text.encode()).hexdigest()[:16] == "f764fb3507098fb1"


@pytest.mark.parametrize(("config", "count"), [(UNIVARIATE, 1), (BIVARIATE, 2)])
def test_the_fresh_equations_that_ship_can_be_kept_out(config, count, tmp_path):
  path = tmp_path / "p.csv"
  path.write_text("family,name,n_vars,expression\nf,one,1,sin(sin(sin(x)))+17.5*x\n")
  found = exclusion.read_problems(f"{path},{exclusion.FRESH}", config)
  assert found.names[0] == "one"
  assert defaults.FRESH_EQUATIONS == problems.FRESH_EQUATIONS  # neither package may import the other's
  assert found.names.count(f"fresh of {count}") == 1024 * count  # each in every order of the variables
  for each in problems.load_equations(problems.FRESH_EQUATIONS[count], num_equations=20)[::5]:
    assert found.matches(exclusion.probe(each.truth, config)).startswith("fresh")
  assert found.matches(exclusion.probe(parse("sin(sin(sin(x)))+16.5*x", ("x",)), config)) == ""


def test_problems_stand_for_all_exchanges_of_variables(tmp_path):
  path = tmp_path / "p.csv"
  path.write_text("family,name,n_vars,expression\nf,one,1,sin(x)+x**2\nf,two,2,x/y\nf,three,3,x*y*z\n")
  assert exclusion.read_problems(path, BIVARIATE).names == ("one", "one", "two", "two")
  assert exclusion.read_problems(path, UNIVARIATE).names == ("one",)
  assert exclusion.read_problems(f"{path},{path}", UNIVARIATE).names == ("one", "one")
  assert exclusion.read_problems(None, UNIVARIATE).names == ()
  path.write_text("family,name,n_vars,expression\nf,one,1,x\nf,,1,x\n")
  with pytest.raises(InputError, match="p.csv, row 3: expected columns family,name,n_vars,expression, got"):
    exclusion.read_problems(path, UNIVARIATE)
  path.write_text("family,name,n_vars,expression\nf,one,1,x+\n")
  with pytest.raises(InputError, match="p.csv, row 2: "):
    exclusion.read_problems(path, UNIVARIATE)


# --- shapes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second", "is_same"), [
  ("x*y/z + 1", "7 + 3*z*y/x", True), ("-x*y/z", "x*z/y", True), ("x**2*y", "x**2.5*y", False),
  ("x + y*z", "x + y + z", False), ("x**2.50000001*y", "x**2.5*y", True), ("x*y + z", "x*y + z + 2", False),
  ("x*sin(x)", "x*sin(y)", False), ("x*y*sin(x)", "x*y*sin(y)", True), ("(x + y)*(x + z)", "(x + y)*(z + w)", False),
  ("exp(x)/y", "exp(y)/x", True), ("x - y", "x + y", True), ("x*2 + 3", "x*5 + 0.5", True),
  ("x**y*z", "y**x*z", True), ("x**y*x", "x**y*y", False),
  # A coefficient before a single part is as little seen as one before several.
  ("2*sin(x)", "sin(x)", True), ("2*x", "x", True), ("x*y", "x", False), ("3*(x + y*z)", "x + y*z", True),
  ("3*x + y*z", "x + 2*y*z", True), ("sin(2*x)*exp(y)", "sin(x)*exp(3*y)", True),
  ("(x + y)**2.5", "sin(x)**2.5", False), ("x**y + y**z + z**x", "x**y + y**z + x**z", False)])
def test_shapes_of_laws(first, second, is_same):
  one, other = (shapes.shape(simplify.simplify(formula(text), "rules", digits=8)) for text in (first, second))
  assert (one == other) == is_same and len(one) == 16


@pytest.mark.parametrize(("text", "count"), [("x", 0), ("-x", 0), ("2*x", 0), ("x*y", 1), ("2*x*y", 1), ("x + 1", 1),
                                             ("sin(2*x)", 1), ("x*y + z", 2), ("x*y*z*w", 3), ("2", 0)])
def test_operators_of_shapes(text, count):
  assert shapes.count_operators(simplify.simplify(formula(text), "rules", digits=8)) == count


def test_laws_of_three_operators_are_kept_out(tmp_path):
  path = tmp_path / "p.csv"
  path.write_text("family,name,n_vars,expression\nf,small,3,x*y*z\nf,law,4,x*y*z*w\nf,again,4,w*x*y*z\n"
    "f,no,1,x**x**x**x\n")
  found = shapes.read_problems(path, LAWS)
  assert "law" in found.names and "small" not in found.names and "again" in found.names
  assert found.matches(formula("x*y*z*w")) == "law" and found.matches(formula("x*y*z")) == ""
  assert shapes.Shapes({}, ()).matches(X) == ""


# --- simplification ----------------------------------------------------------------------------------------------


def test_numbers_of_sympy_trees():
  assert simplify.to_sympy(number(3)).is_Integer and simplify.to_sympy(number(2.5)).is_Float
  assert simplify.to_sympy(formula("x*y")) == sympy.Symbol("x0") * sympy.Symbol("x1")


def test_constants_are_folded_rounded_and_dropped():
  def rounded(text, digits=3):
    return printing.to_text(simplify.round_numbers(formula(text), digits), ["x", "y"])
  assert rounded("x + 1.23456") == "x + 1.23" and rounded("sin(x)*2.34567", 5) == rounded("sin(x)*2.3457", 9)
  tree = Node("*", (X, number(1.0000001)))
  assert simplify.round_numbers(tree, 4) == X and simplify.round_numbers(tree, 9) != X
  assert simplify.round_numbers(Node("*", (X, number(-1.0000001))), 4) == Node("neg", (X,))
  assert simplify.round_numbers(Node("+", (X, number(0.0))), 4) == X
  assert simplify.round_numbers(Node("+", (X, number(1.0))), 4).args[1].value == 1
  assert simplify.round_numbers(Node("*", (X, number(0.0))), 4).token == "*"
  assert simplify.round_numbers(Node("pow", (X, number(1.00001))), 4) == X
  folded = simplify.fold_constants(Node("cos", (Node("+", (X, Node("sin", (number(4),)))),)))
  assert folded.args[0].args[1].value == pytest.approx(math.sin(4))
  with pytest.raises(ExpressionError, match="not a finite number"), np.errstate(all="ignore"):
    simplify.fold_constants(Node("ln", (number(0),)))


@pytest.mark.parametrize(("text", "may"), [
  ("1/(x + 1)", True), ("1/sqrt(x)", True), ("1/sin(x)", False), ("sqrt(1/x)", True), ("sqrt(x)", False),
  ("x**y", True), ("x**3.5", False), ("(x + 1)**3.5", True), ("exp(x)", True), ("sin(x) + x", False)])
def test_where_sympy_may_write_otherwise(text, may):
  tree = formula(text)
  if text == "1/sqrt(x)":
    tree = Node("inv", (Node("sqrt", (X,)),))
  if text == "sqrt(1/x)":
    tree = Node("sqrt", (Node("inv", (X,)),))
  assert simplify._may_differ(tree) == may


def test_long_formulas_are_left_to_the_rules(monkeypatch):
  asked = []
  monkeypatch.setattr(simplify, "_simplify_fast", lambda node: asked.append(node) or sympy.Symbol("x0"))
  for num, is_asked in ((119, True), (120, False)):  # of sines around an exponential
    tree = X
    tree = Node("exp", (tree,))
    for _ in range(num - 1):
      tree = Node("sin", (tree,))
    asked.clear()
    simplify.simplify(tree, "fast", digits=8)
    assert bool(asked) == is_asked
  asked.clear()
  simplify.simplify(Node("exp", (X,)), "rules", digits=8)
  simplify.simplify(Node("sin", (X,)), "fast", digits=8)
  assert not asked


def test_the_least_number_of_tokens():
  x, y = sympy.symbols("x0 x1")
  for expr, least in ((x, 1), (x + y, 3), (2 * x, 1), (x * y + 3, 3), (sympy.sin(x), 2), (sympy.Integer(5), 0),
                      (x**y, 3), (sympy.sin(x) * sympy.exp(y) * x, 7)):
    assert simplify._least_tokens(expr) == least, expr
  config = {"digits": 8, "max_tokens": 3}
  assert simplify.simplify(formula("x + y"), "simplify", **config)
  with pytest.raises(simplify.TooLongError, match="more than 3 tokens"):
    simplify.simplify(formula("x + y + sin(x)"), "simplify", **config)


def test_the_shorter_of_two_writings():
  x = sympy.Symbol("x0")
  assert simplify._shorter(x * (x + 1), x**2 + x) == x * (x + 1) and simplify._shorter(x, x) == x
  assert simplify._outermost_functions(sympy.sin(x) + sympy.exp(sympy.cos(sympy.log(x)))) == {
    sympy.sin(x), sympy.cos(sympy.log(x))}
  assert simplify._may_combine_trigonometry(sympy.sin(x) ** 2 + sympy.cos(x) ** 2)
  assert not simplify._may_combine_trigonometry(sympy.sin(x) + sympy.cos(2 * x))


@pytest.mark.parametrize(("text", "expected"), [
  ("sin(x)**2 + cos(x)**2", "1"), ("(x**2 - 1)/(x - 1)", "x + 1"), ("exp(x)*exp(y)", "exp(x + y)"),
  ("log(exp(x)*y)/1", None), ("x*(y + 1) - x*y", "x"), ("sin(x*(y + 1) - x*y)", "sin(x)"),
  ("exp(log(x)*2)", "x**2"), ("x/(x*y + x)", "1/(y + 1)"), ("1/(1/x + 1/y)", None)])
def test_cheap_passes_find_what_they_are_for(text, expected):
  tree = formula(text)
  found = simplify.finish(simplify.from_sympy(simplify._simplify_fast(tree).evalf(8), [sympy.Symbol("x0"),
                                                                                      sympy.Symbol("x1")]), 8)
  if expected:
    assert found == simplify.finish(simplify.canonical.canonicalize(formula(expected)), 8)
  points = np.random.default_rng(0).uniform(0.5, 2, (2, 20))
  np.testing.assert_allclose(trees.values(found, points), trees.values(tree, points), rtol=1e-6)


def test_hyperbolic_functions_secants_and_inverse_cotangents_are_rewritten(monkeypatch):
  x = sympy.Symbol("x0")
  assert simplify._simplify_outer(x / sympy.cot(x)) == x * sympy.tan(x)
  # As in `sympy.simplify`, no sign is taken out of a sum.
  y = sympy.Symbol("x1")
  total = -(x**2) / 3 - 2 * x * y
  assert simplify._simplify_outer(total) == sympy.simplify(total) == x * (-x - 6 * y) / 3
  assert simplify._is_inverse_cotangent(sympy.cot(x) ** -2) and not simplify._is_inverse_cotangent(sympy.cot(x) ** 2)
  assert not simplify._is_inverse_cotangent(sympy.tan(x) ** -2)
  assert simplify._invert_cotangent(sympy.cot(x) ** -2) == sympy.tan(x) ** 2
  monkeypatch.setattr(simplify, "_simplify_fast", lambda node: sympy.csc(x) + 2 * sympy.sec(x))
  found = trees.values(simplify.simplify(formula("exp(x)"), "fast", digits=8), np.array([[0.3, 1.2]]))
  np.testing.assert_allclose(found, [1 / np.sin(u) + 2 / np.cos(u) for u in (0.3, 1.2)], rtol=1e-6)
  for text in ("(exp(x) - exp(-x))/(exp(x) + exp(-x))", "1/cos(x) + 1/sin(x)"):
    found = simplify.simplify(formula(text), "simplify", digits=8)
    points = np.linspace(0.3, 1.2, 9)[None]
    np.testing.assert_allclose(trees.values(found, points), trees.values(formula(text), points), rtol=1e-6)


# --- laws --------------------------------------------------------------------------------------------------------


def test_laws_of_a_seed_stay_what_they_were():
  """Data sets are named by configuration and seed; three digits of each number, which no platform rounds otherwise."""
  found = []
  for changes in ({}, {"variables": {"1": 1.0}}, {"centred": 1.0, "small_as_given": 1.0}):
    sampler = laws.LawSampler(dataclasses.replace(LAWS, **changes))
    for index in range(200):
      with np.errstate(all="ignore"):
        law = sampler.sample(np.random.default_rng((index, 3)))
      found.append(law and (printing.to_text(law.tree, digits=3), [f"{end:.3g}" for end in law.box.ravel()]))
  assert sum(law is None for law in found) < 30
  assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == "79b019e3e834a9ad"


def test_laws_of_each_function_stay_what_they_were():
  """With arguments over the spans at which it shows."""
  found = []
  for name in config_lib.FUNCTIONS:
    only = {"forms": {"function": 1.0}, "single_forms": {"function": 1.0}, "functions": {name: 1.0},
            "repeats": {"0": 1.0}, "variables": {"1": 1.0}, "intervals": {"near": 1.0}}
    sampler = laws.LawSampler(dataclasses.replace(LAWS, **only))
    for index in range(12):
      with np.errstate(all="ignore"):
        law = sampler.sample(np.random.default_rng((index, 5)))
      found.append(law and printing.to_text(law.tree, digits=3))
  assert sum(law is None for law in found) < 60
  assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == "b28b0ff9847a1eb9"


@pytest.mark.parametrize(("name", "function", "points"), [
  ("exp", np.exp, [-2, 3]), ("decay", lambda u: np.exp(-u), [-2, 3]), ("gaussian", lambda u: np.exp(-u**2), [-1, 2]),
  ("saturation", lambda u: 1 - np.exp(-u), [-1, 2]), ("growth", np.expm1, [-1, 2]),
  ("bose", lambda u: 1 / np.expm1(u), [1, 2]), ("logistic", lambda u: 1 / (1 + np.exp(-u)), [-1, 2]),
  ("tanh", np.tanh, [-1, 2]), ("sin", np.sin, [1, 2]), ("cos", np.cos, [1, 2]),
  ("sin2", lambda u: np.sin(u) ** 2, [1, 2]),
  ("tan", np.tan, [0.3, 1]), ("ln", np.log, [2, 3]), ("sqrt", np.sqrt, [2, 3]), ("asin", np.arcsin, [0.1, 0.5]),
  ("acos", np.arccos, [0.1, 0.5]), ("atan", np.arctan, [-3, 2])])
def test_functions_of_laws_are_what_their_names_say(name, function, points):
  shape, smallest, largest = laws._FUNCTIONS[name]
  at = np.array([points], float)
  np.testing.assert_allclose(trees.values(shape(X), at), function(at[0]), rtol=1e-12)
  assert 0 < smallest < largest


class Draws:
  """Random numbers that are known."""

  def __init__(self, *values):
    self.values = list(values)

  def random(self, size=None):
    return self.values.pop(0) if size is None else np.array([self.values.pop(0) for _ in range(size)])

  def uniform(self, low=0.0, high=1.0):
    return low + (high - low) * self.values.pop(0)

  def integers(self, low, high=None):
    low, high = (0, low) if high is None else (low, high)
    return low + int((high - low) * self.values.pop(0))


def test_what_a_law_may_be():
  draw = object.__new__(laws._Draw)
  draw.count, draw.columns = 2, np.random.default_rng(0).uniform(1, 2, (2, 48))
  draw._check(formula("x*y"))
  for text in ("x + 0*y", "x + y*0.0001", "100 + x/1000 + y/1000"):
    with np.errstate(all="ignore"), pytest.raises(laws._UnfitError):
      draw._check(formula(text))
  draw.count = 1
  draw._check(formula("x"))


def test_the_least_variation_of_a_law_is_a_fiftieth_of_its_largest_value():
  draw = object.__new__(laws._Draw)
  draw.count, draw.columns = 1, np.array([[98.0, 100.0, 99.0]])
  with pytest.raises(laws._UnfitError):
    draw._check(X)
  draw.columns = np.array([[97.9, 100.0, 99.0]])
  draw._check(X)


def test_a_law_whose_largest_value_is_three_thousand_medians_has_a_pole():
  draw = object.__new__(laws._Draw)
  draw.count, draw.columns = 1, np.array([[1.0, 1.0, -1.0, 1.0, 3000.0]])
  draw._check(X)
  draw.columns = np.array([[1.0, 1.0, -1.0, 1.0, 3001.0]])
  with pytest.raises(laws._UnfitError):
    draw._check(X)


def test_a_variable_matters_whose_order_changes_a_hundredth_of_the_spread():
  draw = object.__new__(laws._Draw)
  draw.count = 2
  column = np.array([1.0, -1.0] * 8)
  draw.columns = np.stack([np.repeat([2.0, -2.0, 2.0, -2.0], 4), column])
  for factor, is_law in ((0.011, True), (0.0099, False)):  # moved by one it changes by twice its size, of a spread of 2
    tree = Node("+", (X, Node("*", (variable(1), number(factor)))))
    if is_law:
      draw._check(tree)
    else:
      with pytest.raises(laws._UnfitError):
        draw._check(tree)


def units(tree, box, draws, **changes):
  draw = object.__new__(laws._Draw)
  draw.s = types.SimpleNamespace(config=dataclasses.replace(LAWS, **changes))
  draw.rng, draw.box, draw.count = Draws(*draws), np.array(box, float), len(box)
  unit = np.linspace(0, 1, 48)[None]
  draw.columns = draw.box[:, :1] + (draw.box[:, 1:] - draw.box[:, :1]) * unit
  return draw._in_model_units(tree)


def test_columns_beyond_the_box_or_below_one_are_brought_to_it():
  never = [1.0, 1.0]  # neither centred nor as given
  for box, scaled in (([[0, 5]], [[0, 5]]), ([[0, 10]], [[0, 5]]), ([[-10, 2]], [[-5, 1]]), ([[0, 1]], [[0, 1]]),
                      ([[0, 0.5]], [[0, 5]]), ([[0, 4]], [[0, 4]])):
    law = units(formula("x + 7"), box, never)
    np.testing.assert_allclose(law.box, scaled)
    ends = np.array(box, float)
    np.testing.assert_allclose(trees.values(law.tree, law.box), ends[0] + 7, rtol=1e-12)
  as_given = units(formula("x + 7"), [[0, 0.5]], [1.0, 0.0])
  np.testing.assert_allclose(as_given.box, [[0, 0.5]])


def test_columns_off_to_one_side_are_centred_or_begun_at_zero():
  for draws, box in (([0.0, 0.0, 1.0], [[0, 5]]), ([0.0, 1.0, 1.0], [[-5, 5]])):
    law = units(formula("x + 7"), [[280, 400]], draws)
    np.testing.assert_allclose(law.box, box)
    np.testing.assert_allclose(trees.values(law.tree, law.box), [287, 407])
  # Not far: as wide as it is large; small enough as it is.
  for box in ([[3, 10]], [[2, 3.5]]):
    law = units(formula("x + 7"), box, [0.0, 0.0, 1.0])
    assert law.box[0, 0] > 0
  moved = units(formula("x + 7"), [[3.1, 10]], [0.0, 0.0, 1.0])
  np.testing.assert_allclose(moved.box, [[0, 5]])
  narrow = units(formula("x + 7"), [[2, 2.5]], [0.0, 0.0, 1.0])
  np.testing.assert_allclose(narrow.box, [[0, 5]])


@pytest.mark.parametrize(("size", "rms"), [(1.0, 1.0), (0.05, 0.05), (0.049, 5.0), (1000.0, 1000.0), (1001.0, 5.0)])
def test_values_of_uncomfortable_size_are_brought_to_five(size, rms):
  tree = Node("*", (Node("cos", (Node("*", (X, number(0.0))),)), number(size)))
  law = units(tree, [[0, 4]], [1.0, 1.0])
  assert np.sqrt(np.mean(np.square(trees.values(law.tree, np.ones((1, 9)))))) == pytest.approx(rms)


def test_intervals_have_the_sizes_that_their_names_say():
  draws = np.random.default_rng(0)
  found = {name: np.array([interval(draws) for _ in range(2000)]) for name, interval in laws._INTERVALS.items()}
  for name, ends in found.items():
    assert (ends[:, 0] < ends[:, 1]).all(), name
  low, high = found["near"].T
  assert (low.min(), low.max()) == (0.1, 3.0) and ((high - low).min(), (high - low).max()) == (1.0, 19.0)
  low, high = found["decades"].T
  assert 1e-4 <= high.min() < 2e-4 and 5e5 < high.max() <= 1e6
  assert 10**0.3 <= (high / low).min() < 2.1 and 950 < (high / low).max() <= 1000
  low, high = found["from_zero"].T
  assert (low == 0).all() and set(high) == {1, 2, 5, 10, 20, 100}
  low, high = found["symmetric"].T
  assert (low == -high).all() and set(high) == {1, 2, 3, 5, 10} and 0.28 < np.mean(high == 1) < 0.39
  low, high = found["off_centre"].T
  centre, half = (low + high) / 2, (high - low) / 2
  assert 0.99 < centre.min() < 1.05 and 3000 < centre.max() < 3170
  assert 0.058 < (half / centre).min() < 0.066 and 0.49 < (half / centre).max() < 0.52
  low, high = found["negative"].T
  assert high.max() == -0.1 and low.min() == -22.0


def test_a_law_is_tried_forty_times(monkeypatch):
  tried = []

  def draw(sampler, rng, count):
    tried.append(count)
    raise laws._UnfitError
  monkeypatch.setattr(laws, "_Draw", draw)
  assert laws.LawSampler(dataclasses.replace(LAWS, variables={"2": 1.0})).sample(np.random.default_rng(0)) is None
  assert tried == [2] * 40


def test_coefficients_of_laws():
  draw = object.__new__(laws._Draw)

  def coefficient(*values):
    draw.rng = Draws(*values)
    return draw._coefficient()
  assert coefficient(0.29, 0.0, 0.0) == 2 and coefficient(0.29, 0.99, 0.0) == 5 and coefficient(0.0, 0.0, 0.7) == 1
  assert coefficient(0.31, 0.0) == 0.5 and coefficient(0.5, 0.99) == -1.0
  assert coefficient(0.56, 0.0, 0.99) == 0.1 and coefficient(0.84, 1.0, 0.99) == pytest.approx(10**1.3, rel=1e-3)
  assert coefficient(0.86, 0.0, 0.99) == 1e-8 and coefficient(0.99, 1.0, 0.99) == 1e8
  assert laws._round(1.23456, Draws(0.0)) == 1 and laws._round(1.23456, Draws(0.99)) == 1.235
  assert laws._sign(Draws(0.49)) == 1 and laws._sign(Draws(0.5)) == -1


# --- hashes and filters ------------------------------------------------------------------------------------------


def test_a_filter_has_the_bits_and_probes_of_its_rate():
  found = bloom.BloomFilter(1000, 1e-6)
  assert len(found.bits) == math.ceil(-1000 * math.log(1e-6) / math.log(2) ** 2 / 8) == 3595
  assert len(found._steps) == 20 and len(bloom.BloomFilter(0, 1e-6).bits) == len(bloom.BloomFilter(1, 1e-6).bits) == 4
  assert len(bloom.BloomFilter(10, 0.5)._steps) == 1


def test_filters_of_published_models_are_read_as_they_were_written():
  found = bloom.BloomFilter(50, 1e-3)
  assert not found.add(np.arange(1, 51, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).all()
  assert hashlib.sha256(found.to_bytes()).hexdigest()[:16] == "b4f9fdb4c0f35e70"
  again = bloom.from_bytes(found.to_bytes(), name="f")
  assert again.add(np.arange(1, 51, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).all()
  assert again.bits.tobytes() == found.bits.tobytes() and again.capacity == 50
  for damaged in (found.to_bytes()[:-1], found.to_bytes() + b"x", found.to_bytes().replace(b'": 1', b'": 2', 1)):
    with pytest.raises(DataError, match="f is damaged: expected"):
      bloom.from_bytes(damaged, name="f")
  for damaged in (b"", b"{}\n", b"[]\n", b"x"):
    with pytest.raises(DataError, match="f is no Bloom filter"):
      bloom.from_bytes(damaged, name="f")


def test_constants_are_stored_to_seven_digits():
  vocab = Vocabulary(1)
  assert stored.read_tree([vocab.first_constant_id], np.zeros(1, np.float32), vocab).value == 0
  ids, constants = expression.encode(formula("x**6 + 0.123456789"), vocab)
  tree = stored.read_tree(ids, np.asarray(constants, np.float32), vocab)
  values = [node.value for node in expression.walk(tree) if node.is_number]
  assert 0.1234568 in values and 6 in values
  skeleton = stored.hash_skeleton(ids, vocab)
  same, _ = expression.encode(formula("x**6 + 77.5"), vocab)
  other, _ = expression.encode(formula("x**5 + 0.123456789"), vocab)
  assert stored.hash_skeleton(same, vocab) == skeleton != stored.hash_skeleton(other, vocab)


def test_candidates_are_refused_by_the_first_rule_they_break():
  generator = candidates.Generator(UNIVARIATE, 0, exclusion.read_problems(None, UNIVARIATE))

  def judge(text, of=generator, box=None):
    with np.errstate(all="ignore"):
      return of._judge(formula(text), np.random.default_rng(0), box)[0]
  assert [judge(text) for text in ("2*x", "x*2 + 1", "sin(x)", "x*0", "1e6*x**3", "log(-exp(x))")] == [
    "", "linear", "", "constant", "too_large", "no_finite_box"]
  of_laws = candidates.Generator(LAWS, 0, shapes.Shapes({}, ()))
  box = np.pad([[1.0, 2.0]], ((0, LAWS.num_variables - 1), (0, 0)))
  assert judge("x*2 + 1", of_laws, box) == "" and of_laws.has_boxes and not generator.has_boxes
  assert of_laws._find_box(X, box, np.random.default_rng(0))[0] is box
  assert of_laws._find_box(X, None, np.random.default_rng(0))[0][0].tolist() == [-5, 5]
  for num, text, is_plain in ((0, "x", False), (1, "x + 1", True), (1, "sin(x)", False), (2, "sin(x)", True),
                              (2, "sin(cos(x))", False)):
    nested = dataclasses.replace(UNIVARIATE, min_nesting=num)
    deep = candidates.Generator(nested, 0, exclusion.Exclusion((), np.empty(0)))
    assert deep._is_plain(formula(text)) == is_plain


def test_the_final_formula_is_judged_as_it_is_stored():
  generator = candidates.Generator(UNIVARIATE, 0, exclusion.read_problems(None, UNIVARIATE))

  def finish(text, y=None, of=generator):
    columns = np.linspace(0.5, 2, 100)[None]
    with np.errstate(all="ignore"):
      tree = expression.sort_operands(formula(text) if isinstance(text, str) else text)
      return of._finish(tree, columns, trees.values(tree, columns) if y is None else y, np.random.default_rng(0))
  found = finish("sin(x) + 1.5")
  assert isinstance(found, candidates.Equation) and found.key == found.ids + found.constants
  assert found.function == exclusion.fingerprint(exclusion.probe(formula("sin(x) + 1.5"), UNIVARIATE))
  assert finish("x + 1e-11") == "constant_out_of_range" and finish("x + 1", np.zeros(100)) == "wrong_simplification"
  assert finish("sqrt(x - 4.999)") in ("wrong_simplification", "no_finite_box_simplified")
  assert finish("1e8*x") == "too_large_simplified"
  for num, rule in ((49, None), (50, "too_long")):  # of sines around x: fifty tokens are allowed
    tree = X
    for _ in range(num):
      tree = Node("sin", (tree,))
    assert (finish(tree) == "too_long") == (rule == "too_long")
  named = candidates.Generator(UNIVARIATE, 0, exclusion.Exclusion(("P",), exclusion.probe(
    formula("sin(x) + 1.5"), UNIVARIATE)[None]))
  assert finish("sin(x) + 1.5", of=named) == "excluded: P"
  by_shape = shapes.Shapes({shapes.shape(formula("sin(x) + 1.5")): "S"}, ("S",))
  assert finish("sin(x) + 2.5", of=candidates.Generator(UNIVARIATE, 0, by_shape)) == "excluded: S"


def test_what_simplification_meets_has_a_name(monkeypatch):
  generator = candidates.Generator(UNIVARIATE, 0, exclusion.read_problems(None, UNIVARIATE))
  monkeypatch.setattr(generator, "_draw", lambda rng: (formula("sin(x)"), None))
  for error, rule in ((simplify.TooLongError("x"), "too_long"), (ExpressionError("x"), "inexpressible"),
                      (RecursionError(), "recursion")):
    def fail(*_, error=error, **__):
      raise error
    monkeypatch.setattr(simplify, "simplify", fail)
    assert generator.make(0) == rule
  asked = []
  monkeypatch.setattr(simplify, "simplify", lambda *_, **options: asked.append(options) or formula("sin(x)"))
  assert generator.make(0).skeleton and asked == [{"digits": 8, "max_tokens": 50}]
  monkeypatch.setattr(generator, "_draw", lambda rng: (None, None))
  assert generator.make(0) == "no_law"


def test_boxes_of_laws_are_filled_up_to_the_variables_of_the_model():
  generator = candidates.Generator(dataclasses.replace(LAWS, variables={"1": 1.0}), 0, shapes.Shapes({}, ()))
  with np.errstate(all="ignore"):
    _, box = generator._draw(np.random.default_rng(1))
  assert box.shape == (LAWS.num_variables, 2) and not box[1:].any() and box[0].any()


# --- workers -----------------------------------------------------------------------------------------------------


@pytest.fixture
def alarm():
  handler = signal.getsignal(signal.SIGVTALRM)
  yield
  signal.signal(signal.SIGVTALRM, handler)


def test_what_fails_is_named_and_the_clock_is_stopped(alarm):
  def fail(error):
    raise error
  assert workers.call_with_limit(lambda: 5, 1.0) == 5
  assert workers.call_with_limit(lambda: fail(MemoryError()), 1.0) == "memory"
  assert workers.call_with_limit(lambda: fail(KeyError(3)), 1.0) == "error_KeyError"
  assert workers.call_with_limit(lambda: fail(workers._TimeLimitError()), 1.0) == "timeout"
  assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)

  def look():
    return signal.getitimer(signal.ITIMER_VIRTUAL)
  left, again = workers.call_with_limit(look, 7.0)
  assert 6 < left < 7.5 and again == 7  # and once more after as long


def test_a_chunk_makes_its_candidates_in_order_and_skips_what_is_lost(alarm):
  made = []
  generator = types.SimpleNamespace(make=lambda index: made.append(index) or f"rule{index}",
                                    config=types.SimpleNamespace(time_limit_s=5.0))
  progress = [-1, 10]
  assert workers.make_chunk(generator, workers._Task(64, 68, (66,)), progress) == ["rule64", "rule65", "", "rule67"]
  assert made == [64, 65, 67] and progress == [67, 13]


def test_a_worker_without_a_sign_of_life_hangs(monkeypatch):
  now = [100.0]
  monkeypatch.setattr(workers, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
  worker = object.__new__(workers._Worker)
  worker.progress, worker.task, worker.last_count, worker.last_change = [5, 0], workers._Task(0, 64, ()), -1, 0.0
  assert not worker.is_hung(60)  # a new count is a sign
  now[0] = 160.0
  assert not worker.is_hung(60)
  now[0] = 160.1
  assert worker.is_hung(60)
  worker.progress[0] = -1  # at no candidate yet
  assert not worker.is_hung(60)
  worker.progress[0] = 0
  assert worker.is_hung(60)
  worker.task = None
  assert not worker.is_hung(60)


def test_workers_hang_after_twelve_times_the_limit_and_a_minute_at_least(monkeypatch):
  monkeypatch.setenv("PYTHONHASHSEED", "1")
  for limit_s, hang_s in ((1.0, 60), (5.0, 60), (10.0, 120)):
    generator = types.SimpleNamespace(config=types.SimpleNamespace(time_limit_s=limit_s))
    pool = workers.Pool(generator, 0, skip={3: "died"})
    assert pool._hang_limit_s == hang_s and pool._skip == {3: "died"} and pool._chunk == 64 and not pool.process_ids
  assert os.environ["PYTHONHASHSEED"] == "0"


def test_eight_workers_in_a_row_may_die_before_their_first_candidate(monkeypatch):
  monkeypatch.setenv("PYTHONHASHSEED", "1")
  pool = workers.Pool(types.SimpleNamespace(config=types.SimpleNamespace(time_limit_s=1.0)), 0, skip={})

  def worker(*_):
    return types.SimpleNamespace(progress=[-1, 0], task=None, stop=lambda: None, give=given.append)
  given = []
  monkeypatch.setattr(workers, "_Worker", worker)
  pool._workers = [worker()]
  for _ in range(8):
    pool._replace(0, "died")
  assert pool.num_replaced == 8
  with pytest.raises(InputError, match="^9 workers one after the other died"):
    pool._replace(0, "died")
  pool._num_early, pool._workers[0].task, pool._workers[0].progress[0] = 0, workers._Task(64, 128, ()), 70
  pool._replace(0, "timeout")
  assert pool._skip == {70: "timeout"} and given == [workers._Task(64, 128, (70,))] and pool._num_early == 0


def test_the_first_candidate_of_all_may_be_lost(monkeypatch):
  monkeypatch.setenv("PYTHONHASHSEED", "1")
  pool = workers.Pool(types.SimpleNamespace(config=types.SimpleNamespace(time_limit_s=1.0)), 0, skip={})
  pool._workers = [types.SimpleNamespace(progress=[0, 1], task=workers._Task(0, 64, ()), stop=lambda: None)]
  monkeypatch.setattr(workers, "_Worker", lambda *_: types.SimpleNamespace(give=lambda task: None))
  pool._replace(0, "died")
  assert pool._skip == {0: "died"}


def test_a_worker_may_take_two_gigabytes_beyond_what_it_has(monkeypatch):
  limits = []
  monkeypatch.setattr(workers.resource, "setrlimit", lambda which, given: limits.append((which, given)))
  with open("/proc/self/statm", encoding="ascii") as file:
    used = int(file.read().split()[0]) * workers.resource.getpagesize()
  for hard in (workers.resource.RLIM_INFINITY, 1 << 50, used + 2**20):  # the last is that of `ulimit -v`
    monkeypatch.setattr(workers.resource, "getrlimit", lambda which, hard=hard: (1, hard))
    workers._limit_memory()
    which, (soft, kept) = limits.pop()
    assert which == workers.resource.RLIMIT_AS and kept == hard
    assert soft == hard if hard == used + 2**20 else abs(soft - used - 2 * 2**30) < 2**28



def pool_of(num_workers, chunk, skip=None):
  """A pool whose workers make a chunk at once: `(pool, chunks in the order of asking)`."""
  pool, asked = object.__new__(workers.Pool), []
  pool._chunk, pool._skip = chunk, skip or {}
  pool._workers = [types.SimpleNamespace(task=None) for _ in range(num_workers)]

  def assign(worker, start):
    worker.task = start
    asked.append(start)
  late = [True]

  def collect(done):
    for i, worker in enumerate(pool._workers):
      if worker.task is not None and not (i == 0 and late[0] and len(asked) < 40):
        done[worker.task] = [f"rule{worker.task + k}" for k in range(chunk)]
        worker.task = None
    late[0] = len(asked) < pool.limit
  pool._assign, pool._collect, pool.limit = assign, collect, 10**9
  return pool, asked


def test_outcomes_come_in_order_from_any_candidate_on():
  pool, asked = pool_of(1, 4)
  pool.limit = 0
  found = list(pool.outcomes(6, 13))
  assert [index for index, _ in found] == [*range(6, 16)] and found[0][1] == "rule6" and asked[0] == 4
  assert asked[-1] == 12
  whole, asked = pool_of(2, 4)
  whole.limit = 0
  assert len(list(whole.outcomes(0, 8))) == 8 and asked == [0, 4]  # no chunk that nobody wants
  skipping, _ = pool_of(1, 4, {5: "timeout"})
  skipping.limit = 0
  assert list(skipping.outcomes(5, 8)) == [(5, "timeout"), (6, "rule6"), (7, "rule7")]


def test_others_run_ahead_of_the_slowest_by_eight_chunks_for_each_worker():
  pool, asked = pool_of(2, 4)
  ahead = pool.outcomes(0)
  seen = []
  collect = pool._collect

  def counted(done):
    seen.append(max(asked))
    if len(seen) > 40:
      raise StopIteration
    collect(done)
  pool._collect = counted
  with pytest.raises(RuntimeError):
    next(ahead)
  assert max(seen) == (8 * 2 - 1) * 4


# --- what is written ---------------------------------------------------------------------------------------------


def test_the_plan_of_a_run_is_validation_first_in_full_shards(tmp_path):
  plan = writer_lib.Plan(tmp_path, 5, 8, 4)
  assert [(split, size) for split, size, _ in plan.shards()] == [
    ("validation", 4), ("validation", 1), ("train", 4), ("train", 4)]
  assert plan.shards()[1][2] == records.shard_name("validation", 1, 2)
  assert writer_lib.Plan(tmp_path, 0, 1, 4).shards() == [("train", 1, records.shard_name("train", 0, 1))]


def outcome(text, function=1, skeleton=1):
  ids, constants = expression.encode(formula(text), Vocabulary(1))
  return candidates.Equation(bytes(ids), np.array(constants, np.float32).tobytes(), np.array([[0.0, 5.0]]), function,
    skeleton)


def writer_of(tmp_path, num_validation=1, num_train=3, shard=2, **options):
  identity = {"config": dataclasses.asdict(UNIVARIATE), "seed": 3}
  found = writer_lib.Writer(writer_lib.Plan(tmp_path / "d", num_validation, num_train, shard), identity, **{
    "info": {"packages": {}}} | options)
  found.resume()
  return found


def manifest_of(tmp_path):
  return json.loads((tmp_path / "d" / "manifest.json").read_text())


def test_a_writer_takes_equations_once_and_fills_its_shards(tmp_path):
  writer = writer_of(tmp_path, known_functions=known(9))
  assert not writer.is_done and writer.num_accepted == writer.next_candidate == 0
  assert [shard["finished"] for shard in manifest_of(tmp_path)["shards"]] == [False] * 3
  for index, made in enumerate([outcome("x + 1.5", 5), outcome("x + 1.5", 6), "too_long", outcome("sin(x)", 5),
                                outcome("cos(x)", 9), outcome("exp(x)", 7), outcome("exp(x)", 7), outcome("x**3", 8),
                                outcome("x + 2.5", 7)]):
    assert not writer.is_done
    writer.add(index, made)
  assert writer.counts == {"accepted": 4, "duplicate": 2, "too_long": 1, "in_validation": 1, "in_other_folder": 1}
  assert writer.is_done and writer.num_written == writer.num_accepted == 4 and writer.next_candidate == 9
  manifest = manifest_of(tmp_path)
  shards = manifest["shards"]
  assert [(shard["split"], shard["equations"], shard["finished"]) for shard in shards] == [
    ("validation", 1, True), ("train", 2, True), ("train", 1, True)]
  assert [shard["next_candidate"] for shard in shards] == [1, 8, 9] and shards[0]["functions"] == [5]
  assert "functions" not in shards[1] and shards[0]["counts"] == {"accepted": 1}
  assert manifest["counts"] == dict(writer.counts)
  assert manifest["false_positive_rates"] == {"duplicate": 1e-6, "seen": 1e-4} and manifest["packages"] == {}
  assert writer.manifest_path.read_text() == json.dumps(manifest, indent=1) + "\n"
  folder = tmp_path / "d"
  assert writer_lib.read_hash_file(folder, shards[1]["file"]).tolist() == [[7, 8], [1, 1]]
  functions = bloom.from_bytes((folder / writer_lib.seen_name("functions")).read_bytes(), name="f")
  assert functions.contains(np.array([5, 7, 8], np.uint64)).all() and not functions.contains(np.array([6],
    np.uint64))[0]
  assert functions.capacity == 4 and functions.false_positive_rate == 1e-4


def known(*functions):
  found = bloom.BloomFilter(10, 1e-6)
  found.add(np.array(functions, np.uint64))
  return found


def test_tokens_alone_may_be_what_comes_once(tmp_path):
  by_tokens = writer_of(tmp_path, 0, 2, unique_by_skeleton=True)
  for index, made in enumerate([outcome("x + 1.5", 5), outcome("x + 2.5", 6)]):
    by_tokens.add(index, made)
  assert by_tokens.counts == {"accepted": 1, "duplicate": 1}
  assert by_tokens.num_accepted == 1 and by_tokens.num_written == 0


def test_a_run_goes_on_after_its_last_whole_shard(tmp_path):
  writer = writer_of(tmp_path, num_train=5)
  for index, made in enumerate([outcome("x + 1.5", 5), outcome("sin(x)", 6), "timeout", outcome("cos(x)", 7),
    outcome("x", 8)]):
    writer.add(index, made)
  again = writer_of(tmp_path, num_train=5)
  assert again.num_written == 3 and again.next_candidate == 4 and again.lost == {2: "timeout"}
  assert again.counts == {"accepted": 3, "timeout": 1}
  again.add(4, outcome("sin(x)", 20))
  again.add(5, outcome("exp(x)", 5))
  assert again.counts["duplicate"] == again.counts["in_validation"] == 1 and not again.is_done
  shards = manifest_of(tmp_path)["shards"]
  (tmp_path / "d" / records.hashes_name(shards[0]["file"])).unlink()
  (tmp_path / "d" / shards[1]["file"]).write_bytes(b"damaged")
  damaged = writer_of(tmp_path, num_train=5)
  assert damaged.num_written == 1 and damaged.next_candidate == 1
  restored = writer_lib.read_hash_file(tmp_path / "d", shards[0]["file"])
  assert restored[0, 0] == exclusion.fingerprint(exclusion.probe(formula("x + 1.5"),
    UNIVARIATE)) and restored.shape == (2, 1)
  with pytest.raises(InputError, match="holds another run: seed is 3 there, 4 was asked for"):
    writer_lib.Writer(writer.plan, writer.identity | {"seed": 4}, info={}).resume()


def test_losses_are_written_down_at_once_and_once(tmp_path, monkeypatch):
  writer, written = writer_of(tmp_path, lost={7: "died"}), []
  monkeypatch.setattr(writer, "_write_manifest", lambda: written.append(dict(writer.lost)))
  for index, rule in enumerate(["timeout", "memory", "died", "too_long", "constant"]):
    writer.add(index, rule)
  assert written[-1] == {7: "died", 0: "timeout", 1: "memory", 2: "died"} and len(written) == 3
  writer.add(7, "died")
  assert len(written) == 3


def test_a_manifest_is_read_in_its_own_schema(tmp_path):
  no_object = "cannot read manifest .*manifest.json: expected a JSON object with the key 'schema_version'"
  for text, message in (("{", "cannot read manifest"), ("[]", no_object), ("{}", no_object),
                        ('{"schema_version": 2}', "has schema version 2, expected 1")):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=message):
      writer_lib.read_manifest(tmp_path)
  (tmp_path / "manifest.json").write_text('{"schema_version": 1}')
  assert writer_lib.read_manifest(tmp_path) == {"schema_version": 1}
  assert writer_lib.differences({"a": {"b": 1}}, {"a": 3}) == "a is {'b': 1} there, 3 was asked for"
  assert writer_lib.differences({"a": 3}, {"a": {"b": 1}}) == "a is 3 there, {'b': 1} was asked for"
  assert writer_lib.differences({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 5, "d": 3}, "e": 4}) == (
    "b.c is 2 there, 5 was asked for; e is None there, 4 was asked for")


def test_files_are_intact_that_have_their_hash(tmp_path):
  (tmp_path / "f").write_bytes(b"abc")
  sha256 = hashlib.sha256(b"abc").hexdigest()
  assert writer_lib.is_intact(tmp_path / "f", sha256) and not writer_lib.is_intact(tmp_path / "f", "0")
  assert not writer_lib.is_intact(tmp_path / "f", None) and not writer_lib.is_intact(tmp_path / "g", sha256)
  os.mkfifo(tmp_path / "pipe")  # reading it would wait
  assert not writer_lib.is_intact(tmp_path / "pipe", sha256) and not writer_lib.is_intact(tmp_path, sha256)
  np.array([1, 2, 3, 4], "<u8").tofile(tmp_path / records.hashes_name("s"))
  assert writer_lib.read_hash_file(tmp_path, "s").tolist() == [[1, 2], [3, 4]]
  (tmp_path / records.hashes_name("t")).write_bytes(bytes(24))
  with pytest.raises(DataError, match="cannot read hash file"):
    writer_lib.read_hash_file(tmp_path, "t")


def test_the_shares_of_strangers_that_the_documentation_names():
  """One new equation in a million is taken for a duplicate; 3.6 and 2.4 bytes an equation, 3.6 with a model."""
  assert writer_lib.DUPLICATE_RATE == 1e-6 and writer_lib.SEEN_RATE == 1e-4 and seen.RATE == 1e-3
  size = {rate: len(bloom.BloomFilter(10_000, rate).bits) / 10_000 for rate in (1e-6, 1e-4, 1e-3)}
  assert round(size[1e-6], 1) == 3.6 and round(size[1e-4], 1) == 2.4 and round(2 * size[1e-3], 1) == 3.6
  assert 13.5e6 < seen.MAX_SHIPPED_BYTES / (2 * size[1e-3]) < 14.5e6  # 14 million equations


@pytest.mark.parametrize(("changes", "message"), [
  ({"num_train": 0}, "num_train must be at least 1, got 0"),
  ({"num_validation": -1}, "num_validation must be at least 0"),
  ({"seed": -1}, "seed must be at least 0, got -1")])
def test_jobs_that_make_nothing_are_refused(changes, message):
  with pytest.raises(InputError, match=message):
    job_lib.Job(UNIVARIATE, "x", **{"num_train": 1, **changes})
  job = job_lib.Job(UNIVARIATE, "x", 1)
  assert (job.num_validation, job.seed, job.against) == (0, 0, ()) and job.excluded.endswith("excluded.csv")


@pytest.mark.parametrize(("module", "argv", "message"), [
  (generate, ["--out=x", "--equations=1"], "--config is required"), (inspect_lib, ["."], "no manifest.json in ."),
  (inspect_lib, ["--samples=3"], "expected one or more folders written by data_gen.generate, got none")])
def test_modules_are_programs(module, argv, message, monkeypatch, capsys, tmp_path):
  handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "argv", ["program", *argv])

  def forget():
    module.asked.FLAGS.unparse_flags()
    for name in module.asked.FLAGS:
      module.asked.FLAGS[name].unparse()

  forget()  # what tests of other files have set
  try:
    with pytest.raises(SystemExit) as ended:
      runpy.run_path(module.__file__, run_name="__main__")
  finally:
    for number, handler in handlers.items():
      signal.signal(number, handler)
    forget()
  assert ended.value.code == 2 and message in capsys.readouterr().err


def read_job(*argv):
  generate.asked.FLAGS.unparse_flags()
  for name in generate.asked.FLAGS:
    generate.asked.FLAGS[name].unparse()
  generate.asked.FLAGS(["generate", f"--config={univariate.__file__}", "--out=x", *argv])
  try:
    return generate._read_job()
  finally:
    generate.asked.FLAGS.unparse_flags()


def test_numbers_of_a_job_have_their_bounds():
  for name, least, most in (("equations", 1, 10**10), ("validation", 0, 10**10), ("workers", 1, 4096),
                            ("seed", 0, 2**63 - 1)):
    given = {"equations": 5} | {name: least}
    for value in (least, most):
      given[name] = value
      job = read_job(*(f"--{key}={number_}" for key, number_ in given.items()))
      assert name == "workers" or getattr(job, {"equations": "num_train", "validation": "num_validation"}.get(
        name, name)) == value
    for value, message in ((least - 1, f"--{name} must be at least {least}, got {least - 1}"),
                           (most + 1, f"--{name} must be at most {most}, got {most + 1}")):
      given[name] = value
      with pytest.raises(InputError, match=message):
        read_job(*(f"--{key}={number_}" for key, number_ in given.items()))
  assert read_job("--equations=5").num_train == 5 and read_job("--equations=5", "--exclude=").excluded is None


@pytest.mark.parametrize(("number", "at", "code"), [
  (errno.ENOSPC, "fill", 1), (errno.EMFILE, "fill", 1), (errno.EMFILE, "_write_manifest", 1),
  (errno.ENOSPC, "_write_manifest", 2), (errno.EACCES, "_write_manifest", 2)])
def test_a_disk_that_fills_on_the_way_is_no_unusable_argument(number, at, code, tmp_path, monkeypatch, capsys):
  def fail(*_):
    raise OSError(number, os.strerror(number))
  monkeypatch.setattr(generate.job_lib if at == "fill" else writer_lib.Writer, at, fail)
  monkeypatch.setattr(generate, "Pool", lambda *args, **options: contextlib.nullcontext())
  monkeypatch.setattr(generate, "_read_job", lambda: job_lib.Job(UNIVARIATE, str(tmp_path), 5))
  monkeypatch.setattr(generate, "asked", types.SimpleNamespace(
    QUIET=types.SimpleNamespace(value=True), WORKERS=types.SimpleNamespace(value=1, name="workers")))
  said = f"cannot write to {tmp_path}/symformer_equations/univariate/1.0.0: {os.strerror(number)}; the same command "
  if code == 2:
    with pytest.raises(InputError, match=re.escape(said)):
      generate.main([])
  else:
    assert generate.main([]) == 1
    assert capsys.readouterr().err == f"error: {said}continues once that is mended\n"


# --- what is shown -----------------------------------------------------------------------------------------------


class Terminal:
  def __init__(self, is_terminal):
    self.text, self.is_terminal = "", is_terminal

  def isatty(self):
    return self.is_terminal

  def write(self, text):
    self.text += text

  def flush(self):
    pass


@pytest.mark.parametrize(("is_terminal", "period"), [(True, 0.5), (False, 60)])
def test_progress_of_a_run_is_shown_now_and_then(monkeypatch, is_terminal, period):
  now, quiet = [1000.0], types.SimpleNamespace(value=False)
  monkeypatch.setattr(generate, "asked", types.SimpleNamespace(QUIET=quiet))
  monkeypatch.setattr(generate, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
  stream = Terminal(is_terminal)
  monkeypatch.setattr(generate.sys, "stderr", stream)
  counts = collections.Counter(accepted=30, a=4, b=3, c=2, d=1)
  writer = types.SimpleNamespace(num_accepted=10, counts=counts)
  progress = generate._Progress(writer, 100)
  writer.num_accepted, now[0] = 40, 1010.0
  progress.show()
  shown = "40/100 equations, 3.0/s, 0.3 min left, 10 rejected (a 4, b 3, c 2, ...)"
  assert stream.text == (f"\r{shown:<110}" if is_terminal else shown + "\n") and counts["accepted"] == 30
  stream.text = ""
  now[0] = 1010.0 + period * 0.99
  progress.show()
  assert not stream.text
  progress.show(force=True)
  assert stream.text
  stream.text = ""
  now[0] += period
  progress.show()
  assert stream.text
  stream.text, quiet.value = "", True
  progress.show(force=True)
  assert not stream.text


def test_progress_is_told_from_the_first_moment_on_and_at_once(monkeypatch):
  monkeypatch.setattr(generate, "asked", types.SimpleNamespace(QUIET=types.SimpleNamespace(value=False)))
  monkeypatch.setattr(generate, "time", types.SimpleNamespace(monotonic=lambda: 0.25))  # of a machine just begun
  stream, flushed = Terminal(True), []
  stream.flush = lambda: flushed.append(stream.text)
  monkeypatch.setattr(generate.sys, "stderr", stream)
  writer = types.SimpleNamespace(num_accepted=10, counts=collections.Counter())
  progress = generate._Progress(writer, 100)
  writer.num_accepted = 12
  progress.show()
  assert flushed == [stream.text] and stream.text.startswith("\r12/100 equations, 0.0/s, 0 rejected")


def test_without_standard_error_nothing_is_shown(monkeypatch, capsys):
  monkeypatch.setattr(generate, "asked", types.SimpleNamespace(QUIET=types.SimpleNamespace(value=False)))
  monkeypatch.setattr(sys, "stderr", None)  # as after 2>&-
  generate._Progress(types.SimpleNamespace(num_accepted=10, counts=collections.Counter()), 100).show(force=True)
  generate._say("done")
  inspect_lib._show_progress("abc")
  assert not capsys.readouterr().out


def test_a_run_tells_how_far_it_was_and_how_it_went(monkeypatch, capsys):
  quiet, given = types.SimpleNamespace(value=False), []

  class Progress:
    def __init__(self, writer, total):
      given.append(total)

    def show(self, *, force=False):
      given.append(force)

  class Pool:
    def __init__(self, generator, num_workers, *, skip):
      given.append((num_workers, skip))

    def __enter__(self):
      return "pool"

    def __exit__(self, *_):
      given.append("ended")
  monkeypatch.setattr(generate, "asked", types.SimpleNamespace(
    QUIET=quiet, WORKERS=types.SimpleNamespace(value=3, name="workers")))
  monkeypatch.setattr(generate, "_Progress", Progress)
  monkeypatch.setattr(generate, "Pool", Pool)
  monkeypatch.setattr(generate.job_lib, "fill", lambda writer, pool, on_outcome: given.append(pool) or on_outcome())
  writer = types.SimpleNamespace(is_done=False, num_written=0, lost={5: "died"}, counts=collections.Counter({
    "accepted": 9, "excluded: a": 2, "excluded: b": 1, "timeout": 4}))
  generator = types.SimpleNamespace(problems=types.SimpleNamespace(names=("a", "a", "b", "c")))
  job = types.SimpleNamespace(folder="F", num_train=7, num_validation=3, prepare=lambda: (writer, generator))
  generate._generate(job)
  assert given == [10, (3, {5: "died"}), "pool", False, "ended", True]
  told = "\nwrote {} equations to F; of 3 problems to keep out 2 were met, and dropped 3 times\n"
  assert capsys.readouterr() == ("", told.format(0))
  writer.num_written = 5
  generate._generate(job)
  assert capsys.readouterr() == ("", "continuing after 5 equations\n" + told.format(5))
  writer.is_done = True
  generate._generate(job)
  assert capsys.readouterr() == ("", "F is complete: 5 equations\n") and len(given) == 12
  quiet.value = True
  generate._generate(job)
  assert capsys.readouterr() == ("", "")


def test_shares_of_counts_are_printed(capsys):
  inspect_lib._print_counts("what", collections.Counter({"a": 1, "b": 3}), by_key=False)
  inspect_lib._print_counts("what", collections.Counter({2: 3, 1: 1}), by_key=True)
  inspect_lib._print_counts("none", collections.Counter(), by_key=True)
  assert capsys.readouterr().out == (
    "what:\n  b 3 (75.0%)  a 1 (25.0%)\nwhat:\n  1 1 (25.0%)  2 3 (75.0%)\nnone:\n  \n")
  assert inspect_lib._describe_box(np.array([[0, 5], [-2.5, 2.5]], np.float32).tobytes()) == "[0, 5] x [-2.5, 2.5]"


def test_a_line_of_progress_is_wiped_on_a_terminal(monkeypatch):
  stream = Terminal(True)
  monkeypatch.setattr(inspect_lib.sys, "stderr", stream)
  inspect_lib._show_progress("abc")
  assert stream.text == "\rabc" + " " * 57
  inspect_lib._show_progress("")
  assert stream.text.endswith("\r" + " " * 60 + "\r")
  monkeypatch.setattr(inspect_lib.sys, "stderr", Terminal(False))
  inspect_lib._show_progress("abc")
  assert not inspect_lib.sys.stderr.text


def test_damage_is_said_as_what_it_is(tmp_path):
  def shards(**files):
    found = []
    for name, content in files.items():
      if content is not None:
        (tmp_path / name).write_bytes(content)
      found.append({"file": name, "sha256": hashlib.sha256(b"a").hexdigest(), "finished": name != "open"})
    (tmp_path / "manifest.json").write_text(json.dumps({"schema_version": 1, "shards": found}))
    return inspect_lib.verify(tmp_path)
  assert len(shards(a=b"a", open=b"x")["shards"]) == 2
  for files, message in (({"b": b"x"}, "b is damaged .sha256 differs.;"), ({"c": None}, "c is missing;"),
                         ({"b": b"x", "c": None}, "b, c are missing or damaged;"),
                         ({"c": None, "d": None}, "c, d are missing;")):
    with pytest.raises(DataError, match=message):
      shards(**files)


def test_a_summary_counts_what_a_block_holds():
  vocab = Vocabulary(1)
  trees_ = [formula("sin(x) + 1.5"), formula("x + 2.5e3*sin(x)")]
  rows = [(np.array(ids, np.uint8), np.array(constants, np.float32), np.array([[0, 5]], np.float32))
          for ids, constants in (expression.encode(tree, vocab) for tree in trees_)]
  length = max(len(ids) for ids, _, _ in rows)
  padded = [(np.pad(ids, (0, length - len(ids))), np.pad(c, (0, length - len(c))), box) for ids, c, box in rows]

  class Block:
    ids, constants, domains = (np.stack(parts) for parts in zip(*padded, strict=True))
    lengths = np.array([len(ids) for ids, _, _ in rows])

    def __len__(self):
      return 2
  summary = inspect_lib.Summary(vocab, 1)
  summary.add(Block())
  summary.add(Block())
  counts = summary.counts
  assert summary.num_equations == 4 and len(summary.rows) == 1
  assert summary.rows[0][0].tolist() == rows[0][0].tolist() and len(summary.rows[0][1]) == len(rows[0][0])
  assert counts["operator"]["sin"] == 4 and counts["operator"]["+"] == 4 and counts["operator"]["*"] == 2
  assert not set(counts["operator"]) & {"x0", "x"} and sum(counts["length"].values()) == 4
  assert counts["constants"] == {1: 4} and sum(counts["constant exponent"].values()) == 4
  assert counts["domain"] == {"[0, 5]": 4}


def test_a_page_of_distributions_and_curves(tmp_path, monkeypatch):
  from matplotlib.figure import Figure
  drawn = []
  monkeypatch.setattr(Figure, "savefig", lambda self, path, *, dpi: drawn.append((self, path, dpi)))
  vocab = Vocabulary(2)
  ids, constants = expression.encode(formula("x*y + 1234.5678"), vocab)
  row = np.array(ids, np.uint8), np.array(constants, np.float32), np.array([[1, 3], [0, 4]], np.float32)
  counts = {"operator": collections.Counter({f"o{i}": 20 - i for i in range(16)}),
    "length": collections.Counter({9: 2, 3: 1})}
  ids, constants = expression.encode(formula("log(x - 2)/(y - 2)"), vocab)  # undefined where it is drawn
  other = np.array(ids, np.uint8), np.array(constants, np.float32), row[2]
  ids, constants = expression.encode(formula(" + ".join(["sin(x)*cos(y)"] * 5)), vocab)
  long = np.array(ids, np.uint8), np.array(constants, np.float32), row[2]
  inspect_lib._plot("f.png", types.SimpleNamespace(counts=counts, rows=[row, other, long], vocab=vocab))
  [(figure, path, dpi)] = drawn
  assert path == "f.png" and dpi == 110 and figure.get_size_inches().tolist() == [16, 18] and len(figure.axes) == 25
  bars, lengths, curve = figure.axes[0], figure.axes[1], figure.axes[5]
  assert [patch.get_height() for patch in bars.patches] == list(range(20, 5, -1))  # the fifteen most frequent
  assert [label.get_text() for label in lengths.get_xticklabels()] == ["3", "9"] and bars.get_title() == "operator"
  label = bars.get_xticklabels()[0]
  assert (label.get_rotation(), label.get_size()) == (90, 6) and bars.title.get_size() == 9
  [line] = curve.lines
  x = line.get_xdata()
  assert len(x) == 400 and 1 < x[0] < x[-1] < 3 and x[0] - 1 == pytest.approx(2 / 401)
  np.testing.assert_allclose(line.get_ydata(), 2 * x + 1234.568, rtol=1e-4)  # y is held at the middle of its box
  assert len(figure.axes[7].get_title()) == 45  # a page has room for no more
  assert type(figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
  assert curve.title.get_size() == 7 and "1.23e+03" in curve.get_title().replace("1230", "1.23e+03")


def test_progress_of_reading_counts_from_one(tmp_path, monkeypatch):
  told = []
  monkeypatch.setattr(inspect_lib, "_show_progress", told.append)

  class Reader(list):
    def __init__(self, path):
      super().__init__()
  monkeypatch.setattr(records, "ShardReader", Reader)
  monkeypatch.setattr(records, "find_shards", lambda folder, split: ["a", "b"])
  assert inspect_lib.summarize(tmp_path, "train", Vocabulary(1), 3).num_equations == 0
  assert told == ["reading train shard 1 of 2", "reading train shard 2 of 2", ""]
  told.clear()
  (tmp_path / "manifest.json").write_text(json.dumps({"schema_version": 1, "shards": [
    {"file": "f", "sha256": hashlib.sha256(b"a").hexdigest(), "finished": True}]}))
  (tmp_path / "f").write_bytes(b"a")
  inspect_lib.verify(tmp_path)
  assert told == ["checking shard 1 of 1", ""]


def test_rates_are_of_the_cpu_of_all_workers():
  own = benchmark._cpu_seconds([os.getpid()])
  assert 0.05 < own < 1e5 and benchmark._cpu_seconds([]) == 0
  assert abs(own - time.thread_time()) < max(1.0, 0.3 * own)  # of this thread, the first of its process


def test_files_are_read_as_they_were_written_in_any_locale(tmp_path, monkeypatch, other_locale):
  assert benchmark._cpu_seconds([os.getpid()]) > 0
  monkeypatch.setattr(workers.resource, "setrlimit", lambda which, given: None)
  workers._limit_memory()
  (tmp_path / "manifest.json").write_bytes(b'{"schema_version": 1}')
  assert writer_lib.read_manifest(tmp_path) == {"schema_version": 1}
  (tmp_path / "p.csv").write_bytes("family,name,n_vars,expression\nf,\u00e9,1,x\n".encode())
  assert exclusion.read_problems(tmp_path / "p.csv", UNIVARIATE).names == ("\u00e9",)


def test_what_another_run_has_lost_is_read_from_its_folder_or_its_manifest(tmp_path):
  identity = {"config": {"name": "u"}, "seed": 3, "excluded": "a"}
  path = tmp_path / "manifest.json"

  def read(lost, at=path, **changes):
    path.write_text(json.dumps({"schema_version": 1, "identity": {**identity, **changes}, "lost": lost}))
    return job_lib._read_lost(str(at), identity)
  assert job_lib._read_lost(None, identity) == {}
  for at in (path, tmp_path):
    assert read({"5": "died", "17": "timeout"}, at, excluded="b") == {5: "died", 17: "timeout"}
  for changes, message in (({"seed": 4}, "seed is 4 there, 3 was asked for"),
                           ({"config": {"name": "v"}}, "config.name is 'v' there, 'u' was asked for")):
    with pytest.raises(InputError, match=f"is of another run: {message}$"):
      read({}, **changes)
  for lost in ({"x": "died"}, [], 3):
    with pytest.raises(DataError, match="is damaged: "):
      read(lost)
  read({"5": "died"})
  path.rename(tmp_path / "of_another_machine.json")
  assert job_lib._read_lost(str(tmp_path / "of_another_machine.json"), identity) == {5: "died"}


def test_the_next_node_has_the_share_of_the_trees_that_go_on_from_it():
  """Of six trees with two inner nodes two begin with a unary one; of two open nodes the first may be left a leaf."""
  assert trees._placements(1, 2) == ([pytest.approx(2 / 6), pytest.approx(1.0)], ((0, 1), (0, 2)))
  cumulative, places = trees._placements(2, 1)
  assert cumulative == pytest.approx([0.25, 0.5, 0.75, 1.0]) and places == ((0, 1), (0, 2), (1, 1), (1, 2))


def test_filters_of_just_the_bytes_that_ship_are_written(tmp_path, monkeypatch):
  filters = tuple(bloom.BloomFilter(10, 1e-3) for _ in seen.KINDS)
  found = seen.Seen((seen.Part(filters, seen.ProbeSpace(1, 5.0), 10),))
  size = sum(len(each.to_bytes()) for each in filters)
  for most, is_written in ((size, True), (size - 1, False)):
    monkeypatch.setattr(seen, "MAX_SHIPPED_BYTES", most)
    assert (seen.write(tmp_path, found) is not None) is is_written


def test_where_the_larger_boxes_have_no_value_a_smaller_one_is_found(rng):
  with np.errstate(all="ignore"):
    for text, box in (("log(-x)", [-5, 0]), ("log(x)", [0, 5]), ("sqrt(-x)", [-5, 0])):
      assert domains.find_box(formula(text), rng, UNIVARIATE)[0].tolist() == [box]


def test_progress_is_seen_at_once_and_a_plot_has_a_place(monkeypatch, tmp_path):
  stream, flushed = Terminal(True), []
  stream.flush = lambda: flushed.append(stream.text)
  monkeypatch.setattr(inspect_lib.sys, "stderr", stream)
  inspect_lib._show_progress("abc")
  assert len(flushed) == 1 and "abc" in flushed[0]
  monkeypatch.setattr(inspect_lib, "asked", types.SimpleNamespace(
    PLOT=types.SimpleNamespace(value=str(tmp_path / "no" / "f.png")), SEEN=types.SimpleNamespace(value=None)))
  with pytest.raises(InputError, match="--plot"):
    inspect_lib.main(["inspect"])


def test_a_run_without_equations_ends_after_as_many_candidates_as_the_documentation_says():
  assert job_lib.MAX_FRUITLESS == 20_000


def test_usual_factors_are_those_of_textbooks():
  draw, found = object.__new__(laws._Draw), []
  for k in range(18):
    draw.rng = Draws(0.5, (k + 0.5) / 18)
    found.append(draw._coefficient())
  pi = math.pi
  circles = [pi, 2 * pi, 4 * pi, 8 * pi, 4 / 3 * pi, 0.5 / pi, 0.25 / pi]
  plain = [0.5, 2, 3, 4, 1 / 3, 0.25, 1.5, 0.1, 10, 100, -1]
  assert sorted(found) == pytest.approx(sorted([*circles, *plain]))


def test_agreement_is_of_trees_that_pass_and_that_simplify_keeps_short(monkeypatch):
  long = [1] * 51
  # By tree, what each setting makes of it; the first does not pass the numeric tests.
  made = [{}, {"simplify": [], "fast": [1], "rules": [1]}, {"simplify": [1, 2], "fast": [1, 2], "rules": [3]},
          {"simplify": long, "fast": long, "rules": long}, {"simplify": [1], "fast": [], "rules": [1]},
          {"simplify": long[1:], "fast": [1] * 8, "rules": long[1:]}]
  seconds, drawn = iter(range(1000)), []

  def draw(rng):
    drawn.append(rng.random())
    return len(drawn) - 1
  monkeypatch.setattr(benchmark, "time", types.SimpleNamespace(process_time=lambda: 10.0 + next(seconds)))
  monkeypatch.setattr(benchmark.trees, "TreeSampler", lambda config: types.SimpleNamespace(sample=draw))
  monkeypatch.setattr(benchmark, "Generator", lambda config, seed, problems: types.SimpleNamespace(
    _judge=lambda tree, rng: ("linear" if tree == 0 else "", None, None)))
  monkeypatch.setattr(benchmark, "_tokens", lambda tree, setting, generator: made[tree][setting])
  found = benchmark.measure_agreement(UNIVARIATE, 3, seed=5)
  assert drawn == [np.random.default_rng((5, index)).random() for index in range(6)]
  # Each look at a tree takes one second: six trees are drawn, five simplified.
  assert found == {setting: {"agreement": agreement, "equations_per_s": 3 / (5 + 6), "tokens": tokens}
                   for setting, agreement, tokens in (
                     ("simplify", 1.0, 53 / 3), ("fast", 1 / 3, 10 / 3), ("rules", 2 / 3, 52 / 3))}


def test_tokens_of_a_setting_are_those_of_its_formula_and_none_where_it_fails(monkeypatch, alarm):
  config = dataclasses.replace(UNIVARIATE, simplify_digits=3)
  generator = candidates.Generator(config, 0, exclusion.read_problems(None, config))
  asked, simplified = [], simplify.simplify
  monkeypatch.setattr(simplify, "simplify", lambda *args, **options: asked.append(options) or simplified(
    *args, **options))
  expected = expression.encode(simplified(formula("1.23456*sin(x)"), "rules", digits=3), generator.vocab)[0]
  assert benchmark._tokens(formula("1.23456*sin(x)"), "rules", generator) == expected and asked == [{"digits": 3}]
  monkeypatch.setattr(simplify, "simplify", lambda *_, **__: np.exp(np.float64(1e3)) and X)
  assert benchmark._tokens(X, "rules", generator) == [generator.vocab.ids["x0"]]  # what overflows is no failure
  monkeypatch.setattr(simplify, "simplify", lambda *_, **__: 1 / 0)
  assert benchmark._tokens(X, "rules", generator) == []


def test_a_pool_looks_every_second_for_what_hangs_and_takes_what_is_ready(monkeypatch):
  waited, replaced = [], []
  ready = types.SimpleNamespace(recv=lambda: ["a", "b"])

  def fail():
    raise EOFError
  dead, silent = types.SimpleNamespace(recv=fail), types.SimpleNamespace()
  pool = object.__new__(workers.Pool)
  pool._hang_limit_s, pool._num_early, pool._replace = 60, 5, lambda i, rule: replaced.append((i, rule))
  pool._workers = [types.SimpleNamespace(pipe=pipe, task=workers._Task(64 * i, 64 * i + 64, ()),
                                         is_hung=lambda limit_s, is_it=is_hung: is_it and limit_s == 60)
                   for i, (pipe, is_hung) in enumerate(((dead, True), (ready, True), (silent, True), (silent, False)))]
  monkeypatch.setattr(workers.connection, "wait", lambda pipes, timeout=None: waited.append((pipes, timeout)) or [
    ready, dead])
  done = {}
  pool._collect(done)
  assert waited == [([dead, ready, silent, silent], 1.0)] and replaced == [(0, "died"), (2, "timeout")]
  assert done == {64: ["a", "b"]} and pool._workers[1].task is None and pool._num_early == 0
  pool._workers = [types.SimpleNamespace(process=types.SimpleNamespace(pid=pid)) for pid in (5, None, 7)]
  assert pool.process_ids == [5, 7]


def test_signals_wait_until_a_worker_has_started(monkeypatch):
  caught, own = [], signal.getsignal(signal.SIGTERM)

  def catch(number, frame):
    caught.append(number)
  signal.signal(signal.SIGTERM, catch)
  try:
    with workers._signals_held():
      signal.raise_signal(signal.SIGTERM)
      assert not caught and signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert caught == [signal.SIGTERM] and signal.getsignal(signal.SIGTERM) is catch
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    inside = []

    def elsewhere():  # only the main thread may say what a signal does
      with workers._signals_held():
        inside.append(signal.getsignal(signal.SIGTERM) is catch)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert inside == [True]
  finally:
    signal.signal(signal.SIGTERM, own)
  given = []  # a handler that was not set from Python comes back as the default
  monkeypatch.setattr(workers.signal, "signal", lambda number, handler: given.append((number, handler)))
  monkeypatch.setattr(workers.startup, "stop_signals", lambda: [signal.SIGHUP])
  with workers._signals_held():
    pass
  assert given[-1] == (signal.SIGHUP, signal.SIG_DFL)


def test_workers_end_with_the_process_that_started_them():
  started, closed = [], []
  child = types.SimpleNamespace(close=lambda: closed.append("child"))

  def process(**options):
    started.append(options)
    return types.SimpleNamespace(start=lambda: None)
  context = types.SimpleNamespace(Pipe=lambda: ("pipe", child), RawArray=lambda kind, size: [0] * size, Process=process)
  worker = workers._Worker(context, "generator")
  assert started == [{"target": workers._serve, "args": (child, worker.progress, "generator"), "daemon": True}]
  assert closed == ["child"] and worker.task is None and len(worker.progress) >= 2
  assert worker.last_count < 0 and 0 <= time.monotonic() - worker.last_change < 60  # no count of candidates


def test_a_pool_is_timed_from_the_second_chunk_of_each_worker_on(monkeypatch):
  asked, looks = [], iter((2.0, 8.0))
  walls, owns = iter((10.0, 14.0)), iter((1.0, 1.5))
  long = candidates.Equation(bytes(5), np.array([0, 1.5, 0, 2.5, 0], np.float32).tobytes(), np.zeros((1, 2)), 1, 1)
  short = candidates.Equation(bytes(3), np.zeros(3, np.float32).tobytes(), np.zeros((1, 2)), 2, 2)

  class Pool:
    process_ids = (7,)

    def __init__(self, generator, num_workers, *, skip):
      asked.append((generator.seed, num_workers, skip))

    def __enter__(self):
      return self

    def __exit__(self, *_):
      asked.append("ended")

    def outcomes(self, start, stop):
      asked.append((start, stop))
      return iter([(start, long), (start + 1, "too_long"), (start + 2, short), (start + 3, "constant")])

  class Writer:
    def __init__(self, plan, identity, *, info):
      asked.append((plan.num_validation, plan.num_train, plan.shard_equations, identity, info))
      self.counts, self.num_accepted, self.indices = collections.Counter(), 0, []

    def resume(self):
      asked.append("resumed")

    def add(self, index, outcome):
      asked.append(index)
      self.num_accepted += not isinstance(outcome, str)
      self.counts["" if isinstance(outcome, str) else "accepted"] += 1
  monkeypatch.setattr(benchmark, "Pool", Pool)
  monkeypatch.setattr(benchmark, "Writer", Writer)
  monkeypatch.setattr(benchmark, "_cpu_seconds", lambda numbers: next(looks) if numbers == (7,) else 0)
  monkeypatch.setattr(benchmark, "time", types.SimpleNamespace(
    perf_counter=lambda: next(walls), process_time=lambda: next(owns)))
  found = benchmark.measure_scaling(UNIVARIATE, 2, 100, seed=5)
  assert asked == [(5, 2, {}), (0, 164, UNIVARIATE.shard_equations, {}, {}), "resumed", (0, 128), (128, 228),
                   128, 129, 130, 131, "ended"]
  # Tokens and one for the length; four bytes for a constant, and eight for a box.
  assert found == {"workers": 2, "candidates": 4, "accepted": 0.5, "equations_per_cpu_s": 2 / 6, "equations_per_s": 0.5,
                   "cores": 1.5, "writer_ms": 250.0, "bytes": (5 + 1 + 8 + 8 + 3 + 1 + 8) / 2}


def test_what_folders_have_in_common_is_counted_by_functions_and_by_skeletons(monkeypatch):
  hashes = {"first": [[[1, 2], [5, 6]], [[3], [7]]], "second": [[[1, 3, 9, 3], [5, 8, 9, 4]], [[2], [8]]]}
  monkeypatch.setattr(writer_lib, "iterate_hashes", lambda folder: map(np.array, hashes[folder]))
  assert inspect_lib.count_common("first", "second") == (4, 1)
  assert inspect_lib.count_common("second", "first") == (3, 1)


def test_a_folder_is_described_line_by_line(monkeypatch, capsys):
  vocab = Vocabulary(1)
  ids, constants = expression.encode(formula("x + 1.234567"), vocab)
  row = np.array(ids, np.uint8), np.array(constants, np.float32), np.array([[0, 5]], np.float32)
  counts = {"operator": collections.Counter(a=1, b=2), "length": collections.Counter({9: 2, 3: 1}),
            "constants": collections.Counter({5: 3, 2: 1}), "domain": collections.Counter(c=1, d=2)}
  manifest = {"identity": {"config": dataclasses.asdict(UNIVARIATE), "excluded_problems": ["p", "q", "r"]},
              "shards": [{"file": "f", "split": split, "equations": 4, "finished": done, "sha256": "s"}
                         for split, done in (
                           ("validation", True), ("train", True), ("train", True), ("train", False))],
              "counts": {"accepted": 3, "excluded: p": 1, "excluded: q": 3, "timeout": 5}, "lost": {"7": "died"}}
  asked = types.SimpleNamespace(**{name: types.SimpleNamespace(value=value) for name, value in (
    ("SEEN", "x**2"), ("SAMPLES", 2), ("PLOT", "f.png"))})
  summarized, drawn = [], []
  monkeypatch.setattr(inspect_lib, "asked", asked)
  monkeypatch.setattr(inspect_lib, "verify", lambda folder: manifest)
  monkeypatch.setattr(inspect_lib, "count_seen", lambda text, folder, config: (len(text), config.num_variables))
  monkeypatch.setattr(inspect_lib, "_plot", lambda path, summary: drawn.append((path, summary.split)))

  def summarize(folder, split, vocab, num_samples):
    summarized.append((folder, split, vocab.num_variables, num_samples))
    return types.SimpleNamespace(num_equations=4, counts=counts, rows=[row] * 3, split=split)
  monkeypatch.setattr(inspect_lib, "summarize", summarize)
  inspect_lib.inspect("D")
  assert summarized == [("D", "validation", 1, 20), ("D", "train", 1, 20)] and drawn == [("f.png", "train")]
  shown = ["operator:", "  b 2 (66.7%)  a 1 (33.3%)", "length:", "  3 1 (33.3%)  9 2 (66.7%)", "constants:",
           "  2 1 (25.0%)  5 3 (75.0%)", "domain:", "  d 2 (66.7%)  c 1 (33.3%)",
           *["   x0 + 1.2346 [[0.0, 5.0]]"] * 2]
  assert capsys.readouterr().out.splitlines() == [
    "D: 3 of 4 shards finished, all intact", "candidates:",
    "  timeout 5 (41.7%)  excluded 4 (33.3%)  accepted 3 (25.0%)", "of 3 test problems met and dropped:",
    "  q 3 (75.0%)  p 1 (25.0%)", "x**2: 4 equations compute it, 1 have its skeleton",
    "candidates lost to time and memory limits: {'7': 'died'}", "", "validation: 4 equations", *shown, "",
    "train: 4 equations", *shown]
  asked.SEEN.value, asked.PLOT.value, asked.SAMPLES.value, manifest["lost"] = None, None, 30, {}
  inspect_lib.inspect("D")
  out = capsys.readouterr().out
  assert summarized[2][3] == 30 and len(drawn) == 1 and out.count("[[0.0, 5.0]]") == 6 and "lost" not in out


def test_a_folder_that_was_not_there_goes_again_where_nothing_is_written(tmp_path):
  job = job_lib.Job(UNIVARIATE, str(tmp_path / "out"), 1)
  with job.claimed():
    assert job.folder.is_dir()
  assert not (tmp_path / "out").exists()
  job.folder.mkdir(parents=True)
  with job.claimed():
    (job.folder / "kept").touch()
  assert (job.folder / "kept").exists()


def test_what_other_folders_hold_is_known_by_a_digest_of_each(monkeypatch):
  hashes = {"a": [np.array([[1, 2, 3], [7, 7, 7]], "<u8"), np.array([[4], [7]], "<u8")],
            "b": [np.array([[5], [8]], "<u8")]}
  monkeypatch.setattr(writer_lib, "find_folders", lambda directory: list(directory))
  monkeypatch.setattr(writer_lib, "iterate_hashes", hashes.__getitem__)
  found, digests = job_lib._read_functions(("ab",))
  assert digests == [hashlib.sha256(np.array(functions, "<u8").tobytes()).hexdigest()[:16]
                     for functions in ([1, 2, 3, 4], [5])]
  assert found.contains(np.array([1, 2, 3, 4, 5, 7, 8], np.uint64)).tolist() == [True] * 5 + [False] * 2
  assert found.capacity == 5 and found.false_positive_rate == 1e-6 and job_lib._read_functions(()) == (None, [])


def test_a_job_hands_what_it_was_asked_to_its_writer_and_generator(tmp_path):
  lost = tmp_path / "lost" / "manifest.json"

  def prepare(config, **options):
    job = job_lib.Job(config, str(tmp_path / str(len(list(tmp_path.iterdir())))), 3, 2, seed=5, **options)
    lost.parent.mkdir(exist_ok=True)
    lost.write_text(json.dumps({
      "schema_version": 1, "identity": {"config": config_lib.as_dict(config), "seed": 5}, "lost": {"7": "died"}}))
    return job.prepare()
  writer, generator = prepare(UNIVARIATE, excluded=None)
  assert isinstance(generator.problems, exclusion.Exclusion) and generator.seed == 5 and not writer.lost
  assert not writer._unique_by_skeleton and writer._known_functions is None and "against" not in writer.identity
  assert (writer.identity["equations"], writer.identity["validation"], writer.identity["seed"]) == (3, 2, 5)
  assert writer.identity["excluded_problems"] == [] and writer.plan.num_train == 3 and writer.plan.num_validation == 2
  writer, generator = prepare(dataclasses.replace(LAWS, unique="skeleton"), excluded=None, lost_in=str(lost))
  assert isinstance(generator.problems, shapes.Shapes) and writer.lost == {7: "died"} and writer._unique_by_skeleton
  assert manifest_at(writer)["packages"].keys() == {"python", "sympy", "numpy"}


def manifest_at(writer):
  return json.loads(writer.manifest_path.read_text())


def test_a_worker_serves_until_its_pipe_is_closed(monkeypatch):
  tasks, sent = [workers._Task(0, 64, ()), workers._Task(64, 128, (70,))], []

  def receive():
    if not tasks:
      raise EOFError
    return tasks.pop(0)
  monkeypatch.setattr(workers, "_limit_memory", lambda: None)
  monkeypatch.setattr(workers, "make_chunk", lambda generator, task, progress: (generator, task.start, progress))
  workers._serve(types.SimpleNamespace(recv=receive, send=sent.append), [0, 0], "generator")
  assert sent == [("generator", 0, [0, 0]), ("generator", 64, [0, 0])]


def test_a_worker_that_was_given_a_task_is_at_no_candidate_yet():
  worker, sent = object.__new__(workers._Worker), []
  worker.progress, worker.pipe, task = [5, 7], types.SimpleNamespace(send=sent.append), workers._Task(64, 128, ())
  worker.give(task)
  assert worker.progress[0] < 0 and worker.progress[1] == 7 and sent == [task] and worker.task is task


def test_a_chunk_goes_without_what_is_known_to_be_lost_in_it(monkeypatch):
  pool, given = object.__new__(workers.Pool), []
  pool._chunk, pool._skip = 64, dict.fromkeys((63, 64, 100, 127, 128), "died")
  pool._assign(types.SimpleNamespace(give=given.append), 64)
  assert given == [workers._Task(64, 128, (64, 100, 127))]


@pytest.mark.parametrize(("task", "at"), [(None, 70), (workers._Task(64, 128, ()), -1)])
def test_a_worker_that_dies_at_no_candidate_costs_none(monkeypatch, task, at):
  pool, given = object.__new__(workers.Pool), []
  pool._chunk, pool._skip, pool.num_replaced, pool._num_early, pool._context, pool._generator = 64, {}, 0, 0, None, None
  pool._workers = [types.SimpleNamespace(progress=[at, 3], task=task, stop=lambda: None)]
  monkeypatch.setattr(workers, "_Worker", lambda *_: types.SimpleNamespace(give=given.append))
  pool._replace(0, "died")
  assert pool._skip == {} and (pool.num_replaced, pool._num_early) == (1, 1) and given == ([task] if task else [])


def test_formulas_without_variables_are_numbers():
  assert simplify.simplify(formula("exp(2) + 1"), "simplify", digits=4) == number(8.389)
  assert simplify.simplify(formula("2/3"), "simplify", digits=4) == number(0.6667)
