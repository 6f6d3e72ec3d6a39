"""Problem lists, problem files and the points of problems."""

import collections
import dataclasses
import os

import numpy as np
import pytest

from symformer_jax.errors import InputError
from symformer_jax.evaluation import metrics, problems, published
from symformer_jax.language import expression
from symformer_jax.language.parser import parse

HEADER = "family,name,n_vars,expression,ranges"
FAMILIES = {"Nguyen": 12, "R": 3, "Livermore": 22, "Koza": 2, "Keijzer": 12, "Constant": 8}


def read(tmp_path, text):
  path = tmp_path / "mine.csv"
  path.write_text(text, encoding="utf-8")
  return problems.read_problems(path)


def by_name(name):
  return {p.name: p for p in problems.load_list(name)}


@pytest.mark.parametrize(("name", "univariate"), [("paper", 41), ("reference", 40), ("official", 40)])
def test_the_lists(name, univariate):
  found = problems.load_list(name)
  assert collections.Counter(p.family for p in found) == FAMILIES
  assert sum(p.num_variables == 1 for p in found) == univariate
  assert all(p.num_variables == 1 + ("y" in p.text) for p in found)


def test_how_the_lists_differ():
  paper, reference = by_name("paper"), by_name("reference")
  assert {n for n in paper if paper[n].truth != reference[n].truth} == {"Livermore-5", "Livermore-14", "Livermore-16"}


@pytest.mark.parametrize("name", ["paper", "reference"])
def test_59_rows_are_55_functions(name):
  found = problems.load_list(name)
  x = np.random.default_rng(1).uniform(0.1, 4, (50, 2))
  values = {expression.evaluate(p.truth, x).round(9).tobytes() for p in found}
  assert len(values) == 55


@pytest.mark.parametrize(("name", "box"), [
  ("Nguyen-1", ((-5, 5),)), ("Nguyen-7", ((0, 5),)), ("Nguyen-8", ((0, 5),)), ("Keijzer-7", ((0, 5),)),
  ("Nguyen-9", ((-5, 5), (-5, 5))), ("Nguyen-11", ((0, 5), (-5, 5))), ("Constant-8", ((0, 5),)),
])
def test_boxes_of_the_paper_list(name, box):
  assert by_name("paper")[name].box == box


def test_official_ranges():
  official = by_name("official")
  assert (official["Nguyen-1"].box, official["Nguyen-1"].num_points) == (((-1, 1),), 20)
  assert (official["Keijzer-6"].box, official["Keijzer-6"].spacing) == (((1, 50),), "grid")
  assert (official["Livermore-12"].num_points, official["Nguyen-12"].num_variables) == (50, 2)


def test_points_are_uniform_in_the_box(rng):
  problem = by_name("paper")["Nguyen-9"]
  points = problems.draw_points(problem, 20_000, rng=rng)
  x, y = points[:, :-1], points[:, -1]
  np.testing.assert_allclose(y, np.sin(x[:, 0]) + np.sin(x[:, 1] ** 2), rtol=1e-12)
  for column in x.T:
    np.testing.assert_allclose(np.histogram(column, 10, (-5, 5))[0] / len(x), 0.1, atol=0.012)


def test_number_of_points(rng):
  assert problems.draw_points(by_name("paper")["Nguyen-9"], rng=rng).shape == (200, 3)
  assert problems.draw_points(by_name("official")["Nguyen-1"], rng=rng).shape == (20, 2)


def test_a_grid_is_evenly_spaced_without_undefined_points(rng):
  points = problems.draw_points(by_name("official")["Keijzer-6"], rng=rng)
  np.testing.assert_array_equal(points[:, 0], np.arange(1, 51))
  sqrt = problems.draw_points(by_name("official")["Keijzer-8"], rng=rng)
  assert sqrt[0].tolist() == [0, 0] and len(sqrt) == 101


def test_undefined_points_are_drawn_again(rng):
  problem = problems.Problem("f", "n", parse("log(x)"), "log(x)", ((-5.0, 5.0),), 100)
  points = problems.draw_points(problem, rng=rng)
  assert len(points) == 100 and np.isfinite(points).all() and points[:, 0].min() > 0


