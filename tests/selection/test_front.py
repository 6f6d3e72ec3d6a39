"""The Pareto front against brute force."""

import math

from hypothesis import given, strategies as st

from symformer_jax.selection.front import falling, pareto_indices

FORMULA = st.tuples(st.integers(1, 12), st.sampled_from([0.0, 1e-20, 0.1, 0.5, 1.0, 2.0, math.inf, math.nan]))


@given(st.lists(FORMULA, max_size=30))
def test_front_is_what_nothing_dominates(formulas):
  complexities, errors = [c for c, _ in formulas], [e for _, e in formulas]
  front = pareto_indices(complexities, errors)
  finite = [(c, e) for c, e in formulas if math.isfinite(e)]
  undominated = {
    (c, e) for c, e in finite if not any(d <= c and f <= e and (d, f) != (c, e) for d, f in finite)}
  assert {(complexities[i], errors[i]) for i in front} == undominated
  assert [complexities[i] for i in front] == sorted({complexities[i] for i in front})


def test_of_exact_fits_the_simplest_stays():
  assert pareto_indices([3, 5, 7], [1e-15, 1e-18, 0.0], floor=1e-14) == [0]


def test_of_exact_fits_that_of_the_lowest_cost_stays_where_costs_are_known():
  """A shorter one may need so many digits that it describes the data worse: `9637310*cos(0.00054*x)` for a square."""
  assert pareto_indices([1, 3, 5, 7], [1.0, 1e-15, 1e-18, 0.0], floor=1e-14, costs=[9, 5, 2, 3]) == [0, 2]
  assert pareto_indices([3, 5, 7], [1e-15, 1e-18, 0.0], floor=1e-14, costs=[2, 2, 2]) == [0]


def test_costs_decide_within_a_complexity_among_improvements():
  # The cheapest of complexity 5 is no better than complexity 3: it must not hide the one that is.
  assert pareto_indices([3, 5, 5, 5], [1.0, 1.5, 0.5, 0.4], costs=[0, 0, 1, 2]) == [0, 2]


def test_a_gain_within_rounding_is_none():
  assert pareto_indices([3, 4, 5], [1.0, 0.995, 0.98], min_gain=0.01) == [0, 2]


def test_lines_that_the_last_fit_has_passed_are_left_out():
  sizes, errors = (7, 1, 3, 9, 5, 6, 7), (3.0, 9.0, 4.0, 2.0, 8.0, 4.1, 2.5)
  assert falling(sizes, errors, kept={4}) == [1, 2, 4, 6, 3]
  assert falling(sizes, errors, kept={4}, floor=3.0) == [1, 2, 4, 0]


def test_of_formulas_that_meet_the_data_just_to_the_floor_the_one_of_the_lowest_cost_stays():
  assert pareto_indices([3, 5], [1e-9, 1e-9], floor=1e-9, costs=[1.0, 0.5]) == [1]
  assert pareto_indices([3, 5, 7], [1e-9, 1e-10, 1e-9], floor=1e-9, costs=[1.0, 0.7, 0.5]) == [2]
