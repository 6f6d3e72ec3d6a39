"""Parts of a formula that are next to nothing."""

import dataclasses
from types import SimpleNamespace

from hand_made_rows import parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.selection import writing


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("share", "is_lean"), [(0.049, True), (0.051, False)])
def test_what_is_next_to_nothing_goes_where_values_change_by_a_share_of_their_spread(size, share, is_lean, monkeypatch):
  config = dataclasses.replace(DEFAULT.selection, idle=(1e-6,), idle_change=0.05)
  x = size * np.linspace(-1, 1, 40)
  lean = expression.Node("+", (parse("x"), expression.number(share * np.std(x))))
  monkeypatch.setattr(writing, "without_idle_parts", lambda node, x, *, share: lean)
  judge = SimpleNamespace(config=config, rows=rows_of(x, x))
  assert writing._leaner([parse("x")], judge) == [lean] * is_lean


@pytest.mark.parametrize(("cost", "is_taken"), [(4.9, True), (5.0, False)])
def test_a_line_in_the_place_of_a_function_is_to_be_the_shorter_description(cost, is_taken, monkeypatch):
  wave, line = parse("sin(x)"), parse("x")
  monkeypatch.setattr(writing.straight, "straightened", lambda *given, share: [line])
  for name in ("refit_constants", "remove_redundant"):
    monkeypatch.setattr(writing.rounding, name, lambda node, *data, config: node)
  asked = []
  judge = SimpleNamespace(
    config=DEFAULT.selection, rows=rows_of([1.0, 2], [1.0, 2]), score=lambda node: None, is_exact=lambda each: False,
    cost=lambda finalist, *, is_rounded: asked.append(is_rounded) or (5.0 if finalist.node == wave else cost))
  assert writing._straight(wave, judge, lambda node: True) == [line] * is_taken and asked == [False, False]


def test_a_tree_that_simple_values_leave_undefined_is_fitted_again_once_it_is_tidy(monkeypatch):
  asked = []
  node, snapped, tidy = parse("1.5*log(x)"), parse("0*log(x)"), parse("x")
  monkeypatch.setattr(writing.rounding, "snap_constants", lambda node, *data, num_errors, config: snapped)
  monkeypatch.setattr(writing.rounding, "refit_constants", lambda node, *data, config: asked.append(node) or node)
  for mse, num_fits in ((0.5, 0), (np.inf, 1)):
    judge = SimpleNamespace(
      config=DEFAULT.selection, rows=rows_of([1.0, 2], [1.0, 2]), score=lambda node, mse=mse: SimpleNamespace(mse=mse))
    assert writing._snapped(node, 2.5, judge, lambda node: tidy) == tidy and asked == [tidy] * num_fits
