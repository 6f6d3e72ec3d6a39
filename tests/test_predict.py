"""The command that applies a saved formula to another table: values of the regressor, what is said and refused."""

from collections import Counter
import csv
import json
import math
import pathlib
import signal
import subprocess
import sys

from hypothesis import given, settings, strategies as st
import numpy as np
import pandas as pd
import pytest

from symformer_jax import predict, save_result
from symformer_jax.commands import infer_flags, runner, table_files, tables
from symformer_jax.errors import InputError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.file_answers import Answer
from symformer_jax.language import parser
from symformer_jax.results import Counts, Equation, SearchResult, Seconds, Seen
from symformer_jax.selection import scoring

ROOT = pathlib.Path(__file__).parents[1]
BOYLE = str(ROOT / "examples" / "boyle.csv")


def make_result(texts, names, x, y, *, best=0, loss="squared"):
  """A search's answer with these formulas, scored on points."""
  lines = []
  for text in texts:
    scores = scoring.score(scoring.evaluate(node := parser.parse(text, names), x), y)
    mse = min(scores.mse, 1e300)  # of a search no formula is undefined on its rows
    lines.append(Equation(node, tuple(names), mse, scores.r2, scores.relative_error, ()))
  ranges = {name: (float(column.min()), float(column.max())) for name, column in zip(names, x.T, strict=True)}
  return SearchResult("ok", "", lines[best], tuple(lines), Counts(), Seconds(), 0, len(y), "fixed", (), "budget",
                      Seen(ranges, (), 0.1, loss), np.ones(len(y)))


def write_fit(path, table, *texts, selected=0, **options):
  """What `symformer --out` writes of a table and these formulas; the first is recommended."""
  infer_flags.FLAGS(["infer"])
  result = make_result(texts, table.features, table.x, table.y, **options)
  answer = Answer(table.path, table, result, result.pareto[selected])
  path.write_text(answer.to_json() + "\n")
  return str(path)


def regressor(result, names, **params):
  estimator = SymFormerRegressor(**params)
  estimator.n_features_in_, estimator.feature_names_in_ = len(names), np.array(names, dtype=object)
  estimator.result_ = result
  estimator._set_front(result.pareto, result.best)
  return estimator


@pytest.fixture
def command(capsys):
  """Runs the command in this process: `(code, stdout, stderr)`."""
  handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}

  def run(*argv):
    predict.asked.FLAGS.unparse_flags()
    for name in predict.asked.FLAGS:
      predict.asked.FLAGS[name].unparse()
    with pytest.raises(SystemExit) as caught:
      runner.run(predict.main, flag_values=predict.asked.FLAGS, takes_arguments=True,
                 argv=["predict", *map(str, argv)])
    return caught.value.code, *capsys.readouterr()

  yield run
  for number, handler in handlers.items():
    signal.signal(number, handler)


@pytest.fixture
def boyle(tmp_path):
  """Boyle's law as the command saves it."""
  return write_fit(tmp_path / "boyle.json", tables.read_table(BOYLE), "1407/volume",
                   "0.02*volume**2 - 2.9*volume + 115")


@pytest.fixture
def write(tmp_path):
  def write(text, name="new.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path / name)
  return write


def values(text, cells, name="volume"):
  """Of a formula of one column, as the regressor has them."""
  return scoring.evaluate(parser.parse(text, [name]), np.array(cells, float)[:, None]).tolist()


def column(out, name="predicted"):
  """A column of what is printed; an empty cell is NaN."""
  header, *rows = (line.split(",") for line in out.splitlines())
  place = header.index(name)
  return [float(row[place] or "nan") for row in rows]


# --- values --------------------------------------------------------------------------------------------------------


def test_the_rows_of_the_fit_have_the_figures_of_the_fit(command, boyle):
  code, out, err = command(boyle, BOYLE)
  record, table = json.loads(pathlib.Path(boyle).read_text()), pd.read_csv(BOYLE)
  assert code == 0 and column(out) == values("1407/volume", table["volume"])
  assert out.splitlines()[0] == "volume,pressure,predicted" and len(out.splitlines()) == 1 + len(table)
  assert err.splitlines() == [
    "formula: pressure = 1407/volume",
    f"pressure: 25 rows, R2 {record['best']['r2']:.6f}, RMSE {record['best']['rmse']:.4g}"]


FORMULAS = ["2.5*a**1.3 - exp(b/7)", "log(a - b) + 0.1", "sin(3*a)*tanh(b)/(a + 1/3)", "sqrt(abs(b))*max(a, b)", "4.25"]


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=5, max_size=9), formula=st.sampled_from(FORMULAS),
       kind=st.sampled_from(["command", "result", "regressor"]), order=st.permutations(["a", "b", "more"]))