@pytest.mark.parametrize("box", [((0.0, 5.0),), ((-5.0, 5.0), (0.0, 1.0))])
def test_points_outside(rng, box):
  text = "exp(x)" if len(box) == 1 else "x*y"
  problem = problems.Problem("f", "n", parse(text), text, box, 100)
  points = problems.draw_points_outside(problem, 3000, distance=2.0, rng=rng)
  low, high = np.array(box).T
  x = points[:, :-1]
  assert len(x) == 3000 and ((x < low) | (x > high)).any(axis=1).all()
  assert (x >= low - 2).all() and (x <= high + 2).all() and x.min() < low.min() - 1.5
  np.testing.assert_allclose(points[:, -1], expression.evaluate(problem.truth, x))


def test_a_truth_that_ends_with_its_box_has_no_points_outside(rng):
  problem = problems.Problem("f", "n", parse("arcsin(x)"), "arcsin(x)", ((-1.0, 1.0),), 100)
  with pytest.raises(InputError, match=r"no point of 'arcsin\(x\)' outside -1:1 within 2 has a finite"):
    problems.draw_points_outside(problem, 1000, distance=2.0, rng=rng)


def test_a_problem_file(tmp_path):
  found = read(tmp_path, f"{HEADER}\nown,first,2,x*exp(-y),0:1;-2:3\nown,second,1,x^2,\n")
  assert [p.box for p in found] == [((0, 1), (-2, 3)), ((-5, 5),)]
  assert [p.num_points for p in found] == [200, 100]
  assert found[0].names == ("x", "y")


def test_optional_columns_and_other_orders(tmp_path):
  found = read(tmp_path, "name,ranges,expression,n_vars,family,n_points,spacing\na,0:1,x+1,1,f,30,grid\n")
  assert (found[0].num_points, found[0].spacing) == (30, "grid")


@pytest.mark.parametrize(("row", "message"), [
  ("f,a,1,x +,0:1", r"row 1 \(a\): expected a number, a name or '\(', got the end"),
  ("f,a,1,y,0:1", r"row 1 \(a\): unknown name 'y'"),
  ("f,a,one,x,0:1", "n_vars: expected a whole number from 1 to 26, got 'one'"),
  ("f,a,0,x,0:1", "n_vars: expected a whole number from 1"),
  ("f,a,2,x*y,0:1", "ranges: expected 2 of the form lo:hi with ';' between, got '0:1'"),
  ("f,a,1,x,0-1", "ranges: expected lo:hi with numbers, got '0-1'"),
  ("f,a,1,x,3:1", "expected lo < hi, both finite, got '3:1'"),
  ("f,a,1,x,0:inf", "expected lo < hi, both finite"),
  ("f,a,1,,", r"row 1 \(a\): the formula is empty"),
  ("f,a,1,x", r"row 1 \(a\): expected 5 cells \(family,name,n_vars,expression,ranges\), got 4"),
  ("f,a,1,x,0:1,9", r"row 1 \(a\): expected 5 cells .*, got 6"),
  ("f", r"row 1 \(without a name\): expected 5 cells .*, got 1"),
  ("f, ,1,x,0:1", "row 1 .*: name: expected a name, got nothing"),
  ("f,a\x1b[31m,1,x,0:1", r"name: expected signs that can be printed, got 'a\\x1b\[31m'"),
  ("f\0g,a,1,x,0:1", r"family: expected signs that can be printed, got 'f\\x00g'"),
])
def test_bad_rows_are_named(tmp_path, row, message):
  with pytest.raises(InputError, match=message):
    read(tmp_path, f"{HEADER}\n{row}\n")


