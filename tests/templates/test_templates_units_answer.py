"""Parts of a template's answer by themselves: the form and its fillings, data of one function, lines put together."""

import dataclasses
import types

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser, printing, programs, templates, units as units_lib
from symformer_jax.language.expression import number, variable
from symformer_jax.results import Constant, Equation
from symformer_jax.selection.select import Selection
from symformer_jax.templates import answer
from symformer_jax.templates.answer import Filling, Form
from symformer_jax.templates.profile import Part, Problem

NAMES = ("x", "t", "z")


@pytest.fixture
def x(rng):
  return np.column_stack([rng.uniform(0.2, 5, 40), rng.uniform(0, 3, 40), rng.uniform(1, 4, 40)])


def parse(text):
  return parser.parse(text, NAMES)


def problem_of(text, x=None, y=None, *, values=None, weights=None, units=None):
  read = templates.read(text, NAMES)
  parts = tuple(Part(unknown, (None, None, None), tuple(NAMES[i] for i in unknown.columns), 1.0)
                for unknown in read.unknowns)
  rows = None if x is None else Rows(x, y, np.ones(len(x)) if weights is None else weights)
  return Problem(read, rows, values or {}, parts, units)


def line(text, mse=0.0):
  return Equation(parse(text), NAMES, mse, None, None, ())


# --- the form --------------------------------------------------------------------------------------------------------


def test_parts_with_numbers_that_are_known_are_columns(x):
  form = Form(templates.read("f(x)*exp(-t/2.5) + 9.81*z**2 + 2*t + a*exp(-t/2.5)*z", NAMES))
  assert [printing.to_text(each, NAMES) for each in form.known] == ["exp(-t/2.5)", "9.81*z**2"]
  assert printing.to_text(templates.fill(form.node, {"f": variable(0)}, {"a": 7.5}), [*NAMES, "p", "q"]) == (
    "x*p + q + 2*t + 7.5*p*z")
  wide = form.widen(x)
  np.testing.assert_allclose(wide, np.column_stack([x, np.exp(-x[:, 1] / 2.5), 9.81 * x[:, 2] ** 2]))


def test_what_is_put_in_comes_out_again(x):
  form = Form(templates.read("f(x)*exp(-k*t) + b*t + g(z)**2.5", NAMES))
  filling = Filling({"f": parse("x**1.5 + 2.5"), "g": parse("3.5/z")}, {"k": 0.7, "b": -2.5})
  assert form.filling(form.whole(filling)) == filling
  y = (x[:, 0] ** 1.5 + 2.5) * np.exp(-0.7 * x[:, 1]) - 2.5 * x[:, 1] + (3.5 / x[:, 2]) ** 2.5
  np.testing.assert_allclose(expression.evaluate(form.whole(filling), form.widen(x)), y)
  np.testing.assert_allclose(expression.evaluate(form.written(filling), x), y)


def test_parameters_that_are_small_integers_are_fitted_all_the_same():
  form = Form(templates.read("f(x)*exp(-k*t)", NAMES))
  for value in (2.0, 0.0, -5.0, 7.0, 0.5):
    whole = form.whole(Filling({"f": variable(0)}, {"k": value}))
    assert programs.fitted_values(whole) == [value if value in (7.0, 0.5) else value + 1e-9]
  moved = answer._with_values(parse("2.5*x + 3.5"), np.array([2.0, 4.25]))
  assert programs.fitted_values(moved) == [2.0 + 1e-9, 4.25]


def test_constants_know_which_parameter_they_are():
  form = Form(templates.read("f(x)*exp(-k*t) + b*t + g(z)", NAMES))
  whole = form.whole(Filling({"f": parse("1.5*x + 2.5"), "g": parse("z**3.5")}, {"k": 0.7, "b": 2.0}))
  owners = answer._owners(form, whole)
  assert len(owners) == len(programs.fitted_values(whole)) == 5
  assert {name: value for name, value in zip(owners, programs.fitted_values(whole), strict=True) if name} == {
    "k": 0.7, "b": pytest.approx(2.0)}


