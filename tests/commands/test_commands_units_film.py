"""The film of candidates on their way to the data: its stage, its frames, and whom it shows; nothing is fitted."""

import types
import warnings

from matplotlib.figure import Figure
import numpy as np
import pytest

from symformer_jax import testing
from symformer_jax.commands import movies, trajectories
from symformer_jax.commands.tables import Table
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary

X = np.linspace(1, 3, 7)[:, None]


def table_of(num_features=1, num=7):
  x = np.linspace(1, 3, num)[:, None].repeat(num_features, axis=1)
  return Table("t.csv", tuple("xz"[:num_features]), "y", x, 2 * x[:, 0])


def trajectory(*texts):
  return trajectories.Trajectory(tuple(parser.parse(text, ["x"]) for text in texts), np.arange(len(texts))[::-1] + 0.5)


def test_the_stage_of_one_column_has_the_data_before_curves():
  axes = Figure().subplots()
  grid, horizontal, style = movies._set_stage(axes, table_of())
  assert style == "-" and grid.shape == (400, 1) and (horizontal[0], horizontal[-1]) == (1, 3)
  [dots] = axes.lines
  assert dots.get_ydata().tolist() == (2 * X[:, 0]).tolist() and dots.get_color() == "black" and dots.get_zorder() == 3
  assert dots.get_markersize() == 3 and dots.get_linestyle() == "None"
  assert axes.get_ylim() == pytest.approx((2 - 0.4, 6 + 0.4)) and (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")


def test_the_stage_of_more_columns_has_a_diagonal():
  axes = Figure().subplots()
  points, horizontal, style = movies._set_stage(axes, table_of(2))
  assert style == "o" and points.shape == (7, 2) and horizontal.tolist() == (2 * X[:, 0]).tolist()
  [diagonal] = axes.lines
  assert diagonal.get_slope() == 1 and diagonal.get_xy1() == (2, 2) and diagonal.get_color() == "0.75"
  assert diagonal.get_linewidth() == 1 and axes.get_ylim() == pytest.approx((1.6, 6.4))
  assert (axes.get_xlabel(), axes.get_ylabel()) == ("y, observed", "y, predicted")
  axes = Figure().subplots()
  assert len(movies._set_stage(axes, table_of(2, 5000))[0]) == 5000
  assert len(movies._set_stage(axes, table_of(2, 5001))[0]) == 2501


@pytest.mark.parametrize(("films", "last"), [
  ([("x", "x")], 0), ([("x", "2*x", "2*x")], 1), ([("x", "x", "3*x"), ("x", "x", "x")], 2), ([("x",)], 0)])
def test_the_last_step_that_moves_anything(films, last):
  assert movies._last_change([trajectory(*texts) for texts in films]) == last


def test_frames_rest_at_both_ends(monkeypatch, tmp_path):
  from matplotlib import animation
  made = {}

  class Film:
    def __init__(self, figure, show, *, frames, init_func):
      made.update(figure=figure, show=show, frames=frames, init_func=init_func)

    def save(self, path, *, writer, dpi):
      warnings.warn("a letter that the font has not", stacklevel=1)
      made.update(path=path, writer=writer, dpi=dpi)
  monkeypatch.setattr(animation, "FuncAnimation", Film)
  found = [trajectory("x", "1.5*x", "2*x", "2*x"), trajectory("1/(x - 1)", "x", "x", "x")]
  assert movies.draw(found, table_of(), tmp_path / "f.gif") == 8 + 3 + 8 == len(made["frames"])
  assert made["frames"] == [0] * 8 + [0, 1, 2] + [2] * 8 and made["dpi"] == 80 and made["init_func"]() is None
  assert made["path"] == str(tmp_path / "f.gif") and isinstance(made["writer"], animation.PillowWriter)
  assert type(made["figure"].get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
  assert made["writer"].fps == 8 and made["figure"].get_size_inches().tolist() == [7, 4.5]
  axes = made["figure"].axes[0]
  best, other = axes.lines[1:]
  assert (best.get_color(), other.get_color()) == ("C0", "C1") and best.get_zorder() == 2 and other.get_zorder() == 1.9
  assert {line.get_alpha() for line in (best, other)} == {0.8} and {line.get_markersize() for line in (best,
    other)} == {3}
  with np.errstate(all="ignore"):
    made["show"](0)
  assert np.isnan(other.get_ydata()[0]) and np.isfinite(other.get_ydata()[1:]).all()
  np.testing.assert_allclose(best.get_ydata(), best.get_xdata())
  assert axes.get_title() == "step 0 of refinement, RMSE of the best 3.5"
  made["show"](2)
  np.testing.assert_allclose(best.get_ydata(), 2 * best.get_xdata())
  assert axes.get_title() == "step 2 of refinement, RMSE of the best 1.5"
  monkeypatch.setattr(animation, "FFMpegWriter", lambda *, fps: ("ffmpeg", fps))
  movies.draw(found, table_of(), tmp_path / "f.mp4")
  assert made["writer"] == ("ffmpeg", 8)


def test_films_are_written_where_there_is_a_program_for_them(monkeypatch):
  from matplotlib import animation
  for is_there in (True, False):
    monkeypatch.setattr(animation.FFMpegWriter, "isAvailable", classmethod(lambda cls, is_there=is_there: is_there))
    assert movies.can_write(".gif") and movies.can_write(".mp4") == is_there
  assert movies.FORMATS == (".gif", ".mp4") and movies.FRAMES_PER_S == 8


def samples_of(*texts):
  vocab = Vocabulary(1)
  programs = [expression.encode(parser.parse(text, ["x"]), vocab) for text in texts]
  length = max(len(ids) for ids, _ in programs)
  return types.SimpleNamespace(
    vocab=vocab, ids=np.array([[*ids, *[0] * (length - len(ids))] for ids, _ in programs]),
    values=np.array([[*values, *[0] * (length - len(values))] for _, values in programs]))


def test_of_different_formulas_the_eight_that_end_best_are_shown(monkeypatch):
  samples = samples_of("x", "2*x", "x", "x**2", *[f"x + {i}.5" if i % 2 else "sin(x)" for i in range(3)], "cos(x)",
    "exp(x)",
                       "x**3", "x*x*x", "tan(x)", "1/x", "sqrt(x)")
  losses = np.array([3.0, 2.0, 1.0, np.inf, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
  asked = {}

  def fit(ids, values, *points, vocab, method, max_steps):
    asked.update(shape=ids.shape, method=method, max_steps=max_steps, first=ids[len(losses):, 0], zero=vocab.zero_id)
    return None, types.SimpleNamespace(loss=np.pad(losses, (0, len(ids) - len(losses))))
  monkeypatch.setattr(trajectories.solve, "fit_candidates", fit)
  chosen = trajectories._choose(samples, (), "gd")
  assert chosen[:2] == [2, 1] and len(chosen) == 8 and 3 not in chosen and 0 not in chosen
  assert asked["shape"][0] == 64 and asked["method"] == "gd" and asked["max_steps"] == 50
  assert (asked["first"] == asked["zero"]).all()
  assert trajectories._choose(types.SimpleNamespace(ids=[]), (), "gd") == []


@pytest.mark.parametrize(("num", "lanes"), [(1, 64), (64, 64), (65, 128), (128, 128), (129, 256)])
def test_candidates_are_padded_to_powers_of_two(monkeypatch, num, lanes):
  seen = []
  monkeypatch.setattr(trajectories.solve, "fit_candidates", lambda ids, values, *_, **__: (
    seen.append(len(ids)), types.SimpleNamespace(loss=np.zeros(len(ids)))))
  one = samples_of("x")
  many = types.SimpleNamespace(vocab=one.vocab, ids=np.repeat(one.ids, num, axis=0),
    values=np.repeat(one.values, num, axis=0))
  assert trajectories._choose(many, (), "lm") == [0] and seen == [lanes]


def test_what_a_recording_asks(monkeypatch):
  asked = {}
  samples = samples_of("2*x", "x")

  def sample_and_fit(model, rows, key, **options):
    asked.update(options, rows=rows)
    return samples, None
  monkeypatch.setattr(trajectories.samples_lib, "sample_and_fit", sample_and_fit)
  monkeypatch.setattr(trajectories, "_choose", lambda samples, points, method: asked.update(points=points) or [1, 0])
  monkeypatch.setattr(trajectories.trace_lib, "trace", lambda ids, values, *points, vocab, method, max_steps: (
    asked.update(ids=ids, method=method, max_steps=max_steps) or np.repeat(values[:, None], 3, axis=1),
    np.array([[4.0, 1.0, 0.25]] * len(ids))))
  model = testing.FixedProposer(["x0"], num_variables=3)
  found = trajectories.record(model, X, 2 * X[:, 0], weights=np.arange(1.0, 8), method="gd", seed=5)
  assert asked["num_samples"] == 256 and asked["top_k"] == 20 and asked["refine"] == "none"
  assert asked["method"] == "gd" and asked["max_steps"] == 50 and len(asked["ids"]) == 8
  x, y, weights = asked["points"]
  assert x.shape[1] == 3 and x.dtype == y.dtype == weights.dtype == np.float32 and (weights > 0).sum() == 7
  assert len(found) == 2 and len(found[0].nodes) == 3
  np.testing.assert_allclose(found[0].rmse / found[0].rmse[2], [4, 2, 1])
  trajectories.record(model, X, 2 * X[:, 0], n_samples=9, top_k=2)
  assert asked["num_samples"] == 9 and asked["top_k"] == 2 and asked["method"] == "lm"
  monkeypatch.setattr(trajectories, "_choose", lambda *_: [])
  assert trajectories.record(model, X, 2 * X[:, 0]) == []
