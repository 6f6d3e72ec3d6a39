"""Tables of text: bytes into letters, lines into cells. What the cells mean, `grids` and `cells` say."""

from collections import Counter
from collections.abc import Iterator, Sequence
import contextlib
import csv
import dataclasses
import itertools
import pathlib
import re
from typing import Any

from symformer_jax import files
from symformer_jax.commands import cells, grids, times
from symformer_jax.errors import InputError

SEPARATORS = {"tab": "\t", ";": ";", "|": "|", ",": ",", "space": " "}
# In the order in which they are believed: a tab is in no number, a comma is in many, a space in any text.
_ORDER = ("\t", ";", "|", ",", " ")
# Lines by which the separator is found, and the share of them that have as many cells as most.
NUM_SNIFFED = 200
MIN_REGULAR = 0.8
_COMMENT, _MATLAB_COMMENT = "#", "%"
# Where a comment behind the cells of a line may begin, and how many such places are looked at.
_BEHIND = re.compile(rf"(?<!\s)\s+(?={_COMMENT})")
MAX_PLACES = 20
# The line below the names in Markdown and in listings of databases; a `-` alone is the sign of a missing value.
_RULE = re.compile(r"(?=.*(?:--|:-|-:))[ \t|:+-]+")
_ERROR_FIRST = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(cells.ERRORS)))})(?=[\s,;|]|$)", re.IGNORECASE)
_HINT = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # of spreadsheets to themselves
# How a page of the web or a file of another program begins, as a server sends it in the place of a table.
_FOREIGN = {"HTML": re.compile(r"\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE), "XML": re.compile(r"\s*<\?xml\b"),
            "JSON": re.compile(r'\s*[{\[]\s*(?:["{\[]|$)')}
# How files begin whose names say that they are text, and are not.
_PACKED = {
  b"PK\x03\x04": "an archive or a workbook (whose name ends in .xlsx)", b"\x1f\x8b": "compressed by gzip",
  b"BZh": "compressed by bzip2", b"\xfd7zXZ\0": "compressed by xz", b"\x28\xb5\x2f\xfd": "compressed by zstd",
  b"7z\xbc\xaf\x27\x1c": "an archive", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old workbook (save it as .xlsx)",
  b"PAR1": "a parquet file (whose name ends in .parquet)", b"%PDF-": "a PDF", b"\x89HDF\r\n": "an HDF5 file",
  b"\x93NUMPY": "an array of NumPy (save it by numpy.savez, as .npz)", b"SQLite format 3\0": "a database",
  b"\xff\xfe\0\0": "in UTF-32 (save it as UTF-8)", b"\0\0\xfe\xff": "in UTF-32 (save it as UTF-8)"}
# Letters of a line beyond any table: a hundred for each of the most columns that one may have.
MAX_LETTERS = 100 * grids.MAX_COLUMNS
# By which text of two bytes a sign is told.
NUM_BYTES = 1000
# Cells between spaces; quotes hold a cell with spaces in it together, a comment ends the line.
_BETWEEN_SPACES = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')


def read(path: pathlib.Path, *, separator: str | None = None) -> grids.Grid:
  """The columns of a file of text.

  Args:
    separator: a value of `SEPARATORS`; None to find it.
  Raises:
    InputError: for what is no text, or no table.
  """
  text, notes = _decode(path.read_bytes())
  lines = [(i, line) for i, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1)
           if line.strip()]
  said = _describe_foreign(lines[0][1]) if lines else ""
  if lines and (hint := _HINT.fullmatch(lines[0][1].strip())):
    said = "" if separator else f"; line {lines[0][0]} says that {hint[1]!r} stands between columns"
    separator, lines = separator or hint[1], lines[1:]
  signs = _comment_signs(lines)
  comments = [(i, line) for i, line in lines if _is_comment(line, signs)]
  rows = [(i, line) for i, line in lines if not _is_comment(line, signs)]
  if not rows:
    raise InputError("the file is empty")
  _check_lengths(rows)
  if len(rows) > 1 and "|" in rows[0][1] and _RULE.fullmatch(rows[1][1]):
    del rows[1]
  above = [line for i, line in comments if i < rows[0][0]]
  notes += _describe_skipped(comments[len(above) :])
  rows, behind = _without_comments(rows, separator)
  notes += behind
  try:
    separator = separator or _find_separator([line for _, line in rows[:NUM_SNIFFED]])
    found = list(_split(rows, separator))
    _refuse_swallowed(found, separator)
    grid = grids.from_rows(
      [row for _, row in found], [place for place, _ in found], word="line", separator=separator,
      comment=_comment_cells(above, separator, signs), notes=notes)
    return dataclasses.replace(grid, elsewhere=said)
  except csv.Error as error:
    raise InputError(f"cannot be read as a table: {error}{said}") from None
  except InputError as error:
    raise InputError(f"{error}{said}") from None