def test_columns_of_a_function_are_its_own_or_those_of_the_table():
  unknown = templates.Unknown("f", (2, 0))
  inner = parser.parse("u - v**2", ("u", "v"))
  assert answer._outward(inner, unknown) == parse("z - x**2") and answer._inward(parse("z - x**2"), unknown) == inner


# --- what is put together --------------------------------------------------------------------------------------------


def test_first_formulas_of_each_function_and_the_simplest_are_put_together():
  config = dataclasses.replace(DEFAULT.templates, num_combined=(5, 2, 1))
  found = [[parse(text) for text in texts] for texts in (("x**2 + 1", "sin(x)*2", "x", "cos(x)"), ("exp(x)*x", "x*2"))]
  problem = problem_of("f(x)*g(t)", values={"k": 1.5})
  fillings = answer._combined(problem, found, config)
  assert all(each.values == {"k": 1.5} for each in fillings)
  assert [tuple(printing.to_text(node, NAMES) for node in each.functions.values()) for each in fillings] == [
    (f, g) for f in ("x**2 + 1", "2*sin(x)", "x") for g in ("exp(t)*t", "2*t")]
  one = answer._combined(problem_of("f(t)"), [[parse("x*2"), *found[0]] * 2], config)
  assert [printing.to_text(each.functions["f"], NAMES) for each in one] == [
    "2*t", "t**2 + 1", "2*sin(t)", "t", "cos(t)"]
  three = answer._combined(problem_of("f(x) + g(t) + h(z)"), [found[0]] * 3, config)
  assert len(three) == 2**3  # the first and the simplest
  # Of more functions than the config knows as of the most that it does.
  assert len(answer._combined(problem_of("f(x) + g(t) + h(z)"), [found[0]] * 3,
                              dataclasses.replace(config, num_combined=(5, 2)))) == 3**3


def test_what_fits_is_ordered_by_description_length(monkeypatch):
  form, asked = Form(templates.read("f(x) + t", NAMES)), {}
  mean_squares = {"x*2.5": 0.01, "x**2": 0.02, "x": np.inf, "x*3.5": 0.011, "x*1.5": 0.0, "sin(x)*4.5": 0.01}

  def fit(given, **options):
    [(_, wholes)] = given
    asked.update(options, num=len(wholes))
    by_whole = {form.whole(Filling({"f": parse(text)}, {})): mse for text, mse in mean_squares.items()}
    return [[(whole, by_whole[whole]) for whole in wholes]]

  monkeypatch.setattr(answer.refine, "fit_constants", fit)
  pool = DEFAULT.pool
  def term(num):
    return expression.chain("+", [parse(f"{i}.5*x") for i in range(1, num + 1)])
  too_long = parse("+".join(["x"] * 32))  # with + t of 65 tokens
  task = types.SimpleNamespace(variance=1.0, rows=range(40))
  fillings = [Filling({"f": node}, {}) for node in [
    *map(parse, mean_squares), too_long, term(pool.max_constants + 1)]]
  found = answer._fit(form, task, fillings, SearchOptions())
  assert asked == {"num": 6, "method": "lm", "max_steps": pool.polish_steps, "max_constants": pool.max_constants}
  texts = [printing.to_text(each.functions["f"], NAMES) for each in found]

  def cost(text):
    node = form.whole(Filling({"f": parse(text)}, {}))
    fit = answer.criteria.Fit(max(mean_squares[text], 2.0**-46), expression.complexity(node),
                              len(programs.fitted_values(node)))
    return answer.criteria.mdl(fit, num_points=40, variance=1.0)
  assert texts == [printing.to_text(parse(text), NAMES)
                   for text in sorted((text for text in mean_squares if text != "x"), key=cost)]


