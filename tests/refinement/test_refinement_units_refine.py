"""What `refine` does around the compiled fit, which is made up here: starts, padding, results, bounds, what is held."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.errors import InputError
from symformer_jax.language import constants as constants_lib, expression, parser, printing
from symformer_jax.refinement import bounded, inputs, named, refine as refine_lib, snapping, solve, special_values
from symformer_jax.refinement.named import NamedFormula
from symformer_jax.refinement.problem import STATUS_TEXT, Status
from symformer_jax.refinement.refine import refine
from symformer_jax.refinement.results import RefineResult


def formula_of(text, *names, columns=("x",)):
  return NamedFormula(parser.parse(text, columns, allow_symbols=True), names)


def result_of(names, values, *, status=Status.CONVERGED, num_undefined=0, node=None):
  num = len(names)
  return RefineResult(
    dict(zip(names, values, strict=True)), dict.fromkeys(names, 0.5), 1.0, status, STATUS_TEXT[status], 9, 0.1,
    np.full((num, num), 0.25), dict.fromkeys(names, True), num_undefined, node, ("x",))


# --- the call --------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
  """What is fitted; every constant comes out as 7."""
  found = []

  def fit_sets(formula, sets, starts, method, max_steps, *, has_sigma, has_start=False):
    found.append(SimpleNamespace(formula=formula, sets=sets, starts=starts, method=method, max_steps=max_steps,
                                 has_sigma=has_sigma))
    return [result_of(formula.names, [7.0] * len(formula.names), node=formula.node) for _ in sets]

  monkeypatch.setattr(refine_lib, "_fit_sets", fit_sets)
  return found


X, Y = np.arange(1.0, 7), np.arange(6.0)


def test_one_data_set_by_its_columns(asked):
  found = refine("a*x + b", X, Y, start={"a": 2.5})
  [call] = asked
  assert call.formula.names == ("a", "b") and call.starts.shape == (32, 2) and call.starts[0, 0] == 2.5
  assert (call.method, call.max_steps, call.has_sigma) == ("lm", 40 * 50, False)
  [(x, y, weights, names)] = call.sets
  assert x.tolist() == X[:, None].tolist() and y.tolist() == Y.tolist() and weights.tolist() == [1] * 6
  assert names == ("x", "x0") and found.constants == {"a": 7.0, "b": 7.0} and found.snapped is None
  refine("a*x0 + b", X, Y)  # another name of the one column
  assert asked[-1].formula.node == call.formula.node


@pytest.mark.parametrize(("method", "steps"), [("lm", 2000), ("bfgs", 8000), ("gd", 12_000)])
def test_steps_go_by_the_method_unless_they_are_given(method, steps, asked):
  refine("a*x", X, Y, method=method)
  refine("a*x", X, Y, method=method, max_steps=9, num_starts=3, sigma=0.5)
  assert [(call.method, call.max_steps, len(call.starts)) for call in asked] == [(method, steps, 32), (method, 9, 3)]
  assert asked[1].has_sigma and asked[1].sets[0][2].tolist() == [4] * 6


def test_starts_are_drawn_by_the_seed(asked):
  for seed in (0, 0, 1):
    refine("a*x", X, Y, seed=seed)
  first, again, other = (call.starts for call in asked)
  assert np.array_equal(first, again) and not np.array_equal(first, other)
  refine("a*x", X, Y)
  assert np.array_equal(asked[-1].starts, first)


def test_several_data_sets_have_several_results(asked):
  found = refine("a*x", [X, X[:5]], [Y, Y[:5]], sigma=[0.5, None])
  assert isinstance(found, list) and len(found) == 2 and asked[0].has_sigma
  assert [weights.tolist() for _, _, weights, _ in asked[0].sets] == [[4] * 6, [1] * 5]
  assert not isinstance(refine("a*x", X.tolist(), Y.tolist()), list)
  assert len(refine("a*x", [X], [Y])) == 1


def test_what_is_held_is_no_constant_of_the_fit(asked):
  found = refine("a*x + b + c", X, Y, hold={"b": 0.5})
  assert asked[0].formula.names == ("a", "c") and list(found.constants.items()) == [("a", 7), ("b", 0.5), ("c", 7)]
  assert found.stderr == {"a": 0.5, "b": 0.0, "c": 0.5} and found.is_identifiable["b"] is True


def test_only_what_leaves_its_bounds_is_fitted_within_them(asked, monkeypatch):
  calls = []

  def fit_within(formula, data, starts, box, method, max_steps, rng, *, has_sigma, has_start):
    calls.append((formula.names, data[0].shape, starts.shape, box, method, max_steps, has_sigma))
    return formula_of("x + b", "b"), result_of(("b",), [3.0]), {"a": 5.0}

  monkeypatch.setattr(refine_lib, "_fit_within", fit_within)
  assert refine("a*x + b", X, Y, bounds={"a": (0, 7.0)}).constants == {"a": 7, "b": 7} and not calls
  found = refine("a*x + b", X, Y, bounds={"a": (0, 5.0)}, hold={}, num_starts=4, max_steps=6, method="gd", sigma=1.0)
  assert calls == [(("a", "b"), (6, 1), (4, 2), {"a": (0.0, 5.0)}, "gd", 6, True)]
  assert found.constants == {"a": 5.0, "b": 3.0} and math.isnan(found.stderr["a"]) and found.stderr["b"] == 0.5


def test_exact_values_are_looked_for_where_they_are_asked_for(asked, monkeypatch):
  calls = []
  monkeypatch.setattr(refine_lib, "_snap", lambda formula, data, result, *, has_sigma: calls.append(
    (formula.names, has_sigma)) or result)
  refine("a*x", X, Y)
  assert not calls
  refine("a*x", X, Y, snap=True, sigma=2.0)
  assert calls == [(("a",), True)]


@pytest.mark.parametrize(("options", "message"), [
  ({"method": "newton"}, "unknown method 'newton': expected one of lm, bfgs, gd"),
  ({"start": {"aa": 1.0}}, "start names 'aa', the formula's constants are a, b; did you mean 'a'?"),
  ({"start": {"q": 1.0}}, "start names 'q', the formula's constants are a, b$"),
  ({"start": {"a": math.inf}}, "start of 'a' must be finite, got inf"),
  ({"hold": {"a": 1.0}, "start": {"a": 1.0}}, "hold: 'a' has a start as well"),
  ({"bounds": {"c": (0, 1)}}, "bounds: the formula has no constant 'c'")])
def test_mistakes_are_named(options, message, asked):
  with pytest.raises(InputError, match=message):
    refine("a*x + b", X, Y, **options)


def test_x_beside_numbered_columns_is_a_mistake_unless_it_has_a_start(asked):
  two = np.ones((6, 2)) * X[:, None]
  with pytest.raises(InputError, match="'x' is no column: the 2 columns of an array are x0 ... x1"):
    refine("a*x + x0", two, Y)
  assert refine("a*x + x0", two, Y, start={"x": 1.0}).constants == {"a": 7.0, "x": 7.0}
  with pytest.raises(InputError, match="start names 'q', the formula's constants are none"):
    refine("x0*2", two, Y, start={"q": 1.0})


def test_constants_of_a_guess_are_drawn_and_filled_in(asked):
  node = parser.parse("a*x + b", ("x",), allow_symbols=True)
  found = refine_lib.draw_fillings(node, num=5, seed=3)
  assert len(found) == 5 and len(set(found)) == 5 and found == refine_lib.draw_fillings(node, num=5, seed=3)
  assert refine_lib.draw_fillings(node, num=5) != found
  x, weights = X[:, None], np.arange(1.0, 7)
  assert refine_lib.fill_in(node, x, Y, weights) == node
  assert (asked[0].method, asked[0].max_steps, asked[0].has_sigma, asked[0].starts.shape) == ("lm", 400, False, (32, 2))
  assert asked[0].sets[0][2] is weights
  plain = parser.parse("2*x", ("x",))
  assert refine_lib.fill_in(plain, x, Y, weights) is plain and len(asked) == 1
  refine_lib.fill_in(node, x, Y, weights, seed=5)
  assert not np.array_equal(asked[0].starts, asked[1].starts)


# --- programs and starts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_tokens", "length"), [(31, 32), (33, 64)])
def test_programs_have_one_of_few_lengths(num_tokens, length):
  text = " + ".join(["x"] * ((num_tokens + 1) // 2))
  assert len(formula_of(text).ids) == length == len(formula_of(text).slots) == len(formula_of(text).values)


@pytest.mark.parametrize(("num", "slots"), [(0, 4), (1, 4), (4, 4), (5, 8), (8, 8)])
def test_programs_have_one_of_few_numbers_of_slots(num, slots):
  names = [f"c{i}" for i in range(num)]
  assert formula_of(" + ".join([*names, "x"]), *names).num_slots == slots


def test_tokens_slots_and_numbers_of_a_program():
  formula = formula_of("2.5*z + a", "a", columns=("x", "z"))
  assert formula.vocab.num_variables == 2 and formula_of("a + 1", "a").vocab.num_variables == 1
  tokens = [formula.vocab.tokens[i] for i in formula.ids[:5]]
  assert tokens[0] == "+" and "x1" in tokens and formula.slots.max() == 0 and list(formula.slots).count(0) == 1
  [at] = np.flatnonzero(formula.values)
  assert formula.values[at] == 2.5 and formula.ids[at] == formula.vocab.first_constant_id
  slot = int(np.flatnonzero(formula.slots == 0)[0])
  assert formula.ids[slot] == formula.vocab.first_constant_id and slot != at


def test_what_is_drawn_spreads_further_with_each_start():
  names = tuple(f"c{i}" for i in range(4000))
  start = dict.fromkeys(names, -3.0)
  found = refine_lib._draw_starts(names, start, 3, np.random.default_rng(0))
  assert np.all(found[0] == -3) and np.all(found < 0)
  spreads = np.log(found[1:] / -3).std(axis=1)
  np.testing.assert_allclose(spreads, [1.15, 2.0], rtol=0.04)
  early = refine_lib._draw_starts(names, start, 200, np.random.default_rng(0))
  np.testing.assert_allclose(np.log(early[1] / -3).std(), 0.3, rtol=0.07)


def test_half_of_the_starts_are_those_of_the_generator_and_half_of_any_size():
  names = tuple(f"c{i}" for i in range(2000))
  found = refine_lib._draw_starts(names, {}, 4, np.random.default_rng(0))
  drawn = constants_lib.sample_constants(np.random.default_rng(0), (4, 2000))
  np.testing.assert_array_equal(found[::2], drawn[::2])
  np.testing.assert_array_equal(np.sign(found), np.sign(drawn))
  decades = np.log10(np.abs(found[1::2]))
  assert -4 <= decades.min() < -3.95 and 2.95 < decades.max() <= 3 and abs(decades.mean() + 0.5) < 0.1


# --- the fits --------------------------------------------------------------------------------------------------------


def test_data_sets_are_padded_to_one_shape(monkeypatch):
  asked = []

  def fit_starts(program, starts, x, y, weights, *, method, max_steps, is_persistent):
    assert is_persistent
    asked.append((program, starts, x, y, weights, method, max_steps))
    return solve.Fit(starts, *[np.arange(len(y) * starts.shape[1]).reshape(len(y), -1)] * 4)

  monkeypatch.setattr(solve, "fit_starts", fit_starts)
  monkeypatch.setattr(NamedFormula, "program", lambda self: "program")
  monkeypatch.setattr(refine_lib, "_result", lambda formula, data, fit, has_sigma: (
    data[3], fit.loss.tolist(), has_sigma))
  sets = [(np.arange(1.0, num + 1)[:, None], np.arange(float(num)), np.full(num, 2.0), name)
          for num, name in ((65, "first"), (3, "second"))]
  formula = formula_of("a*x + b", "a", "b")
  found = refine_lib._fit_sets(formula, sets, np.array([[1.0, 2], [3, 4]]), "gd", 9, has_sigma=True)
  (program, starts, x, y, weights, method, max_steps), = asked
  assert (program, method, max_steps) == ("program", "gd", 9) and starts.shape == (2, 2, 4)
  assert starts[1].tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]
  assert x.shape == (2, 128, 1) and y.shape == weights.shape == (2, 128)
  assert x[0, 64:, 0].tolist() == [65] * 64 and y[0, 64:].tolist() == [64] + [0] * 63
  assert weights[1].tolist() == [2] * 3 + [0] * 125 and x[1, 2:, 0].tolist() == [3] * 126
  assert found == [("first", [0, 1], True), ("second", [2, 3], True)]
  refine_lib._fit_sets(formula, [(np.ones((64, 1)), np.ones(64), np.ones(64), "")], np.ones((1, 2)), "lm", 9,
                       has_sigma=False)
  assert asked[-1][3].shape == (1, 64)


def evaluated(monkeypatch, function, slopes):
  """The formula's values and derivatives by hand; how often they were asked for."""
  asked = []

  def evaluator(formula, x):
    def evaluate(constants):
      asked.append(constants.copy())
      rows = np.zeros((1 + len(constants), len(x)))
      rows[0] = function(constants, x[:, 0])
      for i, slope in enumerate(slopes):
        rows[1 + i] = slope(constants, x[:, 0])
      return rows
    return evaluate
  monkeypatch.setattr(NamedFormula, "evaluator", evaluator)
  return asked