def test_predictions_are_those_of_the_regressor(tmp_path_factory, rows, formula, kind, order):
  folder = tmp_path_factory.mktemp("fit")
  frame = pd.DataFrame(rows, columns=["a", "b"])
  x = frame.to_numpy()
  reg = regressor(make_result([formula], ["a", "b"], x, np.arange(len(x))), ["a", "b"])
  path = folder / "fit.json"
  if kind == "command":
    table = tables.Table("old.csv", ("a", "b"), "y", x, np.arange(float(len(x))))
    write_fit(path, table, formula)
  elif kind == "result":
    save_result(reg.result_, path)
  else:
    reg.save(path)
  frame.assign(more="text")[order].to_csv(folder / "new.csv", index=False)
  out = folder / "out.csv"
  predict.asked.FLAGS.unparse_flags()
  predict.asked.FLAGS(["predict", f"--out={out}", "--overwrite", "--quiet"])
  assert predict.main(["predict", str(path), str(folder / "new.csv")]) == 0
  found = pd.read_csv(out, float_precision="round_trip")
  expected = reg.predict(frame)
  assert found["predicted"].tolist() == pytest.approx(
    np.where(np.isfinite(expected), expected, np.nan).tolist(), rel=0, abs=0, nan_ok=True)
  assert list(found) == [*order, "predicted"] and len(found) == len(rows)


def test_the_line_is_that_of_the_fit_or_the_one_asked_for(command, boyle, tmp_path, write):
  new = write("volume\n20\n")
  assert column(command(boyle, new)[1]) == values("1407/volume", [20])
  assert column(command(boyle, new, "--select=1")[1]) == values("0.02*volume**2 - 2.9*volume + 115", [20])
  other = write_fit(tmp_path / "other.json", tables.read_table(BOYLE), "1407/volume", "9*volume", selected=1)
  assert column(command(other, new)[1]) == [180]
  assert column(command(other, new, "--select=recommended")[1]) == values("1407/volume", [20])
  x = np.array([[20.0], [30.0]])
  reg = regressor(make_result(["2*x0", "3*x0"], ["x0"], x, 3 * x[:, 0]), ["x0"], model_selection="accurate")
  reg.save(tmp_path / "reg.json")
  assert column(command(tmp_path / "reg.json", write("x0\n20\n"))[1]) == reg.predict(pd.DataFrame({"x0": [20.0]}))
  code, _, err = command(boyle, new, "--select=7")
  assert code == 2 and "--select: expected a line of the front, 0 to 1, got 7" in err


def test_what_has_no_prediction_is_empty_and_counted(command, boyle, write):
  new = write("id,volume,pressure\na,20,70\nb,,3\nc,0,1\nd,x,2\ne,50,\n")
  code, out, err = command(boyle, new)
  assert code == 0 and out.splitlines()[1:] == [
    "a,20,70,70.35000000000001", "b,,3,", "c,0,1,", "d,x,2,", "e,50,,28.14"]
  assert err.splitlines() == [
    "formula: pressure = 1407/volume",
    "note: column 'volume': 2 of 5 rows lie outside of 12 to 48, the range of the fit",
    "note: 2 of 5 rows have no prediction: no finite number in a column that the formula reads (1 with a missing "
    "value; 1 with 'x')",
    "note: 1 of 5 rows have no prediction: the formula is undefined there, as at a pole or for the logarithm of a "
    "negative number, or too large for double precision",
    "pressure: 1 row, RMSE 0.35"]
  assert command(boyle, new, "--quiet")[1:] == (out, "")


