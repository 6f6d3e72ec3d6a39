"""Rules of reading tables and of ending commands, each beside a case that another rule would decide."""

import gc
import io
import os
import signal
import sys
import types
import warnings

from absl import flags
import numpy as np
import pandas as pd
import pytest

from symformer_jax.commands import (
  cells,
  column_units,
  extras,
  grids,
  infer_flags,
  listing,
  predict_flags,
  runner,
  startup,
  table_files,
  tables,
  text_tables,
  times,
)
from symformer_jax.errors import InputError


def objects(*content):
  found = np.empty(len(content), object)
  found[:] = content
  return found


def read(*columns, **options):
  return cells.read_columns([objects(*texts) for texts in columns], **options)


# --- cells and grids ---------------------------------------------------------------------------------------------


def test_a_file_whose_columns_tell_both_marks_tells_none_for_the_others():
  *_, asked = read(["1.5", "2.5"], ["1,5", "2,5"], ["1,234", "2,345"], separator=";")
  assert "may be read in two ways" in asked.fault
  *_, told = read(["1,5", "2,5"], ["1,234", "2,345"], separator=";")
  assert told.values.tolist() == [1.234, 2.345]


def test_a_number_by_another_mark_than_that_asked_for_is_no_date():
  [found] = read(["2020.10", "2020.11", "2020.12"], decimal=",")
  assert not found.is_time and not found.is_numeric and not found.note


def test_a_number_among_words_tells_no_mark():
  [found] = read(["a", "b", "c", "1.5"])
  np.testing.assert_array_equal(found.values, [np.nan, np.nan, np.nan, 1.5])
  assert not found.fault and found.is_mostly_text


def test_the_hint_of_a_note_is_the_other_mark():
  [found] = read(["1,234", "5,678"], separator=",")
  assert found.values.tolist() == [1234, 5678] and "(--decimal=, reads it otherwise)" in found.note
  [found] = read(["1,234", "5,678"], separator=";")
  assert found.values.tolist() == [1.234, 5.678] and "(--decimal=. reads it otherwise)" in found.note


def test_a_table_without_names_that_begins_in_the_middle_of_a_sheet():
  grid = grids.from_rows([["", "", 1, 2], ["", "", 3, 4]], range(1, 3), word="row")
  assert grid.names == ("x0", "y") and [column.tolist() for column in grid.columns] == [[1, 3], [2, 4]]
  assert grids._width(["a", "b", ""]) == 2 == grids._width(["a", "b", None, ""]) and grids._width(["", "b"]) == 2


def test_a_cell_that_is_not_there_is_no_name():
  grid = grids.from_rows([["a", None, "b"], [1, 2, 3]], range(1, 3), word="row")
  assert grid.names == ("a", "column 2", "b")


@pytest.mark.parametrize(("below", "is_of_units"), [
  ([["1", "2"]], True), ([["1", "2"], ["3", "4"]], True), ([["x", "2"], ["3", "4"]], False),
  ([["NA", "2"], ["3", ""], ["4"]], True), ([["1", "2"], ["x", "4"]], False), ([], False)])
def test_units_stand_above_numbers_and_cells_that_are_missing(below, is_of_units):
  rows = [(i, row) for i, row in enumerate([["m", "s"], *below])]
  assert (len(grids._without_units(rows, "line", [])) == len(below)) == is_of_units


def test_what_pandas_says_of_a_format_is_nobodys_matter(monkeypatch):
  to_datetime = pd.to_datetime

  def warning(*given, **options):
    warnings.warn("could not infer", UserWarning, stacklevel=1)
    return to_datetime(*given, **options)
  monkeypatch.setattr(times.pd, "to_datetime", warning)
  assert times.read(objects("2020-01-01", "2020-01-05")).values.tolist() == [0, 4]


def test_spaces_around_dates_and_cells_between_them_do_no_harm():
  assert times.read(objects(" 2020-01-01", "2020-01-05 ")).values.tolist() == [0, 4]
  found = times.read(objects("01/01/2020", None, "02/02/2020"))  # the same days by either order
  assert not found.fault and found.values[2] == 32
  assert times.read(objects("01.01.2020T10:00", "02.01.2020T10:00")).values.tolist() == [0, 24]
  assert times.read(objects("2020-01-01T10:00:00,5", "2020-01-01T10:00:09.5")).values.tolist() == [0, 9]


# --- lines of text -----------------------------------------------------------------------------------------------


def text_table(tmp_path, text, **options):
  (tmp_path / "t.csv").write_text(text)
  return text_tables.read(tmp_path / "t.csv", **options)


def test_a_rule_below_names_is_no_row_where_nothing_else_is(tmp_path):
  assert text_table(tmp_path, "a | b\n--- | ---\n").places.tolist() == []