def test_constants_of_columns_of_any_size_are_finished(monkeypatch):
  """Each column in its own size: by one size for all, the small one would be nothing."""
  formula, weights = formula_of("a*x + b", "a", "b"), np.arange(1.0, 7)
  evaluated(monkeypatch, lambda c, x: c[0] * x + 1e-20 * c[1], [lambda c, x: x, lambda c, x: 1e-20 + 0 * x])
  values, _ = refine_lib._finish(formula, np.array([5.0, 1e20]), (X[:, None], 2 * X + 3, weights, ()))
  assert values == pytest.approx([2, 3e20], rel=1e-9)


def test_the_last_steps_end_where_nothing_is_gained(monkeypatch):
  formula = formula_of("a*x", "a")
  x, weights = X[:, None], np.arange(1.0, 7)
  asked = evaluated(monkeypatch, lambda c, x: c[0] * x, [lambda c, x: x])
  values, rows = refine_lib._finish(formula, np.array([5.0]), (x, Y, weights, ()))
  best = np.sum(weights * X * Y) / np.sum(weights * X * X)
  assert values[0] == pytest.approx(best, rel=1e-12) and values.shape == (1,) and len(asked) <= 4
  np.testing.assert_allclose(rows[0], best * X)
  # A slow one: half of the way to a cube root of 0 each time, ten times.
  asked = evaluated(monkeypatch, lambda c, x: c[0] ** 2 * x, [lambda c, x: 2 * c[0] * x])
  values, _ = refine_lib._finish(formula, np.array([1.0]), (x, 0 * Y, weights, ()))
  assert values[0] == pytest.approx(2.0**-10) and len(asked) == 11
  for slope in (lambda c, x: np.where(x > 3, np.nan, 1), lambda c, x: 0 * x):
    asked = evaluated(monkeypatch, lambda c, x: c[0] * x, [slope])
    assert refine_lib._finish(formula, np.array([5.0]), (x, Y, weights, ()))[0][0] == 5 and len(asked) == 1
  asked = evaluated(monkeypatch, lambda c, x: np.where(x > 3, np.nan, c[0]), [lambda c, x: x])
  assert refine_lib._finish(formula, np.array([5.0]), (x, Y, weights, ()))[0][0] == 5 and len(asked) == 1