def _describe_foreign(line: str) -> str:
  """What a first line looks like that begins no table, the end of a message; else empty."""
  kind = next((kind for kind, begin in _FOREIGN.items() if begin.match(line)), None)
  return "" if kind is None else f"; its first line looks like {kind}, not like a table"


def _decode(data: bytes) -> tuple[str, list[str]]:
  """The text, and a note where it is in no encoding that says so itself."""
  if kind := next((kind for begin, kind in _PACKED.items() if data.startswith(begin)), None):
    raise InputError(f"is {kind}, no text" if "UTF" not in kind else f"is {kind}")
  if (begin := data[:NUM_BYTES]).count(0) > 0.6 * len(begin):  # half of them are in text of two bytes
    raise InputError("is no text: most of its first bytes are 0; save it as UTF-8")
  # Spreadsheets put a byte order mark first; what they call Unicode text is UTF-16.
  encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
  # Without one every other byte of numbers is 0.
  for first, unmarked in enumerate(("utf-16-be", "utf-16-le") if encoding != "utf-16" else ()):
    begin = data[first:NUM_BYTES:2]
    if begin and begin.count(0) > 0.9 * len(begin):
      with contextlib.suppress(UnicodeDecodeError):
        return data.decode(unmarked), ["the text has no byte order mark and was read as UTF-16"]
  try:
    return data.decode(encoding), []
  except UnicodeDecodeError as error:
    is_binary = encoding == "utf-16" or any(byte < 32 and byte not in b"\t\n\f\r" for byte in set(data))
    start = error.start
  try:
    if not is_binary:
      return data.decode("cp1252"), ["the text is no UTF-8 and was read as Windows-1252"]
  except UnicodeDecodeError:
    pass
  raise InputError(f"is no UTF-8 text (byte {start}); save it as UTF-8")


def _check_lengths(rows: Sequence[tuple[int, str]]) -> None:
  """Refuses a line that is longer than any table's, before its cells are looked at by one separator after another."""
  for place, line in rows:
    if len(line) > MAX_LETTERS:
      raise InputError(f"cannot be read as a table: line {place} has {len(line)} letters, more than {MAX_LETTERS}")


def _is_comment(line: str, signs: str = _COMMENT) -> bool:
  """Whether a line is a comment; one that begins with an error of a spreadsheet is none."""
  bare = line.lstrip()
  return bare.startswith(tuple(signs)) and _ERROR_FIRST.match(bare) is None


def _comment_signs(lines: Sequence[tuple[int, str]]) -> str:
  """Signs that begin comments: that of MATLAB as well where it begins the first lines and is no name of a column."""
  begin = next((line for _, line in lines if not _is_comment(line)), "")
  if not begin.lstrip().startswith(_MATLAB_COMMENT):
    return _COMMENT
  first = [line.strip() for _, line in lines if not _is_comment(line)]
  num = next((i for i, line in enumerate(first) if not line.startswith(_MATLAB_COMMENT)), len(first))
  if num == len(first) or any(line[1:2].strip() for line in first[:num]):
    return _COMMENT
  below = first[num : num + NUM_SNIFFED]
  separator = max(_ORDER, key=lambda each: _score(below, each))
  is_name = num == 1 and _num_cells(first[0], separator) == _num_cells(below[0], separator) > 1
  return _COMMENT if is_name else _COMMENT + _MATLAB_COMMENT


