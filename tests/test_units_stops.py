"""Where a search is told to stop, why it says it ended, and what shows it meanwhile."""

import io
import types

import jax
import numpy as np
import pytest
from rich import text as rich_text

from symformer_jax import conclusion, inference, live_front, progress_line
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.language import parser
from symformer_jax.results import Counts, Equation, Standing, Step
from symformer_jax.selection.select import Selection
from symformer_jax.testing import FixedProposer

MODEL = FixedProposer(["x0"])
X = np.linspace(1, 3, 12)[:, None]
Y = 2 * X[:, 0] + 1


# --- the search --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("was_stopped", "is_wished", "is_over"), [
  (False, False, False), (True, False, True), (False, True, True), (True, True, True)])
def test_a_search_is_over_where_its_first_look_was_stopped_or_somebody_wishes_it(
    monkeypatch, was_stopped, is_wished, is_over):
  asked = []

  def run(searches, sources, options, *, clock, should_stop):
    asked.append(should_stop())
    return should_stop()
    yield
  monkeypatch.setattr(inference, "weigh", lambda *_: ([types.SimpleNamespace(dataset=(X, Y))], was_stopped))
  monkeypatch.setattr(inference.loop, "run", run)
  monkeypatch.setattr(inference, "Search", lambda *_: types.SimpleNamespace(progress=[]))
  monkeypatch.setattr(conclusion, "finish", lambda *_, target: target)
  found = inference._search_together(MODEL, [(X, Y)], [None], ["y"], SearchOptions(), None, None, lambda: is_wished,
                                     begin=0)
  assert asked == [is_over] and found == (["y"], is_over)


def part(ended_by, *sources):
  """A search that is over, as `finish` looks at it."""
  task = types.SimpleNamespace(rows=Rows(X, Y, np.ones(12)), names=("x0",), units=None, is_chosen=False)
  task.as_given = lambda: task
  pool = types.SimpleNamespace(shortlist=lambda most: [], in_order=lambda: [])
  return types.SimpleNamespace(
    ended_by=ended_by, task=task, pool=pool, counts=Counts(3, 2, 1), progress=[], states={},
    sources=[types.SimpleNamespace(name=name) for name in sources])


@pytest.mark.parametrize(("parts", "ended_by"), [
  ([part("exact", "transformer")], "exact"), ([part("exact", "transformer"), part("time", "transformer")], "time"),
  ([part("noise", "transformer"), part("exact", "transformer")], "noise"),
  ([part("exact", "transformer"), part("exact", "growth")], "exact"),
  ([part("budget", "transformer")], "budget"), ([part("budget", "growth")], "no_model"),
  ([part("budget", "growth"), part("budget", "transformer")], "budget"), ([part("noise", "growth")], "noise")])
def test_a_search_of_parts_ended_by_what_ended_the_first_that_is_not_exact(monkeypatch, parts, ended_by):
  best = Equation(parser.parse("2*x0", ["x0"]), ("x0",), 0.01, 0.99, 0.1, ())
  monkeypatch.setattr(conclusion, "_choose", lambda *_, **__: Selection(best, (best,), ()))
  weighing = types.SimpleNamespace(exponent=None, num_light=0, text="")
  weighed = types.SimpleNamespace(dataset=(X, Y), weighing=weighing)
  found = conclusion.finish(parts, None, weighed, MODEL, SearchOptions(), Clock(), target="y")
  assert found.ended_by == ended_by and found.counts == Counts(3 * len(parts), 2 * len(parts), len(parts))


def test_a_key_takes_the_place_of_the_seed(monkeypatch):
  keys = []
  monkeypatch.setattr(inference, "_search_all", lambda *given: keys.append(given[5]) or [])
  given = jax.random.key(5)
  inference.search(MODEL, [], key=given, seed=7)
  inference.search(MODEL, [], seed=7)
  assert keys[0] is given and (jax.random.key_data(keys[1]) == jax.random.key_data(jax.random.key(7))).all()


@pytest.mark.parametrize("is_without", [False, True])
def test_constants_have_units_unless_that_is_said(is_without):
  assert inference._read_units({"x": "m"}, [["x"]], None, is_without).are_constants_free is not is_without


# --- what is shown -----------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
  def isatty(self):
    return True


def standing(*, index=0, sampled=256, front=(), best="x", r2: float | None = 0.5):
  return Standing(sampled, best, r2, "library", True, 12.0, index, lambda: front)


@pytest.fixture
def drawn(monkeypatch):
  """What is drawn on a terminal of so many columns and lines."""
  def draw(columns, lines, shown, **given):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(lines))
    stream = Terminal()
    with live_front.show_progress(stream=stream, **given) as front:
      front(shown)
      return rich_text.Text.from_ansi(stream.getvalue()).plain.splitlines()
  return draw


def test_of_several_data_sets_the_title_names_the_one_that_is_searched(drawn):
  assert drawn(80, 24, standing(index=1), names=("tide", "wind"))[0] == "wind: 12.0 s, library, 256 samples"
  assert drawn(80, 24, standing(), names=("tide",))[0] == "12.0 s, library, 256 samples"
  assert drawn(80, 24, standing(sampled=0), max_time=20.0)[0] == "12.0 s, 8.0 s left, library"


@pytest.mark.parametrize("columns", [50, 61, 80])
def test_a_formula_has_what_the_columns_of_numbers_leave(drawn, columns):
  fits, cut = "x" * (columns - 32), "x" * (columns - 31)
  lines = drawn(columns, 24, standing(front=(Step(1, 0.5, fits), Step(2, 0.5, cut))))
  [whole, short] = [line for line in lines if "xx" in line]
  assert whole.count("x") == len(fits) and short.count("x") == len(fits) - 1 and "\u2026" in short
  assert len(whole) == len(short) == columns


@pytest.mark.parametrize(("lines", "num"), [(6, 1), (7, 1), (8, 2), (10, 4)])
def test_a_front_has_the_lines_that_frame_and_title_leave(drawn, lines, num):
  front = tuple(Step(i, 0.5, f"x*{i}") for i in range(10, 20))
  assert [f"x*{i}" for i in range(10, 20) if any(f"x*{i}" in row for row in drawn(60, lines, standing(front=front)))] \
    == [f"x*{i}" for i in range(20 - num, 20)]


@pytest.mark.parametrize(("width", "formula"), [
  (47, "x + 123*y + zzzzz"), (46, "x + 123*y ..."), (43, "x + 123*y ..."), (42, "x + 123 ..."), (40, "x ..."),
  (34, " ..."), (30, " ...")])
def test_a_formula_has_what_the_line_leaves_it(width, formula):
  begin = "12.0 s, library: R2 0.500000, "
  assert progress_line.describe(standing(sampled=0, best="x + 123*y + zzzzz"), width=width) == begin + formula
  assert progress_line.describe(standing(sampled=0), width=29) == begin[:19] + " ..."
  assert progress_line.describe(standing(sampled=0, r2=None), width=15) == begin[:15]
  assert progress_line.describe(standing(sampled=0, r2=None), width=14) == begin[:7] + " ..."
