"""Candidates on their way through refinement, and the film of it."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
import numpy as np
from PIL import Image
import pytest

from symformer_jax import infer, testing
from symformer_jax.commands import movies, runner, trajectories
from symformer_jax.commands.tables import Table
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve, trace
from symformer_jax.selection import scoring

X = np.linspace(-4, 4, 60)[:, None]
Y = 2.5 * np.sin(X[:, 0]) + 1.5
FORMULAS = ["2.1*sin(x0) + 1.1", "x0**2*0.3 + 0.7", "1.7*x0", "x0", "cos(x0)*2.2", "0.5*exp(x0)", "3.1*x0 + 0.2",
            "x0**3", "sin(x0)", "1.3*x0**3 + x0"]


@pytest.fixture(scope="module")
def recorded():
  return trajectories.record(testing.FixedProposer(FORMULAS), X, Y, n_samples=40)


def test_the_eight_that_end_best_from_prediction_to_data(recorded):
  assert len(recorded) == 8
  last = [t.rmse[-1] for t in recorded]
  assert last == sorted(last) and last[0] < 1e-4
  best = recorded[0]
  assert printing.to_text(best.nodes[-1], digits=4) == "2.5*sin(x0) + 1.5"
  assert best.nodes[0] != best.nodes[-1] and best.rmse[0] > 0.05
  assert len({printing.to_text(t.nodes[0]) for t in recorded}) == 8
  for t in recorded:
    assert len(t.nodes) == len(t.rmse) == trajectories.NUM_STEPS
    assert (np.diff(t.rmse) <= 1e-6 * t.rmse[0]).all()  # a step that does not help is not taken


def test_errors_are_those_of_the_formulas_shown(recorded):
  for t in recorded:
    for step in (0, 1, 5, -1):
      shown = scoring.score(scoring.evaluate(t.nodes[step], X), Y).rmse
      assert t.rmse[step] == pytest.approx(shown, rel=1e-3, abs=1e-4)


def test_user_units():
  found = trajectories.record(testing.FixedProposer(FORMULAS), X * 100, Y * 1e6, n_samples=40)
  error = scoring.score(scoring.evaluate(found[0].nodes[3], X * 100), Y * 1e6).rmse
  assert len(found) > 3 and found[0].rmse[3] == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("method", ["lm", "gd"])
def test_iterates_are_those_of_the_solver(method, rng):
  """After s steps a trace stands where a fit of at most s steps ends."""
  vocab = Vocabulary(1)
  ids, mantissas = expression.encode(parser.parse("2.1*sin(1.2*x0) + 1.1", ["x0"]), vocab)
  ids, scale = np.array([ids]), np.array(vocab.constant_scale)
  values = np.array([mantissas]) * scale[ids]
  points = X.astype(np.float32), Y.astype(np.float32), np.ones(len(Y), np.float32)
  traced, loss = trace.trace(ids, values.astype(np.float32), *points, vocab=vocab, method=method, max_steps=6)
  fitted, fit = solve.fit_candidates(ids, values.astype(np.float32), *points, vocab=vocab, method=method, max_steps=4)
  is_constant = np.array(vocab.is_constant)[ids[0]]
  np.testing.assert_allclose(traced[0, 0][is_constant], values[0][is_constant], rtol=1e-6)
  np.testing.assert_allclose(traced[0, 3][is_constant], np.asarray(fitted)[0][is_constant], rtol=1e-4)
  assert loss[0, 3] == pytest.approx(float(fit.loss[0]), rel=1e-3, abs=1e-9)
  assert (traced[0, 5] != traced[0, 3]).any() and (traced[0, 3] != traced[0, 0]).any()


def test_what_cannot_be_filmed():
  with pytest.raises(InputError, match="takes steps"):
    trajectories.record(testing.FixedProposer(["x0"]), X, Y, method="none")
  assert trajectories.record(testing.FixedProposer(["sqrt(-1 - x0**2)"]), X, Y, n_samples=40) == []


@pytest.mark.parametrize("num_features", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_film_that_moves(recorded, tmp_path, num_features):
  x = np.repeat(X, num_features, axis=1)
  table = Table("points.csv", tuple(f"x{i}" for i in range(num_features)), "y", x, Y, ())
  path = tmp_path / "film.gif"
  num_frames = movies.draw(recorded, table, path)
  with Image.open(path) as film:
    assert film.format == "GIF"
    film.seek(film.n_frames - 1)
    last = np.asarray(film.convert("L"), int)
    film.seek(0)
    first = np.asarray(film.convert("L"), int)
    # Equal frames in a row are one, shown for longer.
    assert 3 < film.n_frames <= num_frames
  assert np.abs(last - first).max() > 100


@pytest.mark.parametrize("num_features", [1, 2])
def test_dollar_signs_in_names_begin_no_mathematics(num_features):
  names = tuple(f"$x$ $\\frac{i}" for i in range(num_features))
  figure = Figure()
  FigureCanvasAgg(figure)
  movies._set_stage(figure.subplots(), Table("p.csv", names, "$y_{$", np.repeat(X, num_features, axis=1), Y, ()))
  figure.canvas.draw()


@pytest.mark.parametrize(("arguments", "message"), [
  (["--animate=film.avi"], "--animate: expected a name ending in .gif or .mp4, got 'film.avi'"),
  (["--animate=none/film.gif"], "--animate: the folder 'none'"),
  (["--animate=film.gif", "--refine=none"], "--animate: with --refine=none nothing moves"),
  (["--animate=film.mp4"], "--animate: .mp4 takes the program ffmpeg"),
])
def test_an_unusable_film_is_refused_before_any_work(tmp_path, monkeypatch, capsys, arguments, message):
  monkeypatch.setattr(movies, "can_write", lambda suffix: suffix == ".gif")
  monkeypatch.chdir(tmp_path)
  (tmp_path / "points.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(9)))
  try:
    with pytest.raises(SystemExit) as ended:
      runner.run(infer.main, flag_values=infer.asked.FLAGS, argv=["infer", "--data=points.csv", *arguments])
  finally:
    infer.asked.FLAGS.unparse_flags()
    for name in infer.asked.FLAGS:
      infer.asked.FLAGS[name].unparse()
  assert ended.value.code == runner.UNUSABLE and message in capsys.readouterr().err