def _without_comments(
  rows: list[tuple[int, str]], separator: str | None
) -> tuple[list[tuple[int, str]], list[str]]:
  """Rows without comments behind their cells, and a note of them.

  A sign in a text begins none: before it a number stands, and lines have as many cells without what follows.
  """
  if not any(_COMMENT in line for _, line in rows):
    return rows, []
  bare = [(place, _head(line)) for place, line in rows]
  if bare == rows:
    return rows, []
  lines, heads = ([line for _, line in some[:NUM_SNIFFED]] for some in (rows, bare))
  orders = (separator,) if separator else _ORDER
  used = max(orders, key=lambda each: _score(heads, each))
  if _score(heads, used) < max(_score(lines, each) for each in orders):
    return rows, []
  widths = [_num_cells(head, used) for _, head in bare]
  [(usual, _)] = Counter(widths).most_common(1)
  kept = [head if width == usual else row for row, head, width in zip(rows, bare, widths, strict=True)]
  cut = [(place, line[len(head) :]) for (place, line), (_, head) in zip(rows, kept, strict=True) if line != head]
  if not cut:
    return rows, []
  where = f"behind {len(cut)} rows, first line {cut[0][0]}" if len(cut) > 1 else f"behind line {cut[0][0]}"
  return kept, [f"comments left out {where}: {files.shorten(grids.clean_name(cut[0][1]), 40)!r}"]


def _head(line: str) -> str:
  """A line up to a comment behind its last cell, if that is a number or a word for none."""
  for found in itertools.islice(_BEHIND.finditer(line), MAX_PLACES):
    head = line[: found.start()]
    last = head[1 + max(map(head.rfind, _ORDER)) :].strip("\"'")
    if last and head.count('"') % 2 == 0 and _is_comment(line[found.end() :]) and (
        cells.is_value(last) or cells.is_missing(last)):
      return head
  return line


def _num_cells(line: str, separator: str) -> int:
  return len(_split_line(line, separator))


def _split_line(line: str, separator: str) -> list[str]:
  """The cells of a line by itself; none where it cannot be split."""
  try:
    return next((row for _, row in _split([(0, line)], separator)), [])
  except csv.Error:
    return []


def _describe_skipped(comments: Sequence[tuple[int, str]]) -> list[str]:
  """A note on comments among the rows, which may have been meant as rows, such as those of `#1`, `#2`, ..."""
  if not comments:
    return []
  place, line = comments[0]
  what = f"{len(comments)} lines that begin" if len(comments) > 1 else "a line that begins"
  first = f"first line {place}" if len(comments) > 1 else f"line {place}"
  return [f"{what} with {_COMMENT} left out as comments below the first row, {first}: "
          f"{files.shorten(grids.clean_name(line), 40)!r}"]


def _split(
  rows: Sequence[tuple[int, str]], separator: str, *, is_whole: bool = True
) -> Iterator[tuple[int, list[str]]]:
  """Lines with their cells, as they stand between separators; of a whole file a quote without an end is an error."""
  if separator == " ":
    yield from ((place, _cells_between_spaces(line)) for place, line in rows)
    return
  quote = "'" if rows and rows[0][1].lstrip().startswith("'") else '"'
  reader = csv.reader((line + "\n" for _, line in rows), delimiter=separator, skipinitialspace=separator != "\t",
                      quotechar=quote)
  begin = 0  # a quoted cell may hold the ends of lines
  for row in _with_lines(reader, rows):
    is_last = is_whole and reader.line_num == len(rows)
    is_odd = is_last and sum(line.count(quote) for _, line in rows[begin:]) % 2 == 1
    if is_odd and (reader.line_num > begin + 1 or _is_open(rows[begin][1], separator, quote)):
      raise csv.Error(f"the quote in line {rows[begin][0]} has no end")
    yield rows[begin][0], [cell.strip() for cell in row]
    begin = reader.line_num


def _refuse_swallowed(rows: Sequence[tuple[int, list[str]]], separator: str) -> None:
  """Refuses a cell over several lines where they look like rows between two stray quotes: there are numbers in them and
  in its column, or one of them has a number wherever the rows have one. Names, in the first row, may go on for lines.
  """
  long = [(place, row) for place, row in rows[1:] if any("\n" in cell for cell in row)]
  if not long:
    return
  others = [row for _, row in rows[1 : NUM_SNIFFED] if not any("\n" in cell for cell in row)]
  numeric = [column for column in range(max(map(len, others), default=0)) if _is_numeric(others, column)]
  for place, row in long:
    for column, (first, *below) in ((column, cell.split("\n")) for column, cell in enumerate(row)):
      split = [_split_line(line, separator) for line in below]
      has_number = column in numeric and any(cells.is_value(cell) for each in split for cell in each)
      if has_number or any(_is_row(each, len(row), numeric) for each in split):
        raise csv.Error(f"a cell in quotes goes on from line {place} over {1 + len(below)} lines that look like rows "
                        f"({files.shorten(first, 20)!r}, ...); one of its quotes is too many")


