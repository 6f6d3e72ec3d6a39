"""SymPy in a process that can be killed."""

import time

import pytest

from symformer_jax.evaluation import second_opinion
from symformer_jax.language import expression
from symformer_jax.language.parser import parse


@pytest.fixture(scope="module")
def opinion():
  with second_opinion.SecondOpinion() as found:
    yield found


@pytest.mark.parametrize(("truth", "predicted", "verdict"), [
  ("sin(x)**2", "1 - cos(x)**2", "equal"), ("x*(x+1)/2", "log(exp(0.5*x**2)*exp(0.5*x))", "equal"),
  ("2.5*x", "2.49999999*x", "equal"), ("x", "x + 1", "different"), ("x*y", "x*z", "different"),
])
def test_verdicts(opinion, truth, predicted, verdict):
  assert opinion.ask(parse(truth), parse(predicted)) == verdict


def test_a_formula_too_long_for_the_parser_is_undecided(opinion):
  long = expression.chain("+", [parse(f"sin({i}*x)") for i in range(2, 200)])
  assert opinion.ask(parse("x"), long) == "undecided"
  assert opinion.ask(parse("x"), parse("x")) == "equal"


def test_a_question_that_takes_too_long_is_cut_off_and_the_next_is_answered():
  with second_opinion.SecondOpinion(timeout_s=30) as opinion:
    assert opinion.ask(parse("x"), parse("x")) == "equal"
    opinion.timeout_s = 0.05
    begun = time.monotonic()
    hard = "cos(2*x)**7*sin(x)**5 + exp(x)**3.33"
    assert opinion.ask(parse(hard), parse("sin(x**3.1 + cos(x))**7.7")) == "undecided"
    assert time.monotonic() - begun < 5
    opinion.timeout_s = 30
    assert opinion.ask(parse("x"), parse("2*x")) == "different"


def test_a_process_that_died_is_replaced(opinion):
  opinion.ask(parse("x"), parse("x"))
  opinion._process.kill()
  assert opinion.ask(parse("x"), parse("x")) == "equal"  # was asked before
  assert opinion.ask(parse("x"), parse("3*x - 2*x")) == "undecided"
  assert opinion.ask(parse("x"), parse("4*x - 3*x")) == "equal"
