"""The line that tells of a guess."""

import pytest

from symformer_jax.presentation.guess_lines import guess_line
from symformer_jax.results import Guess

FITTED = Guess("m*x/(K + x)", "0.4495*x/(x + 0.364)", {"m": 0.44951234, "K": 0.36382}, {"m": 0.00234, "K": 0.00812},
               0.999618, 0.0030312, 3, "")


def test_constants_have_names_and_errors():
  assert guess_line(FITTED, is_weighted=False) == (
    "guess m*x/(K + x): m = 0.4495 +- 0.002, K = 0.3638 +- 0.008 (R2 0.999618, RMSE 0.003031); line 3, recommended")


@pytest.mark.parametrize(("change", "line"), [
  ({"constants": {}, "errors": {}}, "guess m*x/(K + x): 0.4495*x/(x + 0.364) (weighted R2 0.999618, weighted RMSE "
   "0.003031); line 3, recommended"),
  ({"constants": {"a": 1620.837, "b": 2.0, "c": 0.0}, "errors": {"a": 109.0, "b": None, "c": 0.1}, "line": None,
    "reason": "why"}, "guess m*x/(K + x): a = 1620 +- 100, b = 2 (not determined by the rows), c = 0 +- 0.1 (weighted "
   "R2 0.999618, weighted RMSE 0.003031); not recommended: why"),
  ({"constants": {"a": 2.5}, "errors": {"a": 0.0}, "r2": None},
   "guess m*x/(K + x): a = 2.5 (weighted RMSE 0.003031); line 3, recommended"),
  ({"r2": None, "rmse": None, "line": None, "reason": "not defined on all rows"},
   "guess m*x/(K + x): not defined on all rows")])
def test_other_guesses(change, line):
  assert guess_line(Guess(**(vars(FITTED) | change)), is_weighted=True) == line


def test_of_a_constant_called_e_it_is_said_that_it_is_no_number():
  constants = {"constants": {"e": 2.5}, "errors": {"e": 0.1}}
  line = guess_line(Guess(**(vars(FITTED) | constants)), is_weighted=False)
  assert line.endswith("line 3, recommended; e is a constant to be fitted, Euler's number is exp(1)")


def test_breaks_and_signs_for_terminals_stay_in_one_line():
  texts = {"text": "`k\x1b[31m`*x +\n  1", "constants": {"k\x1b[31m": 2.0}, "errors": {"k\x1b[31m": 0.0}}
  line = guess_line(Guess(**(vars(FITTED) | texts)), is_weighted=False)
  assert line.startswith("guess `k\\x1b[31m`*x + 1: `k\\x1b[31m` = 2 (R2") and line.isprintable()


def test_under_the_log_loss_r2_is_that_of_logarithms():
  line = guess_line(Guess(**(vars(FITTED) | {"log_r2": 0.75})), loss="log", is_weighted=True)
  assert "(R2 of log(y) 0.750000, weighted RMSE 0.003031)" in line