def fit_of(values, loss, *, status=0, num_undefined=None):
  num = len(loss)
  return solve.Fit(np.array(values), np.array(loss), np.full(num, status), np.ones(num),
                   np.zeros(num, int) if num_undefined is None else np.array(num_undefined))


def test_a_result_is_that_of_the_best_start(monkeypatch):
  monkeypatch.setattr(refine_lib, "_finish", lambda formula, values, data: (
    values, np.stack([values[0] * data[0][:, 0], data[0][:, 0]])))
  formula, weights = formula_of("a*x", "a"), np.arange(1.0, 7)
  fit = fit_of([[9.0, 0, 0, 0], [2.0, 0, 0, 0]], [3.0, 1.0])
  data = X[:, None], Y, weights, ("x", "x0")
  found = refine_lib._result(formula, data, fit, False)
  residual = 2 * X - Y
  rss = np.sum(weights * residual**2)
  assert found.constants == {"a": 2.0} and found.rss == pytest.approx(rss) and found.dof == 5
  assert found.residual_std == pytest.approx(math.sqrt(rss / 5))
  assert found.stderr["a"] == pytest.approx(math.sqrt(rss / 5 / np.sum(weights * X**2)))
  assert found.covariance.shape == (1, 1) and found.is_identifiable == {"a": True} and found.names == ("x",)
  assert (found.status, found.message, found.num_undefined) == (Status.CONVERGED, "converged", 0)
  assert printing.to_text(found.node, ("x",)) == "2*x"
  with_sigma = refine_lib._result(formula, data, fit, True)
  assert with_sigma.stderr["a"] == pytest.approx(math.sqrt(1 / np.sum(weights * X**2)))
  lost = refine_lib._result(formula, data, fit_of([[2.0, 0, 0, 0]], [math.inf], status=4, num_undefined=[2]), False)
  assert lost.rss == math.inf and lost.num_undefined == 2 and lost.status == Status.UNDEFINED
  assert lost.message == STATUS_TEXT[Status.UNDEFINED] + " (2 of 6 points)"