@pytest.mark.parametrize(("row", "message"), [
  ("f,a,1,log(x),-5:-1", r"no point of 'log\(x\)' in -5:-1 has a finite value of at most 1e\+07 in size; --max_abs"),
  ("f,a,1,x*1e9,1:2", r"no point of 'x\*1e9' in 1:2 has a finite value"),
  ("f,a,1,log(x - 9),", "no box made of -5, 0 and 5"),
])
def test_a_row_without_points_spoils_no_other(tmp_path, rng, row, message):
  useless, good = read(tmp_path, f"{HEADER}\n{row}\nf,b,1,x**2,1:2\n")
  with pytest.raises(InputError, match=message):
    problems.draw_points(useless, rng=rng)
  assert problems.draw_points(good, rng=rng).shape == (100, 2)


def test_values_of_any_size_where_the_bound_is_moved(tmp_path, rng):
  [problem] = read(tmp_path, f"{HEADER}\nf,a,1,x*1e9,1:2\n")
  points = problems.draw_points(dataclasses.replace(problem, largest=1.5e9), rng=rng)
  assert len(points) == 100 and 1.4e9 < points[:, -1].max() <= 1.5e9


def test_bad_files(tmp_path):
  with pytest.raises(InputError, match="cannot read problem file .*: No such file"):
    problems.read_problems(tmp_path / "none.csv")
  with pytest.raises(InputError, match="no column 'ranges'"):
    read(tmp_path, "family,name,n_vars,expression\nf,a,1,x\n")
  with pytest.raises(InputError, match="no problems below the header"):
    read(tmp_path, HEADER + "\n")
  with pytest.raises(InputError, match="two columns are called 'name'"):
    read(tmp_path, f"{HEADER},name\nf,a,1,x,0:1,b\n")
  with pytest.raises(InputError, match="the name 'a' stands in two rows"):
    read(tmp_path, f"{HEADER}\nf,a,1,x,0:1\nf,a,1,x^2,0:1\n")
  (tmp_path / "mine.csv").write_bytes(b"\xff\xfe\x00")
  with pytest.raises(InputError, match="it is no UTF-8 text"):
    problems.read_problems(tmp_path / "mine.csv")
  with pytest.raises(InputError, match="cannot read problem file .*: field larger than field limit"):
    read(tmp_path, f"{HEADER}\nf,a,1,{'x' * 200_000},0:1\n")
  with pytest.raises(InputError, match="n_vars: expected a whole number from 1 to 26, got '9+...9+'"):
    read(tmp_path, f"{HEADER}\nf,a,{'9' * 5000},x,0:1\n")
  assert read(tmp_path, f"{HEADER}\nf,a,001,x,0:1\n")[0].num_variables == 1
  os.mkfifo(tmp_path / "pipe.csv")
  with pytest.raises(InputError, match="cannot read problem file '.*pipe.csv': is no regular file"):
    problems.read_problems(tmp_path / "pipe.csv")


def test_an_unknown_list_says_which_exist():
  with pytest.raises(InputError, match="'nonesuch': expected one of paper, reference, official, .*feynman"):
    problems.load_list("nonesuch")


def test_laws_of_many_variables_are_83():
  found = problems.load_list("feynman")
  assert len(found) == 83 and {p.num_variables for p in found} == {3, 4, 5, 6, 8, 9}
  assert all(p.num_points == 100 * p.num_variables for p in found)


@pytest.mark.parametrize("change", [{"scale": 10.0}, {"shift": 100.0}, {"scale": 0.1, "shift": -3.0}])
def test_moved_problems_are_the_same_function_in_other_units(rng, change):
  problem = by_name("paper")["Nguyen-10"]
  moved = problems.move_box(problem, **change)
  x = problems.draw_points(problem, rng=rng)[:, :-1]
  other = x * change.get("scale", 1) + change.get("shift", 0)
  np.testing.assert_allclose(expression.evaluate(moved.truth, other), expression.evaluate(problem.truth, x), atol=1e-12)
  low, high = np.array(moved.box).T
  assert (low <= other.min(axis=0)).all() and (other.max(axis=0) <= high).all()
  assert expression.evaluate(parse(moved.text, moved.names), other) == pytest.approx(
    expression.evaluate(problem.truth, x), abs=1e-12)


