"""Names in guesses become the numbers that fit best."""

import numpy as np
import pytest

from symformer_jax.engine.options import Recalled, SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.language import expression, programs
from symformer_jax.sources import guesses

NAMES = ("x", "t")


@pytest.fixture
def x(rng):
  return np.column_stack([rng.uniform(0.2, 5, 80), rng.uniform(0, 3, 80)])


def _fill_in(text, x, y):
  """The first guess, and the root of its mean squared error by that of y."""
  [node] = guesses.Guesses((text,)).init(make_task((x, y), NAMES, SearchOptions()), None)
  return node, np.std(expression.evaluate(node, x) - y) / np.std(y)


def test_waves_of_unknown_frequencies_are_found_among_many_starts(x):
  y = np.sin(x[:, 0] * x[:, 1]) + np.sin(3 * x[:, 0]) / (x[:, 1] + 4)
  _, error = _fill_in("a*sin(b*x*t) + c*sin(d*x)/(t + e)", x, y)
  assert error < 1e-12


def test_a_name_that_stands_twice_is_one_number(x):
  y = 2.5 * np.exp(-0.7 * x[:, 0]) + 2.5 * x[:, 1]
  node, error = _fill_in("a*exp(-b*x) + a*t", x, y)
  values = np.abs(programs.fitted_values(node))
  assert error < 1e-9 and sorted(values) == pytest.approx([0.7, 2.5, 2.5]) and values[0] == values[2]


def test_a_number_is_a_guess_only_as_the_line_of_an_earlier_fit(x):
  with pytest.raises(InputError, match=r"guesses: '3\+4' has no column of the table: x, t$"):
    _fill_in("3+4", x, x[:, 0])
  node, _ = _fill_in(Recalled("2.5"), x, x[:, 0])
  assert node == expression.number(2.5)


def test_a_guess_without_names_stays_as_it_is(x):
  node, _ = _fill_in("1.5*x + 2.5", x, x[:, 0])
  assert programs.fitted_values(node) == [1.5, 2.5]


def test_a_guess_without_a_column_is_refused(x):
  with pytest.raises(InputError, match=r"guesses: 'a\*exp\(-b\*u\)' has no column of the table: x, t"):
    _fill_in("a*exp(-b*u)", x, x[:, 0])


def test_constants_of_a_guess_are_named_once_in_their_order():
  assert guesses.free_constants("b*exp(-a*x) + b", NAMES) == ["b", "a"]
  assert guesses.free_constants("2*x", NAMES) == []