def test_comments_behind_all_rows_and_behind_quotes(tmp_path):
  assert list(text_table(tmp_path, "1,2 # a\n3,4 # b\n").columns[1]) == ["2", "4"]
  quoted = text_table(tmp_path, 'a,b\n"x",5\n"y",6 # why\n')
  assert list(quoted.columns[1]) == ["5", "6"] and list(quoted.columns[0]) == ["x", "y"]


def test_a_quoted_cell_may_end_a_file_or_the_lines_that_are_looked_at(tmp_path):
  assert text_table(tmp_path, 'a,b\n1,2\n3,"x\ny"\n').columns[1][1] == "x\ny"
  assert text_tables._score(["1,2", "1,2", '1,"x', "y"], ",") > 1


def test_a_separator_makes_columns_of_text_too():
  assert text_tables._find_separator(["title", "a;b", "c;d"]) == ";"
  with pytest.raises(InputError, match="may stand between commas or between spaces"):
    text_tables._find_separator(["title", "a,b c", "d,e f"])
  assert text_tables._score(["1,2"] * 3 + ["1,2,3"], ",") == 2.5  # most lines tell, not the longest
  assert text_tables._score(["a,b", "1,"], ",") == 2.5


@pytest.mark.parametrize(("entries", "units", "has_header"), [
  (["header"], {}, True), (["x=m", " header "], {"x": "m"}, True), (["header=s"], {"header": "s"}, False)])
def test_the_word_for_units_of_headers_is_an_entry_alone(entries, units, has_header):
  assert column_units.read_pairs(entries) == (units, has_header)


@pytest.mark.parametrize("entry", ["x", "=m", " = m", "headers"])
def test_an_entry_has_a_name_and_a_unit(entry):
  with pytest.raises(InputError, match="--units: expected NAME=UNIT or header"):
    column_units.read_pairs([entry])


# --- files -------------------------------------------------------------------------------------------------------


def tables_of(tmp_path, text, **request):
  (tmp_path / "t.csv").write_text(text)
  return tables.read_tables(str(tmp_path / "t.csv"), tables.Request(**request))


def lines(*rows):
  return "\n".join(rows) + "\n"


def test_names_between_commas_may_have_spaces_before_them():
  assert tables.split_names('a, "b, c",  d') == ["a", "b, c", "d"] and tables.split_names("") == []


def test_globs_go_down_folders(tmp_path):
  (tmp_path / "a" / "b").mkdir(parents=True)
  for name in ("x.csv", "a/y.csv", "a/b/z.csv"):
    (tmp_path / name).write_text("")
  found = tables.find_files([f"{tmp_path}/**/*.csv"])
  assert sorted(found) == sorted(f"{tmp_path}/{name}" for name in ("x.csv", "a/y.csv", "a/b/z.csv"))


def test_marks_are_told_by_what_is_asked_for_or_the_separator(tmp_path):
  rows = ["x;y", *(f"{i},{i}00;{2 * i},{i}50" for i in range(1, 7))]
  [by_separator] = tables_of(tmp_path, lines(*rows))
  [by_flag] = tables_of(tmp_path, lines(*rows), decimal=".")
  assert by_separator.y[0] == 2.15 and by_flag.y[0] == 2150


def test_of_dates_alone_the_last_is_explained(tmp_path):
  [table] = tables_of(tmp_path, lines("a,b", *(f"2020-01-0{i},2021-03-0{9 - i}" for i in range(1, 7))))
  assert table.target == "b" and table.features == ("a",)


def test_the_text_that_is_no_number_is_of_a_column_of_text(tmp_path):
  rows = [f"{i},word{i}" for i in range(1, 7)]
  with pytest.raises(InputError, match="line 2, column 'v': 'word1' is no number; no other column left"):
    tables_of(tmp_path, lines("y,v", *rows, "oops,word7"), targets=["y"], drop_missing=True)


def test_other_targets_are_not_said_to_be_left_aside(tmp_path):
  found = tables_of(tmp_path, lines("x,y,z,w", *(f"{i},{i * i},{i + 1},word" for i in range(1, 7))), targets=["y", "z"])
  assert [[note for note in table.notes if "left aside" in note] for table in found] == [
    ["column 'w' left aside: it holds no number (line 2: 'word')"]] * 2


def test_settings_that_a_file_has_no_use_for_are_said(tmp_path):
  (tmp_path / "t.csv").write_text("a;b\n1;2\n")
  np.savez(tmp_path / "t.npz", x=np.arange(6.0))
  csv, npz = tmp_path / "t.csv", tmp_path / "t.npz"
  for path, how, notes in ((csv, {"separator": ";"}, []), (npz, {"separator": ";"}, ["--separator"]),
                           (csv, {"sheet": "s"}, ["--sheet"]), (npz, {"sheet": "s", "separator": ","}, [
                             "--sheet", "--separator"]), (npz, {}, [])):
    found = table_files.read(path, table_files.Reading(**how)).notes
    assert [note.partition(" ")[0] for note in found if "is not used" in note] == notes