def test_measured_values_of_another_name(command, boyle, write, tmp_path):
  new = write("volume,p\n20,71\n30,46\n40,\n")
  assert command(boyle, new)[2] == "formula: pressure = 1407/volume\n"
  assert command(boyle, new, "--target=p")[2].splitlines()[1].startswith("p: 2 rows, R2 0.99")
  code, _, err = command(boyle, new, "--target=q")
  assert code == 2 and err == f"error: {new}: --target: no column 'q': expected one of volume, p\n"
  text = write("volume,pressure\n20,soon\n", "text.csv")
  code, out, err = command(boyle, text)
  assert code == 0 and column(out) == [70.35000000000001]
  assert f"note: predictions are not compared with 'pressure': {text}: column 'pressure' holds no number" in err
  assert command(boyle, text, "--target=pressure")[0] == 2
  of_log = write_fit(tmp_path / "log.json", tables.read_table(BOYLE), "1407/volume", loss="log")
  assert ", R2 of log(y) 0.99" in command(of_log, BOYLE)[2]


def test_a_column_that_was_left_out_of_the_fit_is_not_the_target(command, write, tmp_path):
  rows = [(i, i % 3, 2 * i) for i in range(1, 9)]
  old = write("".join(f"{a},{b},{y}\n" for a, b, y in rows), "old.csv")
  fit = write_fit(tmp_path / "fit.json", tables.read_table(old, features=["x0"]), "2*x0")
  assert "y: " not in command(fit, write("".join(f"{a},{b}\n" for a, b, _ in rows)))[2]
  err = command(fit, old)[2]
  assert "columns are taken by position: column 3 is the target 'y'" in err and "y: 8 rows, R2 1.000000" in err


# --- dates and categories ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "formula"), [
  (["2020-03-01", "2020-02-28", "2020-03-05", "2020-03-09", "2020-03-20"], "2*when + 1"),
  (["2012-03-01", "2014-02-28", "2020-03-05", "2021-03-09", "2023-03-20"], "when - 2000"),
  (["1:30", "0:15", "2:00", "26:15", "4:40"], "2*when + 1")])
def test_dates_count_as_at_the_fit(command, write, tmp_path, days, formula):
  old = write("when,y\n" + "".join(f"{day},{i * i}\n" for i, day in enumerate(days)), "old.csv")
  table = tables.read_table(old)
  fit = write_fit(tmp_path / "fit.json", table, formula)
  expected = values(formula, table.x[:, 0], "when")
  for i, day in enumerate(days):
    code, out, err = command(fit, write(f"when\n{day}\n"))
    assert code == 0 and column(out) == [expected[i]] and "note: column" not in err
    assert f": column 'when' holds {table.notes[0].split('holds ')[1].split(':')[0].split(' (')[0]}" in err


def test_dates_with_their_times_are_one_column(command, write, tmp_path):
  old = write("when,y\n" + "".join(f"2020-03-0{i} 12:00,{i * i}\n" for i in range(1, 8)), "old.csv")
  fit = write_fit(tmp_path / "fit.json", tables.read_table(old), "2*when + 1")
  code, out, err = command(fit, write("when\n2020-03-02 12:00\n2020-03-03 00:00\nnot known\n\n2020-03-01 06:00\n"))
  assert code == 0 and str(column(out)) == "[3.0, 4.0, nan, 0.5]", err