def test_exact_values_stand_beside_the_fit_unless_a_column_has_their_name(monkeypatch):
  formula = formula_of("a*x + b", "a", "b")
  two_pi = special_values.SpecialValue(2 * math.pi, expression.Node("*", (expression.number(2), expression.symbol(
    "pi"))), 9.0)
  asked = []

  def snap(evaluate, values, y, weights, *, has_sigma):
    asked.append((evaluate(values).shape, values.tolist(), has_sigma))
    return snapping.Snapped(np.array([2 * math.pi, 1.5]), (two_pi, None), np.array([0.0, 0.25]), 3.0, 0.5)

  monkeypatch.setattr(snapping, "snap", snap)
  evaluated(monkeypatch, lambda c, x: c[0] * x + c[1], [])
  result = result_of(("a", "b"), [6.28, 1.49])
  found = refine_lib._snap(formula, (X[:, None], Y, np.ones(6), ("x", "x0")), result, has_sigma=True)
  assert asked == [((3, 6), [6.28, 1.49], True)] and found.constants == result.constants
  snapped = found.snapped
  assert snapped.constants == {"a": 2 * math.pi, "b": 1.5} and snapped.exact == {"a": "2*pi"}
  assert (snapped.stderr, snapped.rss, snapped.p_value) == ({"a": 0.0, "b": 0.25}, 3.0, 0.5)
  assert snapped.expression == "2*pi*x + 1.5"
  assert snapped.names == ("x",)
  of_pi = refine_lib._snap(formula, (X[:, None], Y, np.ones(6), ("pi",)), result, has_sigma=False)
  assert of_pi.snapped.exact == {} and "pi" not in printing.to_text(of_pi.snapped.node, ("x",))
  lost = result_of(("a", "b"), [1.0, 2.0], num_undefined=1)
  assert refine_lib._snap(formula, (X[:, None], Y, np.ones(6), ("x",)), lost, has_sigma=False) is lost
  bare = formula_of("2*x")
  assert refine_lib._snap(bare, (X[:, None], Y, np.ones(6), ("x",)), result, has_sigma=False) is result