def test_variables_beyond_z():
  assert problems.variable_names(5) == ("x", "y", "z", "w", "v")
  assert len(set(problems.variable_names(26))) == 26


def test_fresh_equations_come_from_the_validation_split(tmp_path):
  from symformer_jax.data import records
  from symformer_jax.language.vocabulary import Vocabulary

  trees = [parse("2.5*sin(x)"), parse("x**6 + 0.017")]
  vocab = Vocabulary(1)
  encoded = [expression.encode(t, vocab) for t in trees]
  length = max(len(ids) for ids, _ in encoded)
  ids = np.array([i + [0] * (length - len(i)) for i, _ in encoded], np.uint8)
  mantissas = np.array([c + [0.0] * (length - len(c)) for _, c in encoded], np.float32)
  domains = np.array([[[-5, 5]], [[-5, 0]]], np.float32)
  folder = records.split_folder(tmp_path, "univariate")
  folder.mkdir(parents=True)
  records.write_shard(folder / records.shard_name("validation", 0, 1), [records.Block(ids, mantissas, domains)])
  found = problems.load_equations(tmp_path, num_equations=5)
  assert [p.box for p in found] == [((-5, 5),), ((-5, 0),)]
  x = np.linspace(-4, 4, 20)[:, None]
  np.testing.assert_allclose(expression.evaluate(found[0].truth, x), 2.5 * np.sin(x[:, 0]), rtol=1e-6)
  np.testing.assert_allclose(expression.evaluate(found[1].truth, x), x[:, 0] ** 6 + 0.017, rtol=1e-6)
  assert len(problems.load_equations(tmp_path, num_equations=1)) == 1


def test_a_fresh_law_has_the_columns_of_its_own_variables(tmp_path):
  from symformer_jax.data import records
  from symformer_jax.language.vocabulary import Vocabulary

  ids, mantissas = expression.encode(parse("x*y + 2.5", ("x", "y")), Vocabulary(9))
  domains = np.zeros((1, 9, 2), np.float32)
  domains[0, :2] = [[1, 5], [-2, 0]]
  folder = records.split_folder(tmp_path, "laws")
  folder.mkdir(parents=True)
  block = records.Block(np.array([ids], np.uint8), np.array([mantissas], np.float32), domains)
  records.write_shard(folder / records.shard_name("validation", 0, 1), [block])
  [found] = problems.load_equations(tmp_path, num_equations=5)
  assert found.box == ((1, 5), (-2, 0)) and found.num_variables == 2 and found.names == ("x", "y")


def test_the_pictured_formulas_and_the_papers_answers():
  """Where the paper's caption has the truth itself as the answer, our judge must say so."""
  found = by_name("examples")
  assert list(found) == list(published.EXAMPLES) and len(found) == 16
  equal = {name for name, p in found.items() if metrics.is_recovered(
    p.truth, parse(published.EXAMPLES[name], p.names), p.box, rng=np.random.default_rng(0))}
  assert equal == {f"pictured-{n}" for n in (1, 7, 10, 12, 15)}
  assert not metrics.has_same_skeleton(found["pictured-1"].truth, parse(published.EXAMPLES["pictured-1"]))


def test_the_laws_are_what_textbooks_say():
  """Against NumPy's own functions, in which the list is not written."""
  laws, x = by_name("laws"), np.linspace(0.3, 0.9, 7)
  oracles = {
    "Langevin": 1 / np.tanh(x) - 1 / x, "saturating magnetisation": np.tanh(1.4 * x),
    "daily cycle": 12.3 + 4.5 * np.sin(np.pi * x / 12 + 1.1), "logistic growth": 10 / (1 + np.exp(5.2 - 1.3 * x)),
    "diode": 1e-9 * np.expm1(20 * x), "Planck": x**3 / np.expm1(x)}
  for name, values in oracles.items():
    np.testing.assert_allclose(expression.evaluate(laws[name].truth, x[:, None]), values, rtol=1e-9)
  assert len(laws) == 36 and all(p.box for p in laws.values())