@pytest.mark.parametrize(("num_tokens", "is_tried"), [(64, True), (66, False)])
def test_programs_of_sixty_four_tokens_are_fitted(monkeypatch, num_tokens, is_tried):
  form, seen = Form(templates.read("f(x) + t", NAMES)), []
  monkeypatch.setattr(answer.refine, "fit_constants", lambda given, **_: seen.extend(given[0][1]) or [[]])
  node = expression.chain("+", [variable(0)] * ((num_tokens - 2) // 2))
  node = expression.Node("sin", (node,))  # sin + n + (n - 1), beside + t
  assert programs.size(form.whole(Filling({"f": node}, {}))) == num_tokens
  task = types.SimpleNamespace(variance=1.0, rows=range(40))
  answer._fit(form, task, [Filling({"f": node}, {})], SearchOptions())
  assert bool(seen) == is_tried
  seen.clear()
  many = expression.chain("+", [number(i + 0.5) for i in range(DEFAULT.pool.max_constants)])
  answer._fit(form, task, [Filling({"f": many}, {})], SearchOptions())
  assert len(seen) == 1


# --- data of one function --------------------------------------------------------------------------------------------


def test_what_is_left_of_y_is_shared_by_the_slope(x, rng):
  y, weights = rng.uniform(1, 2, 40), rng.uniform(0.5, 2, 40)
  problem = problem_of("f(x)*g(t)*exp(-k*z)", x, y, weights=weights)
  best = Filling({"f": parse("x + 1.5"), "g": parse("t + 0.5")}, {"k": 0.3})
  f, g, decay = x[:, 0] + 1.5, x[:, 1] + 0.5, np.exp(-0.3 * x[:, 2])
  for part, own, other, column in ((problem.parts[0], f, g, 0), (problem.parts[1], g, f, 1)):
    columns, target, found = answer._linearized(best, problem, part)
    np.testing.assert_array_equal(columns, x[:, [column]])
    np.testing.assert_allclose(target, own + (y - f * g * decay) / (other * decay))
    np.testing.assert_allclose(found, weights * (other * decay) ** 2)


def test_rows_that_say_nothing_or_have_no_value_are_left_out(x):
  x[:, 1] = 10.0
  x[0, 1], x[1, 1], x[2, 1], x[3, 1] = 0.0, 0.9e-5, 1.1e-5, 1.2e-5
  problem = problem_of("f(x)*t", x, x[:, 0] * x[:, 1])
  columns, _, weights = answer._linearized(Filling({"f": variable(0)}, {}), problem, problem.parts[0])
  # Weights below a trillionth of the largest, that is slopes of a millionth.
  assert len(weights) == 38 and columns[0, 0] == x[2, 0] and weights.min() > 1e-10


def used_rows(text, x, y=None, weights=None):
  """The rows that data of f are made of, as x is numbered, where f is 1."""
  x[:, 0] = np.arange(len(x))
  problem = problem_of(text, x, np.ones(len(x)) if y is None else y, weights=weights)
  return answer._linearized(Filling({"f": number(1.0)}, {}), problem, problem.parts[0])[0][:, 0].tolist()


def test_a_row_needs_a_value_of_the_template_beside_a_slope(x):
  x[:, 1], x[:3, 2] = 2.0, -1.0
  assert used_rows("f(x)*t + log(z)", x) == [*range(3, 40)]


def test_slopes_whose_squares_are_infinite_are_not_the_measure_of_others(x):
  x[:, 1], x[0, 1] = 2.0, 1e200
  assert used_rows("f(x)*t", x) == [*range(1, 40)]


def test_small_slopes_are_measured_by_the_largest_of_them(x):
  x[:, 1] = 1e-8
  assert used_rows("f(x)*t", x) == [*range(40)]


def test_a_weight_of_just_the_least_share_says_nothing(x):
  weights = np.full(40, 2.0)
  weights[:2] = 2e-12, 2.5e-12
  assert used_rows("f(x) + t", x, weights=weights) == [*range(1, 40)]


# --- lines -----------------------------------------------------------------------------------------------------------


def test_lines_that_no_simpler_ones_beat_and_the_recommended_ones_are_worth_while(x):
  y = x[:, 0] ** 2 + np.exp(-x[:, 1])
  problem = problem_of("f(x) + g(t)", x, y)
  best = Filling({}, {})
  f, g = (line("x**2"), line("2.5*x")), (parser.parse("exp(-x)", NAMES), parser.parse("0.5", NAMES))
  g = tuple(Equation(node, ("t",), 0.0, None, None, ()) for node in g)
  chosen = [(a, b) for a in f for b in g]  # only the exact one and the squares with a constant are on the front
  form = Form(problem.template)
  found = answer._worthwhile(form, problem, best, chosen, chosen[2])
  errors = [np.mean((expression.evaluate(form.written(answer._filling(problem, best, each)), x) - y) ** 2)
            for each in chosen]
  assert errors[0] < errors[1] < min(errors[2:])
  assert found == [chosen[0], chosen[1], chosen[2]] and answer._worthwhile(
    form, problem, best, chosen, chosen[0]) == [chosen[0], chosen[1]]


def test_of_lines_whose_errors_are_rounding_the_simplest_is_worth_while(monkeypatch, x):
  errors = iter((1e-20, 1e-21))
  monkeypatch.setattr(answer.scoring, "score", lambda *given: types.SimpleNamespace(mse=next(errors)))
  problem = problem_of("f(x) + g(t)", x, x[:, 0])
  chosen = [(line("x"), line("x")), (line("sin(x)"), line("x"))]
  assert answer._worthwhile(Form(problem.template), problem, Filling({}, {}), chosen, chosen[0]) == chosen[:1]


class _Local:
  """In place of a local model: what it is said to find."""

  theta, noise, sums = np.array([1.5, 2.5, 3.5]), 0.1, []

  def __init__(self, node, x, y, weights, *, floor, num_refits):
    self.is_free, self.floor, self.num_refits, self.num = np.array([True] * 3), floor, num_refits, 0
    type(self).made.append(self)

  def refit(self):
    is_own = not self.is_free.all()
    self.theta = self.theta + (10 if is_own else 20)
    self.sum_of_squares = self.sums[is_own]
    self.num += 1


@pytest.mark.parametrize(("own", "is_kept"), [(1.0, True), (1.2, True), (1.21, False), (9.0, False)])
@pytest.mark.parametrize("has_several", [False, True])
def test_functions_keep_their_numbers_where_that_costs_no_more_than_chance(monkeypatch, own, is_kept, has_several):
  """By the noise for each constant that is held: here of three one is a parameter."""
  monkeypatch.setattr(answer, "LocalModel", type("Local", (_Local,), {"sums": (1.0, own), "made": []}))
  monkeypatch.setattr(answer.rounding, "remove_redundant", lambda node, *wide, config: ("without", node, config))
  form = Form(templates.read("f(x)*exp(-k*t)", NAMES))
  whole = form.whole(Filling({"f": parse("1.5*x + 2.5")}, {"k": 3.5}))
  wide = (np.ones((4, 3)), np.arange(4.0), np.ones(4))
  found = answer._settle(form, whole, wide, has_several, DEFAULT)
  if has_several:
    assert found[0] == "without" and found[2] is DEFAULT.selection
    found = found[1]
  moved = 10 if is_kept else 20
  assert programs.fitted_values(found) == [1.5 + moved, 2.5 + moved, 3.5 + moved]
  every, only = answer.LocalModel.made
  assert every.is_free.all() and only.is_free.tolist() == [name == "k" for name in answer._owners(form, whole)]
  for local in (every, only):
    assert local.floor == pytest.approx(1.25 * answer.criteria.NOISE_FLOOR**2, rel=1e-9, abs=0)
    assert local.num_refits == 10 and local.num == 1


@pytest.fixture
def as_they_are(monkeypatch):
  """Nothing is fitted or rounded; the error of a constant is a tenth of it."""
  monkeypatch.setattr(answer, "_settle", lambda form, whole, wide, has_several, config: whole)
  monkeypatch.setattr(answer.rounding, "round_constants", lambda node, *wide, config: node)
  monkeypatch.setattr(answer.rounding, "parameter_errors", lambda node, *wide, held, has_phases: (
    answer.rounding.ParameterErrors([abs(value) / 10 for value in programs.fitted_values(node)], [])))
  monkeypatch.setattr(answer.rounding, "exact_forms", lambda node, *wide: [None] * len(programs.fitted_values(node)))


@pytest.mark.usefixtures("as_they_are")
def test_a_line_has_its_parts_their_errors_and_its_own(x):
  read = units_lib.read_units({"x": "m", "t": "s", "z": "kg", "y": "N"}).for_columns(NAMES)
  problem = problem_of("f(x)*exp(-k*t) + 9.75", x, x[:, 0], units=read)
  form = Form(problem.template)
  wide = (form.widen(x), problem.rows.y, problem.rows.weights)
  found = answer._equation(form, problem, Filling({"f": parse("2.5*x*1")}, {"k": 0.5}), wide, DEFAULT)
  assert found.expression == "2.5*exp(-0.5*t)*x + 9.75" and found.filled.functions == (("f(x)", "2.5*x"),)
  assert found.filled.parameters == (("k", Constant(0.5, 0.05, unit="1/s")),)
  errors = {constant.value: constant.stderr for constant in found.constants}
  assert errors == {-0.5: 0.05, 2.5: 0.25, 9.75: None}  # the form's own number is known
  y = 2.5 * np.exp(-0.5 * x[:, 1]) * x[:, 0] + 9.75
  assert found.mse == pytest.approx(np.mean((y - x[:, 0]) ** 2)) and found.names == NAMES
  assert answer._unit(problem_of("f(x)*exp(-k*t)"), "k") is None
  leaves_open = types.SimpleNamespace(of_part=lambda node, path: None)
  assert answer._unit(problem_of("f(x)*exp(-k*t)", units=leaves_open), "k") is None


def test_whole_numbers_of_a_function_have_errors_and_those_of_the_template_none(monkeypatch, x, rng):
  """As regression on the columns of the function has them: 3 is given."""
  monkeypatch.setattr(answer, "_settle", lambda form, whole, wide, has_several, config: whole)
  monkeypatch.setattr(answer.rounding, "round_constants", lambda node, *wide, config: node)
  columns = np.column_stack([x[:, 0], np.ones(len(x))])
  noise = rng.normal(size=len(x))
  noise -= columns @ np.linalg.lstsq(columns, noise, rcond=None)[0]  # 2 and 1.5 are the best as they are
  problem = problem_of("f(x) + 3*t", x, columns @ [2, 1.5] + 3 * x[:, 1] + noise)
  form = Form(problem.template)
  wide = (form.widen(x), problem.rows.y, problem.rows.weights)
  found = answer._equation(form, problem, Filling({"f": parse("2*x + 1.5")}, {}), wide, DEFAULT)
  errors = np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)) * (noise @ noise) / (len(x) - 2))
  assert {each.value: each.stderr for each in found.whole} == {2: pytest.approx(errors[0], rel=1e-6), 3: None}
  assert [each.value for each in found.constants] == [1.5]
  assert found.constants[0].stderr == pytest.approx(errors[1], rel=1e-6)