# --- within bounds ---------------------------------------------------------------------------------------------------


def within(monkeypatch, best, fitted, *, box=None, names=("a", "b")):
  """`_fit_within` where the descent ends so and the free fit of the others comes out as given, one after the other."""
  asked, fits = [], list(fitted)

  def descend(evaluate, starts, y, weights, bounds, *, max_steps):
    asked.append(("descend", starts.shape, [each.tolist() for each in bounds], max_steps, evaluate(starts[0]).shape))
    return best

  def fit_sets(formula, sets, values, method, max_steps, *, has_sigma):
    asked.append(("fit", formula.names, np.shape(values), np.asarray(values)[0].tolist(), method, max_steps, has_sigma))
    return [fits.pop(0)]

  monkeypatch.setattr(bounded, "descend_from_all", descend)
  monkeypatch.setattr(refine_lib, "_fit_sets", fit_sets)
  monkeypatch.setattr(NamedFormula, "program", lambda self: "program")
  monkeypatch.setattr(named, "_run", lambda program, constants, columns: np.zeros(
    (1 + len(constants), columns.shape[1])))
  reduced, result, held = refine_lib._fit_within(
    formula_of("a*x + b", "a", "b"), (X[:, None], Y, np.ones(6), ("x",)), np.zeros((3, 2)),
    {"a": (0.0, 5.0)} if box is None else box, "lm", 9, np.random.default_rng(0), has_sigma=True, has_start=False)
  return reduced.names, result, held, asked


