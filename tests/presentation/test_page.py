"""The page: complete, self-contained, and harmless whatever the data are called."""

import base64
import re

import html5lib
import numpy as np
from pages import HOSTILE, make_page
import pytest

from symformer_jax.commands.tables import Table
from symformer_jax.language import parser, source_code
from symformer_jax.language.expression import Node, variable
from symformer_jax.presentation import latex_table, page
from symformer_jax.results import Counts, Equation, SearchResult, Seconds


def parsed(text):
  """The tree that a browser makes of a page, and every element of it; the page must be valid."""
  reader = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
  root = reader.parse(text)
  return root, list(root.iter())


def texts_of(root, tag):
  return ["".join(element.itertext()) for element in root.iter(tag)]


def test_the_page_tells_all(rng):
  text, lines = make_page(rng)
  root, elements = parsed(text)
  assert texts_of(root, "h1") == [f"y = {lines[1].expression}"]
  [front] = [t for t in root.iter("table") if t.get("class") == "front"]
  rows = [["".join(cell.itertext()) for cell in row] for row in front.iter("tr")][1:]
  assert [row[2] for row in rows] == [line.expression for line in lines]
  assert [row[0] for row in rows] == ["", "→", ""] and "recommended" in rows[2][7] and rows[0][3] == "1"
  sources = dict(zip(texts_of(root, "summary"), [None, *texts_of(root, "pre")], strict=True))
  assert sources["C"] == lines[1].source("c") and sources["LaTeX"] == lines[1].latex
  assert {lines[1].source(language) for language in source_code.LANGUAGES} < set(sources.values())
  everything = "".join(root.itertext())
  for told in ("y.csv", "2.27952 to 2.32048", "23/10", "a leap between rows", "tan(9*x)", "column 'x' is renamed",
               "1 turn, 1.5 s, ended by exact, seed 3", "2 % of the target's spread"):
    assert told in everything
  pictures = [element.get("src") for element in elements if element.tag == "img"]
  assert len(pictures) == 2
  for picture in pictures:
    assert base64.b64decode(picture.removeprefix("data:image/svg+xml;base64,")).rstrip().endswith(b"</svg>")


def test_a_formula_that_cannot_be_set_has_no_picture():
  deep = variable(0)
  for _ in range(120):
    deep = Node("sin", (deep,))
  for node, name in ((deep, "x"), (variable(0), "a" * 10_000)):
    assert page._draw_formula(Equation(node, (name,), 0.0, 1.0, None, ())) is None
  picture = page._draw_formula(Equation(variable(0), ("x",), 0.0, 1.0, None, ()))
  svg = base64.b64decode(picture.partition(",")[2]).decode()
  # An x and its margins are .6 of the size of the font wide.
  assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) == pytest.approx(0.6 * page.FORMULA_SIZE, abs=1)


def test_formulas_are_set_a_third_larger_than_the_text_around_them(rng):
  text, _ = make_page(rng)
  size_px = float(re.search(r"body { font: ([\d.]+)px", text)[1])
  assert pytest.approx(4 / 3 * 0.75 * size_px) == page.FORMULA_SIZE  # 96 pixels and 72 points are an inch


def test_nothing_is_fetched_and_nothing_runs(rng):
  text, _ = make_page(rng, HOSTILE, target="</title><script>alert(3)</script>")
  root, elements = parsed(text)
  assert {element.tag for element in elements if isinstance(element.tag, str)} <= {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "img", "code", "table", "thead", "tbody", "tr",
    "th", "td", "details", "summary", "ul", "li", "pre"}
  for element in elements:
    assert set(element.attrib) <= {"lang", "charset", "http-equiv", "content", "name", "alt", "src", "class", "style"}
    assert element.get("src", "data:image/").startswith("data:image/")
  assert "url(" not in text and "@import" not in text
  [policy] = [e.get("content") for e in elements if e.get("http-equiv") == "Content-Security-Policy"]
  assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
  everything = "".join(root.itertext())
  for name in HOSTILE:
    assert name in everything  # shown as it is


def test_of_many_rows_the_figure_is_pixels(rng):
  text, _ = make_page(rng, num_rows=page.MAX_VECTOR_DOTS + 1)
  assert text.count("data:image/png;base64,") == 1 and len(text) < 500_000


def test_without_a_search_the_front_is_shown(rng, tmp_path):
  x = rng.uniform(1, 2, (20, 1))
  node = parser.parse("2.5*x")
  line = Equation(node, ("x",), 0.0, 1.0, None, ())
  result = SearchResult("ok", "", line, (line,), Counts(), Seconds(), 0, 0, "auto")
  page.write_page(result, line, Table("t.csv", ("x",), "y", x, 2.5 * x[:, 0]), tmp_path / "p.html", name="t")
  root, _ = parsed((tmp_path / "p.html").read_text(encoding="utf-8"))
  assert "The formula has none that were fitted." in texts_of(root, "p")
  assert [p.name for p in tmp_path.iterdir()] == ["p.html"]


def test_a_table_in_latex_writes_numbers_out():
  lines = [Equation(parser.parse("1e-7*x"), ("x",), mse, r2, None, ())
           for mse, r2 in ((4e-14, 1 - 3e-9), (0.25, None), (np.inf, 1.0))]
  table = latex_table.latex_table(lines, lines[1])
  assert r"$1 - 3.0 \cdot 10^{-9}$ & $2 \cdot 10^{-7}$ \\" in table
  assert r"$\rightarrow$ & $\left(1 \cdot 10^{-7}\right) x$ & 3 & -- & $0.5$ \\" in table and r"$\infty$" in table
  long = Equation(parser.parse("1.23456789*x"), ("x",), 1.0, 0.5, None, ())
  assert "$1.235 x$" in latex_table.latex_table([long], digits=4)