@pytest.mark.usefixtures("as_they_are")
@pytest.mark.parametrize(("text", "num_rounded"), [("f(x) + t", 1), ("f(x) + g(t)", 2)])
def test_of_several_functions_the_whole_is_rounded_again(monkeypatch, x, text, num_rounded):
  seen = []
  monkeypatch.setattr(answer.rounding, "round_constants", lambda node, *wide, config: seen.append(config) or node)
  several = []
  monkeypatch.setattr(answer, "_settle", lambda form, whole, wide, has_several, config: several.append(
    has_several) or whole)
  problem = problem_of(text, x, x[:, 0])
  wide = (x, problem.rows.y, problem.rows.weights)
  filling = Filling({"f": parse("x*2.5"), "g": parse("t*1.5")}, {})
  answer._equation(Form(problem.template), problem, filling, wide, DEFAULT)
  assert seen == [DEFAULT.selection] * num_rounded and several == [num_rounded == 2]


@pytest.mark.usefixtures("as_they_are")
def test_functions_stay_as_they_are_where_tidying_takes_their_value(monkeypatch, x):
  problem = problem_of("f(x) + t", x, x[:, 0])
  form = Form(problem.template)
  wide = (x, problem.rows.y, problem.rows.weights)
  for tidied, expected in (("log(-x)", "x*2*1.5"), ("3*x", "3*x")):
    monkeypatch.setattr(answer, "tidy", lambda node, text=tidied: parse(text))
    monkeypatch.setattr(Form, "written", lambda form, filling: templates.fill(form.template.node, *filling))
    found = answer._equation(form, problem, Filling({"f": parse("x*2*1.5")}, {}), wide, DEFAULT)
    assert found.filled.functions == (("f(x)", printing.to_text(parse(expected), NAMES)),)