def _is_row(row: Sequence[str], width: int, numeric: Sequence[int]) -> bool:
  """Whether cells are as many as those of the rows, with a number wherever these have one."""
  return bool(numeric) and len(row) == width and all(cells.is_value(row[column]) for column in numeric)


def _is_numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
  """Whether most cells of a column are numbers or dates."""
  found = [cells.is_value(row[column]) for row in rows if column < len(row) and row[column]]
  return sum(found) > len(found) / 2


def _with_lines(reader: Any, rows: Sequence[tuple[int, str]]) -> Iterator[list[str]]:
  """Rows of a reader; its errors name the line in the file, and a cell that is too long for it in words."""
  try:
    yield from reader
  except csv.Error as error:
    limit = csv.field_size_limit()
    what = f"a cell of more than {limit} letters" if f"({limit})" in str(error) else error
    raise csv.Error(f"line {rows[reader.line_num - 1][0]}: {what}") from None


def _is_open(line: str, separator: str, quote: str) -> bool:
  """Whether the last cell of a line begins with a quote and does not end with one: no sign of inches is meant."""
  return line[1 + line.rfind(separator) :].lstrip().startswith(quote)


def _cells_between_spaces(line: str) -> list[str]:
  found: list[str] = []
  for match in _BETWEEN_SPACES.finditer(line):
    if match[2] and _is_comment(match[2]) and found:
      break
    found.append(match[2] if match[2] is not None else match[1].replace('""', '"'))
  return found


def _comment_cells(comments: Sequence[str], separator: str, signs: str) -> list[str]:
  """Cells of the last comment, which may hold the names; its sign may be a name itself."""
  if not comments:
    return []
  line = comments[-1].lstrip()
  bare = line.lstrip(signs)
  [(_, row)] = _split([(1, bare)], separator) if bare.strip() else [(1, [])]
  return [line[0], *row[1:]] if row and not row[0] else row


def _find_separator(lines: Sequence[str]) -> str:
  """The separator that makes as many cells of each line, more than one, and most of them numbers.

  Raises:
    InputError: where commas and spaces do equally well, and the numbers would differ.
  """
  best, best_score = ",", 0.0
  scores = {separator: _score(lines, separator) for separator in _ORDER}
  for separator in _ORDER:
    if scores[separator] > best_score:
      best, best_score = separator, scores[separator]
  if best == "," and scores[" "] == best_score > 0:
    raise InputError("columns may stand between commas or between spaces, as in "
                     f"{lines[-1][:60].strip()!r}; --separator=, or --separator=space says which")
  # Dates with their times, or words, under the name of one column.
  if best == " " and _num_cells(lines[0], best) == 1 and all(map(_is_time_or_words, lines[1:])):
    return ","
  return best


def _is_time_or_words(line: str) -> bool:
  return times.is_time(line) or not any(map(cells.is_value, line.split()))


def _score(lines: Sequence[str], separator: str) -> float:
  """How well a separator does: 0 where it makes no table of the lines; else above 1 by the share of cells that are
  numbers or dates, and more where the names, which may stand in the first line, are as many as these.
  """
  try:
    rows = [row for _, row in _split([(0, line) for line in lines], separator, is_whole=False)]
  except csv.Error:
    return 0.0
  widths = [len(row) for row in rows]
  width = max(Counter(widths).items(), key=lambda item: (item[1], item[0]))[0]
  if width > grids.MAX_COLUMNS:
    return 1.0  # which is refused later, whatever its cells are
  regular = [row for row in rows if len(row) == width]
  if width < 2 or len(regular) < MIN_REGULAR * len(rows) and len(regular) < len(rows) - 2:
    return 0.0
  found = [cells.is_value(cell) for row in regular[len(regular) > 1 :] for cell in row if cell]
  return 1 + sum(found) / max(len(found), 1) + (0.5 if len(rows[0]) == width else 0.0)