def test_what_is_counted_otherwise_is_said_or_refused(command, write, tmp_path):
  old = write("when,y\n" + "".join(f"2020-01-0{i},{i * i}\n" for i in range(1, 8)), "old.csv")
  fit = write_fit(tmp_path / "fit.json", tables.read_table(old), "2*when")
  code, out, err = command(fit, write("when\n3\n"))
  assert code == 0 and column(out) == [6]
  assert "column 'when' holds plain numbers, taken for days since 2020-01-01 as at the fit" in err
  code, _, err = command(fit, write("when\n1:30\n2:30\n"))
  assert code == 2 and "at the fit it was counted as days since 2020-01-01" in err
  plain = write_fit(tmp_path / "plain.json", tables.read_table(write("when,y\n1,2\n2,4\n3,6\n4,8\n5,9\n")), "2*when")
  code, _, err = command(plain, old)
  assert code == 2 and "column 'when' holds dates, read as days since 2020-01-01; at the fit it held numbers" in err
  of_dates = write_fit(tmp_path / "dates.json", tables.read_table(old, target="when", features=["y"]), "sqrt(y)")
  code, _, err = command(of_dates, old)
  assert code == 0 and "note: predictions are days since 2020-01-01\n" in err and "when: 7 rows, R2 " in err


def test_words_are_one_column(command, write, tmp_path):
  old = write("kind,y\n" + "".join(f"{'dark red' if i % 2 else 'light blue'},{i * i}\n" for i in range(8)), "old.csv")
  table = tables.read_table(old, categories=["kind"])
  fit = write_fit(tmp_path / "fit.json", table, "2*`kind_light blue`")
  code, out, err = command(fit, write("kind\nlight blue\ndark red\nlight blue\n"))
  assert (code, column(out)) == (0, [2, 0, 2]), err


def test_categories_are_split_as_at_the_fit(command, write, tmp_path):
  old = write("kind,x,y\n" + "".join(f"{'red' if i % 2 else 'light blue'},{i},{i * i}\n" for i in range(8)), "old.csv")
  table = tables.read_table(old, categories=["kind"])
  fit = write_fit(tmp_path / "fit.json", table, "x + 10*kind_red")
  code, out, err = command(fit, old)
  assert code == 0 and column(out) == (table.x[:, 2] + 10 * table.x[:, 1]).tolist()
  code, out, err = command(fit, write("x,kind\n1,red\n2,green\n3,\n4,light  blue\n"))
  assert code == 0 and column(out) == pytest.approx([11, math.nan, math.nan, 4], nan_ok=True)
  assert "column 'kind' has a value in 1 of 4 rows that it did not have at the fit, such as 'green'" in err
  assert "note: 2 of 4 rows have no prediction" in err
  assert column(command(fit, write("x,kind_red\n1,1\n2,0\n"))[1]) == [11, 2]
  code, _, err = command(fit, write("x,kinds\n1,red\n"))
  assert code == 2 and "no column 'kind', which the formula reads: did you mean 'kinds'?" in err


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(command, boyle, write, tmp_path):
  new, out = write("volume\n20\n40\n"), tmp_path / "out.csv"
  code, printed, _ = command(boyle, new, f"--out={out}", "--name=p (inHg)")
  assert (code, printed) == (0, "")
  assert out.read_text() == "volume,p (inHg)\n20,70.35000000000001\n40,35.175000000000004\n"
  for arguments, message in [
      ([f"--out={out}"], "exists; --overwrite replaces it"),
      ([f"--out={tmp_path / 'out.txt'}"], "--out: expected a name ending in .csv"),
      ([f"--out={tmp_path / 'none' / 'out.csv'}"], "--out: the folder"),
      ([f"--out={new}", "--overwrite"], "new.csv' is read"),
      (["--overwrite"], "--overwrite: says nothing without --out"),
      (["--name=volume"], f"--name: {new} has a column 'volume'; give the predictions another name"),
      (["--name=\x07"], "--name: expected letters that can be printed"), (["--name="], "--name: expected a value"),
      (["--select=best"], "--select: unknown choice 'best'"), (["--decimal=x"], "--decimal: expected . or ,"),
      (["--separator=x"], "--separator: expected one of"), (["--selct=1"], "see --help")]:
    code, printed, err = command(boyle, new, *arguments)
    assert (code, printed) == (2, "") and message in err and err.count("\n") == 1
  assert out.read_text().startswith("volume,p (inHg)")
  assert command(boyle, new, f"--out={out}", "--overwrite")[0] == 0 and out.read_text().startswith("volume,predicted")


