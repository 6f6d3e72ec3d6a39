"""The local model of a formula: derivatives against SymPy, covariance against SciPy, what is held."""

import numpy as np
import pytest
from scipy import optimize
import sympy

from symformer_jax.language import expression, parser, programs, sympy_trees
from symformer_jax.refinement import local as local_lib
from symformer_jax.refinement.local import LocalModel

NAMES = ("x", "y", "z")
FORMULAS = (
  "2.5*exp(-0.31*x)*cos(4.2*x + 0.51)", "1.7*x**2.3/(0.6 + y**1.5)", "log(1.3 + x*y) - 0.7*sqrt(y + 1.2)",
  "3.1*arctan(2.2*x) + 7.5", "x + 1e-13")


def _model(text, x, noise=0.0, rng=None):
  node = parser.parse(text, NAMES)
  y = expression.evaluate(node, x) + (noise * rng.normal(size=len(x)) if noise else 0.0)
  return LocalModel(node, x, y, np.ones(len(x)), floor=1e-14)


@pytest.mark.parametrize("text", FORMULAS)
def test_derivatives_are_those_of_sympy(text, rng):
  x = rng.uniform(0.2, 3, (50, 3))
  model = _model(text, x)
  symbols = sympy.symbols(f"c0:{len(model.theta)}")
  # Each constant becomes a symbol of its own, in prefix order.
  named = _named(model.node, iter([s.name for s in symbols]))
  formula = sympy_trees.to_sympy(named, NAMES).subs({sympy.Symbol(s.name): s for s in symbols})
  variables = [next((s for s in formula.free_symbols if s.name == n), sympy.Symbol(n)) for n in NAMES]
  free = {s.name: s for s in formula.free_symbols}
  constants = [free[s.name] for s in symbols]
  for i, constant in enumerate(constants):
    slope = sympy.lambdify([*variables, *constants], formula.diff(constant), "numpy")
    expected = np.broadcast_to(slope(*x.T, *model.theta), len(x))
    np.testing.assert_allclose(model.jacobian[:, i], expected, rtol=1e-9, atol=1e-12)


def _named(node, names):
  if programs.is_constant(node):
    return expression.symbol(next(names))
  return node._replace(args=tuple(_named(arg, names) for arg in node.args)) if node.args else node


def test_values_are_those_of_numpy_whatever_the_padding(rng):
  for num in (5, 64, 65, 300):
    x = rng.uniform(0.2, 3, (num, 3))
    model = _model("1.7*z**2.3 + 0.6*x", x)
    np.testing.assert_allclose(model.predict(model.theta), expression.evaluate(model.node, x), rtol=1e-13)
    assert model.jacobian.shape == (num, 3) and model.sum_of_squares < 1e-20


def test_covariance_is_that_of_scipy_under_weights(rng):
  x, weights = rng.uniform(0.2, 3, (80, 3)), rng.uniform(0.1, 4, 80)
  node = parser.parse("2.5*exp(-0.31*x) + 0.7", NAMES)
  model = LocalModel(node, x, expression.evaluate(node, x) + 0.05 * rng.normal(size=80), weights, floor=1e-14)
  model.refit()
  found, covariance = optimize.curve_fit(
    lambda u, a, b, c: a * np.exp(b * u) + c, x[:, 0], model.y, p0=[2, -0.2, 1], sigma=weights**-0.5)
  np.testing.assert_allclose(model.theta, found, rtol=1e-4)
  np.testing.assert_allclose(model.covariance(), covariance, rtol=1e-3)


def test_constants_that_rounding_alone_tells_apart_have_variances():
  """Their matrix may be singular to the last bit though its condition number is below that of rounding: this one is."""
  jacobian = np.array([
    [224070.2898842109, 3768229.6206657956, 3544159.8302466646],
    [224070.21641155978, -2559457.390356874, -2783527.1067886995],
    [224070.79894981088, 207944.77907429417, -16125.519882851142],
    [224070.1727780832, -1281792.874572048, -1505862.5473561594],
    [224089.42240747856, 5846.331492748917, -218242.5909434573]])
  model = _model("2.5*x + 1.5*y + 0.7*z", np.ones((5, 3)))
  model.jacobian = jacobian
  variances = np.diag(model.covariance())
  assert not np.isnan(variances).any() and np.all(variances > 0)


def test_what_is_fixed_moves_the_others_to_where_they_fit_best_beside_it(rng):
  x, weights = rng.uniform(1, 3, (40, 3)), rng.uniform(0.1, 4, 40)
  node = parser.parse("2.5*x + 1.5*y + 0.7", NAMES)
  model = LocalModel(node, x, expression.evaluate(node, x) + 0.1 * rng.normal(size=40), weights, floor=1e-14)
  model.refit()
  at = int(np.argmin(np.abs(model.theta - 2.5)))
  model.fix(at, 3.0, model.covariance())
  root = np.sqrt(weights)
  design = root[:, None] * np.column_stack([x[:, 1], np.ones(40)])
  expected = np.linalg.lstsq(design, root * (model.y - 3 * x[:, 0]), rcond=None)[0]
  np.testing.assert_allclose(np.delete(model.theta, at), expected, rtol=1e-6)
  assert model.theta[at] == 3 and model.is_free.tolist() == [i != at for i in range(3)]


def test_what_overflows_has_an_infinite_loss(rng):
  model = _model("2.5*x + 1.5*y + 0.7", rng.uniform(1, 3, (40, 3)))
  assert model.loss(1e200 * model.theta) == np.inf and np.isfinite(model.loss(1e100 * model.theta))


def test_an_exponent_that_must_be_whole_is_held(rng):
  x = rng.uniform(-2, 2, (40, 3))
  model = _model("1.3*x**6 + 0.5", x)
  assert model.theta.tolist() == [1.3, 6.0, 0.5] and model.is_free.tolist() == [True, False, True]
  assert _model("1.3*x**6 + 0.5", np.abs(x)).is_free.all()


def test_a_formula_without_constants_or_columns_has_a_model(rng):
  x = rng.uniform(1, 2, (20, 3))
  assert _model("x*y", x).sum_of_squares == 0 and _model("x*y", x).covariance().shape == (0, 0)
  assert _model("7.3", x).jacobian.tolist() == [[1.0]] * 20


@pytest.mark.parametrize("num_rows", [70, 40_000])
def test_many_lists_of_constants_are_evaluated_as_each_alone(rng, num_rows):
  x = rng.uniform(-2, 2, (num_rows, 1))
  model = LocalModel(parser.parse("1.5*x**2.5 + exp(0.3*x) - 4.2", ["x"]), np.abs(x), x[:, 0], np.ones(num_rows),
                     floor=0.0)
  thetas = model.theta + 0.1 * rng.normal(size=(19, len(model.theta)))
  np.testing.assert_allclose(model.predict_many(thetas), [model.predict(theta) for theta in thetas], rtol=1e-14)
  np.testing.assert_allclose(model.losses(thetas), [model.loss(theta) for theta in thetas], rtol=1e-13)
  assert len(model._tapes) == -(-num_rows // local_lib.CHUNK_ROWS)