def test_arrays_of_an_archive_keep_their_kinds(tmp_path):
  np.savez(tmp_path / "t.npz", b=np.array([True, False]), f=np.array([1.5, 2]), t=np.array(["u", "v"]))
  grid = table_files.read(tmp_path / "t.npz", table_files.Reading())
  assert [column.dtype.kind for column in grid.columns] == ["b", "f", "O"] and grid.places.tolist() == [1, 2]
  np.savez(tmp_path / "one.npz", x=np.arange(3.0))
  assert table_files.read(tmp_path / "one.npz", table_files.Reading()).places.tolist() == [1, 2, 3]
  np.savez(tmp_path / "none.npz")
  assert not len(table_files.read(tmp_path / "none.npz", table_files.Reading()).places)


def cell(value, data_type="n"):
  return types.SimpleNamespace(value=value, data_type=data_type)


def test_cells_of_workbooks_are_plain_values():
  assert [table_files._value_of(cell(value)) for value in (None, " a ", 2.5, True)] == ["", "a", 2.5, True]
  error = table_files._value_of(cell("#N/A ", "e"))
  assert np.isnan(error) and error.text == "#N/A"
  whole = table_files._value_of(cell(3.0))
  assert whole == 3 and isinstance(whole, int)
  sheet = types.SimpleNamespace(reset_dimensions=lambda: None, rows=[
    [cell("a"), cell("b"), cell(None)], [cell(None)] * 3, [cell(None), cell(1), cell("")]])
  assert table_files._rows_of(sheet) == [["a", "b"], [], ["", 1]]


def test_of_a_workbook_values_are_read_as_they_were_saved(tmp_path, monkeypatch):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  for row in (["a", "b"], [1, 2], [3, 4]):
    book.active.append(row)
  book.save(tmp_path / "t.xlsx")
  reader, asked = openpyxl.reader.excel.ExcelReader, {}
  begin = reader.__init__

  def beginning(self, path, **options):
    asked.update(options)
    warnings.warn("Data Validation extension is not supported", UserWarning, stacklevel=1)
    begin(self, path, **options)
  monkeypatch.setattr(reader, "__init__", beginning)
  assert table_files.read(tmp_path / "t.xlsx", table_files.Reading()).names == ("a", "b")
  # A row at a time, what formulas gave, and nothing of other workbooks.
  assert asked == {"read_only": True, "data_only": True, "keep_links": False, "keep_vba": False, "rich_text": False}


# --- flags and ends ----------------------------------------------------------------------------------------------


def test_flag_files_behind_two_dashes_are_arguments(tmp_path):
  device = "--flagfile=/dev/null"
  runner._check_flag_files(["--seed=1", "--", device])
  for arguments in ([device], [device, "--", "x"]):
    with pytest.raises(flags.Error, match="--flagfile=/dev/null: "):
      runner._check_flag_files(arguments)
  (tmp_path / "f").write_text(f"--seed=1\n--\n{device}\n")  # in a file they mean nothing
  with pytest.raises(flags.Error, match="--flagfile=/dev/null: "):
    runner._check_flag_files([f"--flagfile={tmp_path}/f"])


def test_the_name_of_a_flag_file_may_be_the_next_argument(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  for arguments in (["--flagfile", "none"], ["a", "--flagfile", "none", "b"], ["-flagfile", "none"]):
    with pytest.raises(flags.Error, match="^--flagfile=none: No such file"):
      runner._check_flag_files(arguments)
  runner._check_flag_files(["none", "--flagfile"])  # which absl refuses
  with pytest.raises(flags.Error, match="^--flagfile: expected a value, got nothing$"):
    runner._check_flag_files(["--flagfile="])


def test_flag_files_have_an_end(tmp_path, monkeypatch):
  monkeypatch.setattr(runner, "MAX_FLAG_FILE", 8)
  path = tmp_path / "f"
  path.write_text("--seed=1")
  runner._check_flag_files([f"--flagfile={path}"])
  path.write_text("--seed=12")
  with pytest.raises(flags.Error, match="has more than 8 bytes"):
    runner._check_flag_files([f"--flagfile={path}"])


def test_what_is_said_is_said_at_once(monkeypatch):
  raw = io.BytesIO()
  monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, write_through=False))
  runner.say("a line")
  assert raw.getvalue() == b"a line\n"
  monkeypatch.setattr(sys, "stderr", None)
  runner.say("nobody hears it")
  runner._flush(None)


