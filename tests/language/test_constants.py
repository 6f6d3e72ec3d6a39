"""Exponents and mantissas of constants."""

from fractions import Fraction
import math

from hypothesis import given, strategies as st
import numpy as np
import pytest

from symformer_jax.language import constants

IN_RANGE = st.floats(1.0000001e-11, 1e10) | st.floats(-1e10, -1.0000001e-11)


def exact_exponent(value: float) -> int:
  """ceil(log10 |value|) in exact arithmetic."""
  size = Fraction(abs(value))
  return next(e for e in range(-400, 400) if size <= Fraction(10) ** e)


@given(IN_RANGE)
def test_split_follows_the_papers_formula(value):
  exponent, mantissa = constants.split_constant(value)
  # The double nearest to 1e-5 is not 10**-5: compare with the neighbours of a power only up to that.
  near = any(abs(abs(value) - constants.power_of_ten(e)) <= 4 * math.ulp(value) for e in range(-11, 11))
  assert near or exponent == exact_exponent(value)
  assert constants.join_constant(exponent, mantissa) == pytest.approx(value, rel=1e-15)
  assert 0.1 < abs(mantissa) <= 1 or near
  assert math.copysign(1, mantissa) == math.copysign(1, value)


@pytest.mark.parametrize("error", [-1e-14, 0, 1e-14])
def test_a_logarithm_that_is_rounded_either_way_decides_nothing(monkeypatch, error):
  values = 1000.0, math.nextafter(1000, 0), math.nextafter(1000, 2000), 0.37
  exact = {value: exact_exponent(value) for value in values}
  log10 = math.log10
  monkeypatch.setattr(math, "log10", lambda value: log10(value) + error)
  assert {value: constants.split_constant(value)[0] for value in exact} == exact


@pytest.mark.parametrize("exponent", range(-10, 11))
@pytest.mark.parametrize("sign", [1, -1])
def test_powers_of_ten_and_their_neighbours(exponent, sign):
  value = sign * float(f"1e{exponent}")
  assert constants.split_constant(value) == (exponent, sign)
  above = math.nextafter(value, sign * math.inf)
  if exponent < 10:
    assert constants.split_constant(above)[0] == exponent + 1
  assert constants.split_constant(math.nextafter(value, 0))[0] == exponent
  assert constants.join_constant(exponent, sign) == value


def test_the_papers_example():
  exponent, mantissa = constants.split_constant(1781.5)
  assert (exponent, mantissa) == (4, 0.17815)
  assert constants.split_constant(0.017) == (-1, pytest.approx(0.17))


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan])
def test_no_exponent_for(value):
  with pytest.raises(ValueError, match="finite and not 0"):
    constants.split_constant(value)


@pytest.mark.parametrize("value", [1.1e10, 9e-12, 5e-324, 1.7e308, -1.7e308])
def test_out_of_range(value):
  with pytest.raises(ValueError, match=r"outside \[-10, 10\]"):
    constants.split_constant(value)


def test_small_integers_are_tokens():
  integers = [v for v in np.arange(-8, 8.25, 0.25) if constants.is_small_integer(v)]
  assert integers == list(range(-5, 6))
  assert not constants.is_small_integer(math.inf) and not constants.is_small_integer(math.nan)


def test_drawn_constants_are_uniform():
  drawn = constants.sample_constants(np.random.default_rng(0), (20_000, 2))
  assert drawn.shape == (20_000, 2) and np.abs(drawn).max() <= 5
  counts = np.histogram(drawn, bins=10, range=(-5, 5))[0] / drawn.size
  np.testing.assert_allclose(counts, 0.1, atol=0.01)