def settled(monkeypatch, x, text, fronts, mean_squares, *, bests=None, whole=None):
  """The front of lines whose errors are given by their texts."""
  problem = problem_of(text, x, x[:, 0])
  form = Form(problem.template)

  def equation(form, problem, filling, wide, config):
    node = form.written(filling)
    return Equation(node, NAMES, mean_squares[printing.to_text(node, NAMES)], None, None, ())

  monkeypatch.setattr(answer, "_equation", equation)
  lines = [tuple(Equation(parser.parse(each, (name,)), (name,), 0.0, None, None, ()) for each in texts)
           for name, texts in zip("xtz", fronts, strict=False)]
  chosen = [Selection(each[best], each, (f"left of {i}",)) for i, (each, best) in enumerate(
    zip(lines, bests or [-1] * len(lines), strict=True))]
  wide = (x, problem.rows.y, problem.rows.weights)
  return answer._settled(form, problem, Filling(whole or {}, {}), chosen, wide, DEFAULT)


def test_the_front_falls_and_keeps_lines_and_what_is_recommended(monkeypatch, x):
  found = settled(monkeypatch, x, "f(x)*t", [("2.5", "x", "sin(x)", "x**2 + sin(x)", "exp(x)*sin(x)*x")],
                  {"2.5*t": 9.0, "x*t": 4.0, "sin(x)*t": 5.0, "(x**2 + sin(x))*t": 6.0, "exp(x)*sin(x)*x*t": 1.0})
  assert found.best.expression == "exp(x)*sin(x)*x*t" and found.rejected == ("left of 0",)
  assert [each.expression for each in found.front] == ["2.5*t", "x*t", "exp(x)*sin(x)*x*t"]
  # The recommended one is worse than a simpler one, and stays.
  found = settled(monkeypatch, x, "f(x)*t", [("x", "sin(x)", "exp(x)*sin(x)*x")],
                  {"x*t": 4.0, "sin(x)*t": 3.0, "exp(x)*sin(x)*x*t": 3.5})
  assert found.best in found.front and [each.mse for each in found.front] == [4.0, 3.0, 3.5]
  found = settled(monkeypatch, x, "f(x)*t", [("x", "sin(x)", "exp(x)*sin(x)*x")],
                  {"x*t": 4.0, "sin(x)*t": 3.0, "exp(x)*sin(x)*x*t": 2.5}, bests=[1])
  assert found.best.expression == "sin(x)*t" and len(found.front) == 3
  # A line in which the template is undefined is none; where that is what was chosen, the best whole is recommended.
  found = settled(monkeypatch, x, "f(x)*t", [("2.5", "sin(x)")], {"2.5*t": np.inf, "sin(x)*t": 3.0})
  assert [each.mse for each in found.front] == [3.0]
  # Errors that are rounding of y are alike: the simplest stays.
  found = settled(monkeypatch, x, "f(x)*t", [("sin(x)", "exp(x)*sin(x)*x")],
                  {"sin(x)*t": 1e-16, "exp(x)*sin(x)*x*t": 1e-17}, bests=[0])
  assert [each.mse for each in found.front] == [1e-16]
  found = settled(monkeypatch, x, "f(x)*t", [("2.5", "sin(x)")],
                  {"2.5*t": 2.0, "sin(x)*t": np.inf, "exp(x)*t": 3.0}, whole={"f": parse("exp(x)")})
  assert found.best.expression == "exp(x)*t" and [each.mse for each in found.front] == [2.0, 3.0]