def test_help_lists_the_flags_of_a_module_by_name():
  values, other = flags.FlagValues(), types.ModuleType("others")
  for name in "cadbfe":
    flags.DEFINE_string(name, None, "", flag_values=values)
  found = runner._help("doc", values, None)
  assert [line.split(":")[0] for line in found.splitlines()[3:]] == [f"  --{name}" for name in "abcdef"]
  flags.DEFINE_integer("z", 3, "Last.", flag_values=values)
  values.register_key_flag_for_module(other.__name__, values["z"])
  assert runner._help("doc", values, other.__name__).splitlines()[3:] == ["  --z: Last. (default: 3)"]


@pytest.mark.parametrize("module", [infer_flags, predict_flags])
def test_the_flags_of_a_command_are_its_own(module):
  """Among those of all commands two would have one name."""
  names = {value.name for value in vars(module).values() if isinstance(value, flags.FlagHolder)}
  assert len(names) > 5 and names <= set(module.FLAGS)


def test_memory_that_does_not_suffice_is_said_on_standard_error(monkeypatch):
  written, hooked = [], []
  monkeypatch.setattr(startup.os, "write", lambda *given: written.append(given))
  monkeypatch.setattr(sys, "__excepthook__", lambda *given: hooked.append(given))
  startup._say_what_is_scarce(MemoryError, MemoryError(), None)
  assert written == [(2, b"error: not enough memory\n")] and not hooked
  error = ValueError()
  startup._say_what_is_scarce(ValueError, error, None)
  assert len(written) == 1 and hooked == [(ValueError, error, None)]


def test_a_signal_ends_a_process_at_once(monkeypatch):
  written, codes = [], []
  monkeypatch.setattr(startup.os, "write", lambda *given: written.append(given))
  monkeypatch.setattr(startup.os, "_exit", codes.append)
  startup._stop()
  assert written == [(2, b"stopped\n")] and codes == [75] == [runner.STOPPED]


def test_a_terminal_that_is_closed_ends_a_command_unless_that_is_kept_away(monkeypatch):
  usual, before = [signal.SIGINT, signal.SIGTERM], signal.getsignal(signal.SIGHUP)
  ctrl_c = signal.signal(signal.SIGINT, signal.default_int_handler)
  try:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    assert startup.stop_signals() == [*usual, signal.SIGHUP]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert startup.stop_signals() == usual
    monkeypatch.delattr(signal, "SIGHUP")  # as on a system that has none
    assert startup.stop_signals() == usual
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a script has it for what it begins with &
    assert startup.stop_signals() == [signal.SIGTERM]
  finally:
    monkeypatch.undo()
    signal.signal(signal.SIGHUP, before)
    signal.signal(signal.SIGINT, ctrl_c)


def test_what_the_runner_is_told_before_the_imports(monkeypatch):
  asked = []
  monkeypatch.setattr(runner, "run", lambda main, **options: asked.append((main, options)))
  monkeypatch.setattr(startup, "stop_signals", list)
  monkeypatch.setattr(sys, "excepthook", sys.excepthook)
  monkeypatch.setattr(os, "environ", dict(os.environ))
  monkeypatch.setattr(sys, "argv", ["command", "--help"])
  module = "symformer_jax.commands.infer_flags"
  with warnings.catch_warnings(action="error"):
    startup.prepare("doc", module)
    monkeypatch.setattr(sys, "argv", ["command", "--odd=1"])
    monkeypatch.setitem(extras.MODULES, "odd", ("no_such_module",))
    startup.prepare("doc", module, extra="odd")
    gc.enable()
    warnings.warn_explicit("of a library", UserWarning, "f.py", 1, module="pandas.core")
    with pytest.raises(UserWarning, match="of a user"):
      warnings.warn_explicit("of a user", UserWarning, "f.py", 1, module="pandasthing")
  (_, of_help), (main, of_extra) = asked
  assert of_help == {"flag_values": sys.modules[module].FLAGS, "doc": "doc", "flags_module": module}
  assert of_extra == {"argv": ["command"]}
  with pytest.raises(InputError, match="no_such_module"):
    main([])


# --- the listing -------------------------------------------------------------------------------------------------


def test_text_stands_to_the_left_and_numbers_to_the_right(capsys):
  header, row = ("aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg"), tuple("tuvwxyz")
  listing._print_plain("title", header, [row])
  assert capsys.readouterr().out.splitlines() == [
    "title", "aaaa  bbbb  cccc  dddd  eeee  ffff  gggg", "t        u  v        w     x     y  z"]
  listing._print_rich("title", header, [row])
  shown = [part.strip("\u2502\u2503") for part in capsys.readouterr().out.splitlines() if " u " in part]
  [found] = shown
  assert found.split("\u2502") == [" t    ", "    u ", " v    ", "    w ", "    x ", "    y ", " z    "]