def test_a_full_disk_is_said(command, boyle, write, tmp_path, monkeypatch):
  def fail(path, text):
    raise OSError(28, "No space left on device")
  monkeypatch.setattr(predict.files, "write_text", fail)
  code, _, err = command(boyle, write("volume\n20\n"), f"--out={tmp_path / 'out.csv'}")
  assert code == 1 and err.endswith("out.csv': No space left on device\n") and not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(("arguments", "message"), [
  ([], "got 0 arguments"), (["fit.json"], "got 1 arguments"), (["a", "b", "c"], "got 3 arguments"),
  (["none.json", BOYLE], "none.json: cannot be read: No such file or directory"),
  ([BOYLE, BOYLE], "boyle.csv: is no saved formula: "), (["{boyle}", "{boyle}"], "unknown kind of file '.json'"),
  (["{boyle}", "none.csv"], "none.csv: no such file"), (["{boyle}", "-"], "no such file"),
  (["{boyle}", BOYLE, "--file=x.csv"], "--file: no formula for 'x.csv'")])
def test_unusable_arguments(command, boyle, tmp_path, monkeypatch, arguments, message):
  monkeypatch.chdir(tmp_path)
  code, out, err = command(*(argument.format(boyle=boyle) for argument in arguments))
  assert (code, out) == (2, "") and message in err and err.startswith("error: ") and err.count("\n") == 1


CELLS = st.sampled_from(
  ["a", "b", "kind", "1", "2.5", "-3e4", "1,234", "1.234,5", "2020-01-05", "5/6/2020", "1:30", "# x", "", " ", "nan",
   "inf", "1e999", "x", "1,5", '"', "'", "#", "\ufeff", "\x00", "é", "5%", "$3", "red", "true", "1 # x", "a;b\tc"])
USABLE = st.fixed_dictionaries({
  "a": st.sampled_from(["1", "2.5", "1e3", "-4", "0", ""]), "when": st.sampled_from(["2020-01-05", "2021-11-30", ""]),
  "kind": st.sampled_from(["x", "y", "red", ""]), "more": CELLS, "y": st.sampled_from(["3", "4.5", ""])})
ODD = st.dictionaries(st.tuples(st.integers(0, 5), st.sampled_from(["a", "when", "kind", "y"])), CELLS, max_size=1)