def test_fronts_of_several_functions_are_put_together(monkeypatch, x):
  monkeypatch.setattr(answer, "_worthwhile", lambda form, problem, best, chosen, taken: [*chosen[:1], taken])
  errors = {"x*t": 4.0, "exp(t)*sin(x)": 1.0}
  found = settled(monkeypatch, x, "f(x)*g(t)", [("x", "sin(x)"), ("t", "exp(t)")], errors)
  assert [each.expression for each in found.front] == ["x*t", "exp(t)*sin(x)"]
  assert found.rejected == ("left of 0", "left of 1")


# --- the answer ------------------------------------------------------------------------------------------------------


def test_without_a_whole_that_fits_there_is_no_answer(monkeypatch, x):
  problem = problem_of("f(x)*t", x, x[:, 0] * x[:, 1])
  monkeypatch.setattr(answer, "_fit", lambda form, task, fillings, options: [])
  assert answer.answer(problem, [[variable(0)]], SearchOptions(), None) is None


def test_each_function_is_chosen_around_the_best_whole(monkeypatch, x):
  """By what is best, then what was found, each once; a function that is met to the last digit needs no choice."""
  problem, seen = problem_of("f(x)*t*exp(-t/2.5)", x, x[:, 0] * x[:, 1] * np.exp(-x[:, 1] / 2.5)), []
  best = [Filling({"f": parse(text)}, {}) for text in ("x", "x + 0.5", "x")]

  def fit(form, task, fillings, options):
    seen.append((task.names, len(task.rows), len(fillings)))
    np.testing.assert_array_equal(task.fit_rows.y, task.rows.sample(20, seed=5).y)  # those of the config, by the seed
    return best

  monkeypatch.setattr(answer, "_fit", fit)
  monkeypatch.setattr(
    answer, "_settled", lambda form, problem, best, selections, wide, config: (best, selections, wide))

  def choose(task, nodes):
    seen.append((task.names, [printing.to_text(node, task.names) for node in nodes]))
    return "chosen"

  config = dataclasses.replace(DEFAULT, templates=dataclasses.replace(DEFAULT.templates, answer_rows=30),
                               pool=dataclasses.replace(DEFAULT.pool, fit_rows=20))
  options = SearchOptions(config=config, seed=5)
  found = answer.answer(problem, [[parse("sin(x)"), parse("x")]], options, choose)
  assert seen == [(("x", "t", "z", "known 0"), 30, 2), (("x",), ["x", "x + 0.5", "sin(x)"])]
  assert found[0] is best[0] and found[1] == ["chosen"] and found[2][0].shape == (30, 4)
  np.testing.assert_array_equal(found[2][1], problem.rows.sample(30, seed=5).y)
  assert answer.answer(problem, [[parse("x")]], options, lambda task, nodes: None) is None
  # The best whole leaves a constant.
  constant = problem_of("f(x)*t", x, 2.5 * x[:, 1])
  best[0] = Filling({"f": number(2.5)}, {})
  _, [selection], _ = answer.answer(constant, [[variable(0)]], options, choose)
  assert selection.best.expression == "2.5" and selection.front == (selection.best,) and selection.rejected == ()
  assert selection.best.mse == 0 and selection.best.names == ("x",)
