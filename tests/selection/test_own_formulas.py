"""What becomes of guesses: listed where nothing simpler is as good, their constants with errors, and why not else."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import symformer_jax
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import parser
from symformer_jax.language.expression import walk
from symformer_jax.refinement import named
from symformer_jax.results import Guess
from symformer_jax.selection import listed_guesses, own_formulas, rounding, scoring, select
from symformer_jax.selection.judge import Finalist, Judge
from symformer_jax.sources import closed_forms

DAY = np.arange(0.0, 40, 3)
VOLUME = np.array([8.8498, 28.197, 78.879, 144.91, 256.62, 456.34, 560.65, 662.92, 788.83, 973.43, 1116.4, 1095.4,
                   1218.1, 1379.6])
SUBSTRATE = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20])
RATE = np.array([0.030454, 0.056088, 0.092923, 0.15739, 0.26223, 0.33121, 0.37916, 0.4168, 0.43607, 0.44074])


def fill(text, **values):
  """The guess with numbers for its names, as the search has it."""
  node = parser.parse(text, ["x"], allow_symbols=True)
  return named.NamedFormula(node, named.symbols(node)).with_values(values)


def ask(x, y, text, others=(), may_fit=True, is_allowed=lambda node: True, **values):
  """The selection and what it says of the guess, among these other formulas and the closed forms."""
  rows = Rows(x[:, None], y, np.ones(len(y)))
  fitted = own_formulas.fit(text, fill(text, **values), rows, ["x"], may_fit=may_fit)
  nodes = [node for node in (*map(parser.parse, others), fitted.node) if is_allowed(node)]
  chosen = select.select(nodes, rows, ["x"], seed=0, yardsticks=closed_forms.fit(rows, (0,)), guesses=[fitted.node],
                         may_fit=may_fit, is_allowed=is_allowed)
  [guess] = own_formulas.tell([fitted], chosen, rows, ["x"])
  return chosen, guess


def test_a_guess_is_listed_though_a_formula_that_is_not_beats_it():
  chosen, guess = ask(DAY, VOLUME, "a*exp(-b*exp(-c*x))", ["exp(8.2*x/(x + 5.37))"], a=1500, b=4.5, c=0.08)
  assert "exp(-4.7" in chosen.front[-1].expression and guess.line == len(chosen.front) - 1
  assert guess.expression == chosen.front[-1].expression and guess.r2 == pytest.approx(0.993706, abs=1e-6)
  assert guess.reason == "longer than the recommended formula for what it gains"
  assert chosen.best.complexity == 5


@pytest.mark.parametrize("text", ["m*x/(K + x)", "(m + 0*K)*x/(x + K)"])
def test_constants_of_a_guess_have_the_errors_of_a_fit_of_its_names(text):
  rows = Rows(SUBSTRATE[:, None], RATE, np.ones(10))
  fitted = own_formulas.fit(text, fill(text, m=0.4, K=0.3), rows, ["x"])
  plain = symformer_jax.refine("m*x/(K + x)", SUBSTRATE, RATE)
  assert fitted.constants == pytest.approx(plain.constants, rel=1e-6)
  assert fitted.errors == pytest.approx(plain.stderr, rel=1e-4) and list(fitted.constants)[0] == "m"


def test_rows_count_as_their_weights_in_the_fit_of_a_guess():
  weights = 1 / RATE**2
  fitted = own_formulas.fit("m*x/(K + x)", fill("m*x/(K + x)", m=0.4, K=0.3),
                            Rows(SUBSTRATE[:, None], RATE, weights / weights.mean()), ["x"])
  assert fitted.constants == pytest.approx(
    symformer_jax.refine("m*x/(K + x)", SUBSTRATE, RATE, sigma=RATE).constants, rel=1e-6)


def test_a_guess_in_other_terms_is_the_simpler_line():
  chosen, guess = ask(SUBSTRATE, RATE, "m*x/(K + x)", ["1/(0.81/x + 2.225)"], m=0.4, K=0.3)
  assert chosen.front[guess.line].expression == "1/(0.81/x + 2.225)" and guess.reason == ""
  assert sum("x" in line.expression and line.r2 > 0.99 for line in chosen.front) == 1


def test_a_guess_whose_constants_were_snapped_is_that_line(rng):
  x = rng.uniform(0.1, 10, 400)
  y = 5 * x / (2 + x) + 0.1 * rng.standard_normal(400)
  chosen, guess = ask(x, y, "m*x/(K + x)", ["5*x/(x + 2)"], m=5.1, K=2.1)
  assert chosen.best.expression == "5*x/(x + 2)" and chosen.front[guess.line] is chosen.best and guess.reason == ""
  assert sum(line.complexity == 8 for line in chosen.front) == 1


@pytest.mark.parametrize(("share", "line"), [(1.0, 0), (1e-6, 1)])
def test_how_near_the_constants_of_a_line_have_to_be_is_what_the_config_says(share, line, monkeypatch):
  monkeypatch.setattr(rounding, "refit_constants", lambda node, *data, **settings: node)
  config = dataclasses.replace(
    DEFAULT.selection, snap_errors=tuple(share * each for each in DEFAULT.selection.snap_errors))
  x = np.linspace(1, 5, 20)
  rows = Rows(x[:, None], 3 * x + np.resize([0.1, -0.1], 20), np.ones(20))
  judge = Judge(rows, 20, config, DEFAULT.choice)
  judged = judge.finalists([parser.parse("3*x"), parser.parse("3.001*x")])
  assert select._with_own([1], {0}, judged, judge, may_fit=True)[1] == {1: line}


def test_a_constant_that_the_rows_do_not_determine_has_no_error():
  _, guess = ask(DAY, VOLUME, "a*x*b + c", a=30.0, b=1.2, c=-100.0)
  assert guess.errors["a"] is None is guess.errors["b"] and guess.errors["c"] > 0


@pytest.mark.parametrize(("text", "reason"), [
  ("a/(x - 4.5)", "rejected (leaves the data's range between rows)"),
  ("a*log(x - 9)", "not defined on all rows"),
  ("a*x**2 + b", "line 2 is no longer and no less accurate")])
def test_why_a_guess_is_not_listed_is_said(text, reason):
  _, guess = ask(DAY, VOLUME, text, a=2.5, b=-7.0)
  assert guess.line is None and guess.reason == reason and (guess.r2 is None) == ("all rows" in reason)


def test_numbers_of_a_guess_without_names_are_fitted():
  _, guess = ask(SUBSTRATE, RATE, "0.4*x/(0.3 + x)")
  assert guess.constants == {} and guess.expression == "0.4495*x/(x + 0.364)" and guess.reason == ""


@pytest.mark.parametrize(("text", "values", "expected"), [
  ("m*(x/K)/(1 + x/K)", {"m": 0.4, "K": 0.3}, "1.235*x/(2.748*x + 1)"),
  ("a*x + b*x", {"a": 0.3, "b": -0.26}, "0.031*x")])
def test_a_name_that_stands_twice_leaves_no_long_numbers(text, values, expected):
  _, guess = ask(SUBSTRATE, RATE, text, **values)
  assert guess.expression == expected


def test_of_a_guess_that_may_not_be_fitted_the_values_given_count():
  text = "0.4*x/(0.3 + x)"
  chosen, guess = ask(SUBSTRATE, RATE, text, ["0.4495*x/(x + 0.364)"], may_fit=False)
  given = 1 - np.sum((RATE - 0.4 * SUBSTRATE / (0.3 + SUBSTRATE)) ** 2) / np.sum((RATE - RATE.mean()) ** 2)
  assert guess.expression == "0.4*x/(0.3 + x)" and guess.r2 == pytest.approx(given)
  assert guess.line is None and chosen.front[-1].expression == "0.4495*x/(x + 0.364)"
  assert guess.reason == f"line {len(chosen.front) - 1} is no longer and no less accurate"
  _, guess = ask(SUBSTRATE, RATE, "m*x/(K + x)", may_fit=False, m=0.4, K=0.3)
  assert guess.constants == {} == guess.errors and guess.r2 == pytest.approx(given)


def test_a_guess_whose_fitted_constants_break_the_rules_is_not_listed():
  def is_allowed(node):
    return all(not part.is_number or part.value <= 0.44 for part in walk(node))

  chosen, guess = ask(SUBSTRATE, RATE, "m*x/(K + x)", is_allowed=is_allowed, m=0.4, K=0.3)
  assert guess.line is None and guess.reason == "breaks the rules" and guess.constants["m"] > 0.44
  assert guess.expression not in [line.expression for line in chosen.front]


def test_a_line_that_beats_a_guess_in_few_digits_alone_is_named():
  """In all its digits the guess is the nearer of the two."""
  best = parser.parse(f"{float(np.sum(SUBSTRATE * RATE) / np.sum(SUBSTRATE**2))!r}*x")
  rows = Rows(SUBSTRATE[:, None], RATE, np.ones(10))
  fitted = own_formulas.Fitted("a*x", best, {}, {})
  line = select.select([best], rows, ["x"], seed=0).front[0]
  chosen = select.Selection(line, (line,), (), (select.Own(line.node, None, "", 0),))
  [guess] = own_formulas.tell([fitted], chosen, rows, ["x"])
  assert guess.reason == "line 0 is no longer and no less accurate" and guess.rmse**2 < line.mse


def test_the_line_that_is_named_beats_the_guess_as_it_was_judged():
  nodes = [parser.parse(text) for text in ("0.26", "sin(x)", "0.02*x + 0.17", "cos(x)")]
  judged = [Finalist(node, scoring.Scores(mse, None, None, 0))
            for node, mse in zip(nodes, (0.3, 0.2, 0.1, 0.25), strict=True)]
  assert select._tell_own(nodes[3], "", 3, {0: 0, 1: 1, 2: 2}, judged) == select.Own(nodes[3], None, "", 1)
  assert select._tell_own(nodes[3], "", 3, {0: 0, 1: 1, 3: 2}, judged) == select.Own(nodes[3], 2, "")
  assert select._tell_own(nodes[3], "pole", 3, {0: 0}, judged) == select.Own(nodes[3], None, "pole")
  # One that is as long as the guess does, and one that is as accurate; a longer one does not.
  assert select._tell_own(nodes[3], "", 3, {1: 4}, judged) == select.Own(nodes[3], None, "", 4)
  assert select._tell_own(nodes[1], "", 1, {2: 4}, judged) == select.Own(nodes[1], None, "", None)
  alike = [*judged, Finalist(nodes[0], judged[3].scores)]
  assert select._tell_own(nodes[3], "", 3, {4: 5}, alike) == select.Own(nodes[3], None, "", 5)


def test_guesses_without_a_tree_are_told_in_their_places():
  node = parser.parse("0.26")
  seen = [Guess(text, text, {}, {}, 0.5, 0.1, 0, "") for text in ("a*x", "b + x")]
  asked = [("a*x", node), ("sin(a*x)", None), ("b + x", node), ("x**a", None)]
  found = own_formulas.with_unseen(seen, asked, "no time was left")
  assert [found[0], found[2]] == seen
  for guess, text in ((found[1], "sin(a*x)"), (found[3], "x**a")):
    assert guess == Guess(text, "", {}, {}, None, None, None, "not looked at: no time was left")


def test_a_form_that_tidying_gives_long_numbers_after_the_rounding_is_not_taken():
  node, rows = parser.parse("0.0311601704*x"), Rows(SUBSTRATE[:, None], RATE, np.ones(10))

  def plain(form):
    return form if form == node else parser.parse("0.0310000000000091*x")

  found = listed_guesses.in_few_digits(node, rows, plain, lambda form: True)
  assert rounding.count_digits(found) <= 3


# --- what guesses are listed as --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("complexities", "shown", "same", "expected"), [
  ([4, 3, 4], {0, 1}, True, ({0, 1}, {2: 1})), ([5, 9, 4], {0, 1}, True, ({0, 1, 2}, {2: 2})),
  ([4, 3, 4], {0, 1}, False, ({0, 1, 2}, {2: 2})), ([4, 3, 4], {1, 2}, True, ({1, 2}, {2: 1}))])
def test_a_guess_is_listed_as_the_simplest_line_that_is_the_same(complexities, shown, same, expected):
  assert listed_guesses.with_guesses([2], shown, complexities, lambda j, i: same) == expected


def are_one(change, weights=(1, 1, 1), *, mse=1.0, floor=0.0):
  x = np.array([1.0, 2, 3])
  nodes = parser.parse("x"), parser.parse("y")
  rows = Rows(np.column_stack([x, x + change]), x, np.array(weights, float))
  return listed_guesses.are_one(nodes, rows, mse=mse, num_rows=3, floor=floor, may_fit=False)


def test_formulas_are_one_whose_values_differ_by_a_thousandth_of_what_they_leave():
  assert are_one(0.99e-3) and not are_one(1.01e-3) and are_one(1.99e-3, mse=4.0) and not are_one(2.01e-3, mse=4.0)
  assert are_one(np.array([0, 0, 9e-3]), (1, 1, 1e-3)) and not are_one(np.array([0, 0, 9e-3]), (1, 1, 1))


def test_of_forms_with_as_many_digits_the_tidy_one_is_listed(monkeypatch):
  rows, asked = Rows(SUBSTRATE[:, None], RATE, np.ones(10)), []
  config = dataclasses.replace(DEFAULT.selection, nats_per_node=1.25)
  monkeypatch.setattr(rounding, "round_constants", lambda node, *data, config=None: asked.append(config) or node)
  tidy = {parser.parse("0.5*x + 0.25"): parser.parse("0.25 + 0.5*x + 0*x")}
  node = parser.parse("0.5*x + 0.25")
  rounded = {node: node}
  found = listed_guesses.in_few_digits(
    node, rows, lambda form: rounded.pop(form, None) or tidy.get(form, form), lambda form: True, config=config)
  assert found == tidy[node] and asked == [config]


def test_why_a_guess_is_none_of_the_best():
  nodes = [parser.parse(text) for text in ("x + 1", "sin(x)", "cos(x)", "x**2 + 1")]
  lines = [SimpleNamespace(complexity=complexity) for complexity in (3, 2, 2, 4)]
  chosen = SimpleNamespace(front=lines, best=lines[2])
  for line, reason in ((2, ""), (1, "less accurate than the recommended formula"),
                       (0, "longer than the recommended formula for what it gains")):
    assert own_formulas._reason(select.Own(nodes[line], line, ""), chosen) == reason
  for better, what in ((None, "another formula"), (0, "line 0")):
    assert own_formulas._reason(select.Own(nodes[3], None, "", better), chosen) == (
      f"{what} is no longer and no less accurate")


def test_numbers_of_a_guess_are_fitted_as_the_config_says(monkeypatch):
  asked = []
  config = dataclasses.replace(DEFAULT.selection, num_refits=3)
  monkeypatch.setattr(rounding, "refit_constants", lambda node, *data, config=None: asked.append(config) or node)
  rows = Rows(SUBSTRATE[:, None], RATE, np.ones(10))
  own_formulas.fit("0.5*x", parser.parse("0.5*x"), rows, ["x"], config=config)
  assert asked == [config]
  own_formulas.fit("0.5*x", parser.parse("0.5*x"), rows, ["x"], may_fit=False, config=config)
  assert asked == [config]


@pytest.mark.parametrize("expands", [False, True])
def test_names_of_a_guess_are_found_whichever_way_its_functions_are_written(expands, monkeypatch):
  asked = []
  monkeypatch.setattr(own_formulas.refine, "fit_names", lambda node, x, y, weights, starts: asked.append(
    (node, starts)))
  text, rows = "m*tanh(k*x)", Rows(SUBSTRATE[:, None], RATE, np.ones(10))
  filled = parser.parse("0.5*tanh(2.5*x)", ["x"], expands=expands)
  found = own_formulas.fit(text, filled, rows, ["x"])
  assert found == own_formulas.Fitted(text, filled, {}, {})  # nothing was found
  assert asked == [(parser.parse(text, ["x"], allow_symbols=True, expands=expands), [[0.5, 2.5]])]