def test_whatever_a_table_holds_each_row_has_its_line_or_it_is_refused(tmp_path):
  old, path, out = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "out.csv"
  old.write_text("a,when,kind,y\n" + "".join(f"{i},2020-01-0{i},{'xy'[i % 2]},{i * i}\n" for i in range(1, 8)))
  fit = write_fit(tmp_path / "fit.json", tables.read_table(str(old), categories=["kind"]), "log(a) + when/(kind_x + 1)")
  outcomes = Counter()

  @settings(max_examples=150)
  @given(rows=st.lists(USABLE, min_size=1, max_size=6), odd=ODD, separator=st.sampled_from([",", ";", "\t"]),
         header=st.permutations(["a", "when", "kind", "more", "y"]), has_header=st.sampled_from([True] * 9 + [False]),
         quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
  def check(rows, odd, separator, header, has_header, quoting):
    out.unlink(missing_ok=True)
    cells = [[odd.get((i, name), row[name]) for name in header] for i, row in enumerate(rows)]
    with open(path, "w", encoding="utf-8", newline="") as file:
      csv.writer(file, delimiter=separator, quoting=quoting).writerows([header, *cells] if has_header else cells)
    predict.asked.FLAGS.unparse_flags()
    predict.asked.FLAGS(["predict", f"--out={out}"])
    try:
      assert predict.main(["predict", fit, str(path)]) == 0
    except InputError as error:
      assert str(error) and "\n" not in str(error) and not out.exists()
      outcomes["refused"] += 1
      return
    grid, again = table_files.read(path, table_files.Reading()), table_files.read(out, table_files.Reading(","))
    assert again.names[-1] == "predicted" and (again.names[:-1] == grid.names or not grid.has_names)
    assert [column.tolist() for column in again.columns[:-1]] == [column.tolist() for column in grid.columns]
    outcomes["written"] += 1

  check()
  assert outcomes["written"] > 2 * outcomes["refused"] > 0


def test_a_target_without_values_is_said_where_it_is_asked_for(command, boyle, write):
  new = write("volume,pressure\n20,\n30,\n")
  assert command(boyle, new)[2] == "formula: pressure = 1407/volume\n"
  assert command(boyle, new, "--target=pressure")[2].splitlines()[1:] == [
    "pressure: no row has both a prediction and a measured value"]


def test_of_several_targets_one_is_taken_whether_or_not_the_table_has_it(command, write, tmp_path):
  old = write("x,y,z\n" + "".join(f"{i},{2 * i},{3 * i + 1}\n" for i in range(8)), "old.csv")
  lines = [pathlib.Path(write_fit(tmp_path / f"{name}.json", tables.read_table(old, target=name, features=["x"]), text)
                        ).read_text() for name, text in (("y", "2*x"), ("z", "3*x + 1"))]
  fits = write("".join(lines), "fits.jsonl")
  assert command(fits, write("x\n5\n"), "--target=z") == (0, "x,predicted\n5,16.0\n", "formula: z = 3*x + 1\n")
  assert command(fits, write("x,z\n5,17\n"), "--target=z")[2].splitlines()[1] == "z: 1 row, RMSE 1"
  code, out, err = command(fits, write("x,z\n5,soon\n"), "--target=z")
  assert code == 0 and column(out) == [16] and "note: predictions are not compared with 'z'" in err


def test_without_standard_output_predictions_are_not_lost_in_silence(boyle, write, tmp_path):
  new = write("volume\n20\n")
  command = f"{sys.executable} -m symformer_jax.predict {boyle} {new}"
  done = subprocess.run(f"{command} >&-", shell=True, cwd=ROOT, capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (1, "error: cannot write: standard output is closed\n")
  done = subprocess.run(f"{command} --out={tmp_path}/o.csv >&-", shell=True, cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0 and (tmp_path / "o.csv").read_text() == "volume,predicted\n20,70.35000000000001\n"


def test_in_a_process_of_its_own_without_compiling(boyle, write):
  run = [sys.executable, "-m", "symformer_jax.predict"]
  done = subprocess.run([*run, boyle, write("volume\n20\n-\n")], cwd=ROOT, capture_output=True, text=True)
  assert (done.returncode, done.stdout) == (0, "volume,predicted\n20,70.35000000000001\n-,\n")
  assert done.stderr.splitlines()[0] == "formula: pressure = 1407/volume" and len(done.stderr.splitlines()) == 2
  asked = subprocess.run([*run, "--help"], cwd=ROOT, capture_output=True, text=True)
  assert asked.returncode == 0 and "--select: Which line of the front" in asked.stdout and "--file: " in asked.stdout
  code = ("import sys, symformer_jax.predict; "
          "print(*{'sklearn', 'sympy', 'flax', 'matplotlib', 'symformer_jax.inference'} & set(sys.modules))")
  assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "\n"


def test_the_sheet_that_is_named_is_read(command, boyle, tmp_path):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  book.active.append(["volume"])
  book.active.append([10])
  other = book.create_sheet("second")
  other.append(["volume"])
  other.append([20])
  book.save(tmp_path / "new.xlsx")
  for argv, volume in (([], 10), (["--sheet=second"], 20)):
    code, out, _ = command(boyle, tmp_path / "new.xlsx", *argv)
    assert code == 0 and out.splitlines()[1].startswith(f"{volume}"), out