def found_at(constants, is_at_bound, *, is_done=True):
  return bounded.Found(np.array(constants), 1.0, np.array(is_at_bound), is_done, 1.0)


def test_what_stands_at_a_bound_is_held_there_and_the_others_are_fitted(monkeypatch):
  names, result, held, asked = within(
    monkeypatch, found_at([5.0, 1.0], [True, False]), [result_of(("b",), [1.1])])
  assert names == ("b",) and held == {"a": 5.0} and result.at_bound == ("a",)
  assert asked == [("descend", (3, 2), [[0, -math.inf], [5, math.inf]], 9, (3, 6)),
                   ("fit", ("b",), (3, 1), [1.0], "lm", 9, True)]
  assert result.message == "converged; at a bound: a" and result.status == Status.CONVERGED


def test_a_descent_that_ends_inside_is_a_free_fit(monkeypatch):
  names, result, held, _ = within(
    monkeypatch, found_at([4.0, 1.0], [False, False]), [result_of(("a", "b"), [4.1, 1.1])])
  assert names == ("a", "b") and held == {} and result.at_bound == () and result.message == "converged"


@pytest.mark.parametrize(("status", "is_done", "expected"), [
  (Status.NO_CONSTANTS, True, Status.CONVERGED), (Status.NO_CONSTANTS, False, Status.STEP_LIMIT),
  (Status.CONVERGED, False, Status.STEP_LIMIT), (Status.DIVERGED, False, Status.DIVERGED),
  (Status.DIVERGED, True, Status.DIVERGED), (Status.CONVERGED, True, Status.CONVERGED)])
def test_a_fit_within_bounds_has_converged_where_its_descent_is_done(status, is_done, expected, monkeypatch):
  _, result, _, _ = within(monkeypatch, found_at([5.0, 1.0], [True, False], is_done=is_done),
                           [result_of(("b",), [1.1], status=status)])
  assert result.status == expected and result.message == STATUS_TEXT[expected] + "; at a bound: a"


def test_a_free_fit_that_leaves_the_bounds_is_not_taken(monkeypatch):
  names, result, held, asked = within(
    monkeypatch, found_at([4.0, 1.0], [False, False], is_done=False),
    [result_of(("a", "b"), [5.1, 1.1]), result_of((), [])])
  assert names == () and held == {"a": 4.0, "b": 1.0} and result.status == Status.STEP_LIMIT
  assert asked[2][:3] == ("fit", (), (3, 0)) and result.message == STATUS_TEXT[Status.STEP_LIMIT]
  assert result.at_bound == ()


def test_bounds_may_be_one_sided_and_numbers_of_any_kind():
  check = inputs.check_bounds
  assert check(["a"], {}, {}, {"a": (np.float32(1), None)}) == {"a": (1.0, math.inf)}
  assert check(["a"], {}, {}, {"a": np.array([0.0, 2.0])}) == {"a": (0.0, 2.0)}
  assert check(["a"], {"a": 2.0}, {}, {"a": [0, 2]}) == {"a": (0.0, 2.0)} == check(["a"], {"a": 0.0}, {}, {"a": [0, 2]})
  for limits in ({0, 1}, 3, (0,), (None, "1")):
    with pytest.raises(InputError, match="bounds: 'a' takes"):
      check(["a"], {}, {}, {"a": limits})
  for start in (-0.1, 2.1):
    with pytest.raises(InputError, match="bounds: the start of 'a' must be from 0 to 2"):
      check(["a"], {"a": start}, {}, {"a": (0, 2)})


def test_starts_on_their_bounds_stay():
  starts = np.array([[0.0], [1.0], [-0.5], [1.5]])
  found = refine_lib._draw_within(starts, np.zeros(1), np.ones(1), np.random.default_rng(0))
  assert found[:2].tolist() == [[0], [1]] and np.all((found[2:] > 0) & (found[2:] < 1))
