"""Atoms: columns are what their formulas compute, and formulas keep the rules."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, printing
from symformer_jax.selection import scoring
from symformer_jax.sources.sums import library
from symformer_jax.sources.sums.families import MONOMIAL
from symformer_jax.sources.sums.library import Atoms

# The same families and operators on coarse grids.
COARSE = dataclasses.replace(
  DEFAULT.library, num_waves=20, num_multiplied_waves=5, num_other_waves=5, num_plane_waves=3, num_decaying_waves=5,
  rates=(0.1, 50.0, 4), decays=(0.3, 20.0, 2), distances=(0.003, 5.0, 3), num_places=3, widths=(0.02, 1.0, 2))
BOXES = {"positive": (0.1, 5.0), "around 0": (-5.0, 5.0), "negative": (-3.0, -0.5), "far": (280.0, 400.0)}


def points(low, high, num_variables, rng, num_rows=80):
  return rng.uniform(low, high, (num_rows, num_variables))


def are_there(texts, atoms, x):
  """Whether each of these formulas is an atom: its column is looked for by value, and its formula is read."""
  names = tuple("xyzuv")[: x.shape[1]]
  found = []
  for text in texts:
    values = scoring.evaluate(parser.parse(text, names), x)
    is_equal = np.all(np.abs(atoms.columns - (values / np.abs(values).max())[:, None]) < 1e-5, axis=0)
    found.append(text in {printing.to_text(atoms.node(int(i)), names) for i in np.flatnonzero(is_equal)})
  return found


@pytest.mark.parametrize("num_variables", [1, 2, 3, 5])
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_columns_are_what_the_formulas_compute(box, num_variables, rng):
  x = points(*box, num_variables, rng)
  atoms = Atoms(x, range(num_variables))
  assert atoms.columns.dtype == np.float32 and atoms.columns.shape == (80, len(atoms.groups))
  assert np.isfinite(atoms.columns).all() and np.abs(atoms.columns).max() <= 1
  assert np.ptp(atoms.columns, axis=0).min() > 0
  ends = np.flatnonzero(np.diff(atoms.groups, append=-1))
  # Of many families of one member some.
  ends = ends if len(ends) < 400 else rng.choice(ends, 400, replace=False)
  for index in {*ends.tolist(), *rng.integers(0, len(atoms.groups), 100).tolist()}:
    node = atoms.node(index)
    np.testing.assert_allclose(
      scoring.evaluate(node, x), atoms.scale(index) * atoms.columns[:, index], rtol=1e-5,
      atol=1e-6 * atoms.scale(index), err_msg=printing.to_text(node, tuple("xyzuv")))


def test_functions_of_functions(rng):
  texts = ("cos(2*log(x))", "sin(exp(x))", "1/(cos(x) + 1)", "exp(log(x)*x)", "exp(arctan(x))")
  for num_variables, expected in ((1, True), (2, True), (3, False)):
    x = points(0.1, 5.0, num_variables, rng)
    found = are_there(texts, Atoms(x, range(num_variables)), x)
    assert all(found) == expected and any(found) == expected


def test_atoms_are_some_ten_thousand(rng):
  for num_variables, most in ((1, 30_000), (2, 40_000), (3, 90_000), (9, 90_000), (64, 90_000)):
    assert 3000 < len(Atoms(points(0.1, 5.0, num_variables, rng), range(num_variables)).groups) < most


def test_of_many_variables_there_are_products_of_several_and_of_functions(rng):
  x = points(0.1, 5.0, 5, rng)
  texts = ("x*y*z", "x*y/(u*v)", "x**2*z/u", "(x - y)**2", "cos(z)*x*y", "sin(2*x)*y/z", "exp(-x)*u*v")
  assert all(are_there(texts, Atoms(x, range(5)), x))


@pytest.mark.parametrize(("forbidden", "allowed"), [
  (["exp"], "sin(x)"), (["sin", "cos"], "exp(x)"), (["inv"], "x**2"), (["*"], "exp(x)"), (["+"], "log(x)"),
  (["pow", "pow2"], "1/x"), (["neg"], "x*y")])
def test_no_atom_has_a_forbidden_operator(forbidden, allowed, rng):
  atoms = Atoms(points(0.1, 5.0, 2, rng), (0, 1), lambda token: token not in forbidden, config=COARSE)
  nodes = [atoms.node(index) for index in range(len(atoms.groups))]
  assert not {part.token for node in nodes for part in expression.walk(node)} & set(forbidden)
  assert allowed in {printing.to_text(node, ("x", "y")) for node in nodes}


def test_only_the_given_columns_occur(rng):
  atoms = Atoms(points(0.1, 5.0, 2, rng), (1,))
  ends = np.flatnonzero(np.diff(atoms.groups, append=-1))
  named = {part.value for index in ends.tolist() for part in expression.walk(atoms.node(index))
           if part.token == expression.VARIABLE}
  assert named == {1}


def test_monomials_are_marked(rng):
  atoms = Atoms(points(0.1, 5.0, 2, rng), (0, 1))
  texts = {printing.to_text(atoms.node(int(i)), ("x", "y")) for i in np.flatnonzero(atoms.tiers == MONOMIAL)}
  assert {"x", "y**2", "x*y", "x/y**2", "sqrt(x)*y"} <= texts
  nodes = [atoms.node(int(i)) for i in np.flatnonzero(atoms.tiers == MONOMIAL)]
  used = {part.token for node in nodes for part in expression.walk(node) if part.args}
  assert used == {"*", "inv", "pow", "pow2", "pow3", "sqrt"}


@pytest.mark.parametrize("num_variables", [2, 3, 5])
def test_no_monomial_stands_there_twice(num_variables, rng):
  atoms = Atoms(points(0.1, 5.0, num_variables, rng), range(num_variables))
  texts = [printing.to_text(atoms.node(int(i)), tuple("xyzuv")) for i in np.flatnonzero(atoms.tiers == MONOMIAL)]
  assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("num_variables", [30, 60])
def test_of_any_number_of_variables_there_are_products_of_two(num_variables, rng):
  names = tuple(f"v{i}" for i in range(num_variables))
  atoms = Atoms(points(0.1, 5.0, num_variables, rng), range(num_variables))
  texts = {printing.to_text(atoms.node(int(i)), names) for i in np.flatnonzero(atoms.tiers == MONOMIAL)}
  assert {"v0", "v29", "v3*v17"} <= texts


@pytest.mark.parametrize("x", [
  np.full((10, 1), 2.0), np.tile([[1.0, 2.0]], (6, 1)), np.linspace(0, 1e-150, 9)[:, None],
  np.linspace(1e150, 1e155, 9)[:, None], np.repeat([[0.0], [1.0]], 5, axis=0), np.zeros((5, 1))])
def test_odd_points_are_no_reason_to_fail(x):
  atoms = Atoms(x, range(x.shape[1]))
  assert np.isfinite(atoms.columns).all()
  for index in range(0, len(atoms.groups), 97):
    assert np.isfinite(atoms.scale(index))
    atoms.node(index)


def test_columns_equal_up_to_a_factor_are_one():
  seen = set()
  x = np.linspace(0.5, 3, 20)
  first = np.stack([x, x**2, -2 * x, np.sin(1e-3 * x)], axis=1)
  np.testing.assert_array_equal(library._is_new(first / np.abs(first).max(axis=0), seen), [True, True, False, True])
  again = np.stack([np.sqrt(x**4), x + 1e-7 * x**2, x**3], axis=1)
  np.testing.assert_array_equal(library._is_new(again / np.abs(again).max(axis=0), seen), [False, True, True])


def test_the_simplest_of_equal_columns_stays():
  x = np.random.default_rng(0).uniform(0.5, 3, (40, 1))
  texts = [printing.to_text(atoms.node(i), ("x",)) for atoms in [library.Atoms(x, [0])] for i in range(21)]
  assert "x**2" in texts and "x" in texts
  whole = library.Atoms(x, [0])
  squares = [i for i in range(whole.columns.shape[1])
             if np.allclose(np.abs(whole.columns[:, i]), (x[:, 0] / x.max()) ** 2, rtol=1e-6, atol=0)]
  assert [printing.to_text(whole.node(i), ("x",)) for i in squares] == ["x**2"]


def test_a_column_of_two_values_is_no_argument_of_functions(rng):
  x = np.column_stack([rng.uniform(1, 3, 90), rng.integers(0, 2, 90)])
  for columns in ((0, 1), (1,)):
    atoms = library.Atoms(x, columns)
    nodes = [atoms.node(i) for i in range(len(atoms.tiers))]
    assert [node for node in nodes if expression.columns_of(node) == {1}] == [expression.variable(1)]
  assert len(nodes) == 1
  without = dataclasses.replace(DEFAULT.library, families=())
  assert not len(library.Atoms(x, (0, 1), config=without).tiers)
