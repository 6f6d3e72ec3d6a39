"""The page: complete, self-contained, and harmless whatever the data are called."""

import base64
import importlib.util

import html5lib
import numpy as np
import pytest

from symformer_jax.commands.tables import Table
from symformer_jax.language import parser, source_code
from symformer_jax.presentation import latex_table, page
from symformer_jax.results import Constant, Counts, Equation, Progress, Rejected, SearchResult, Seconds, Seen
from symformer_jax.selection import scoring

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "{{ 7*7 }}", "a&amp;b'`${")


def make_page(rng, names=("x", "z", "u", "v"), target="y", *, num_rows=30):
  x = rng.uniform(1, 5, (num_rows, len(names)))
  nodes = [parser.parse(text, [f"x{i}" for i in range(len(names))]) for text in
           ("8.2", "2.3*x0 + 1.1", "2.3*x0*x1 + 0.7*x2 - 0.1*x3")]
  y = scoring.evaluate(nodes[2], x) + 0.1 * rng.normal(size=num_rows)
  constants = (Constant(2.3, 0.01, "23/10"), Constant(1.1, None))
  lines = tuple(Equation(node, tuple(names), 1 / (i + 1), 0.9, 0.25, constants) for i, node in enumerate(nodes))
  seen = Seen(dict.fromkeys(names, (1.0, 5.0)), (names[3],), 0.02, rejected=(
    Rejected(f"tan(9*{names[0]})", 4, 0.99, "a leap between rows"),))
  result = SearchResult("ok", f"not in the recommended formula: {names[3]}; left out", lines[2], lines,
                        Counts(10, 9, 8, 7), Seconds(total=1.5), 3, num_rows, "fixed",
                        (Progress(0, "x", 0.5, "library", True, 0.1),), "exact", seen)
  table = Table("t.csv", tuple(names), target, x, y, weights=None)
  text = page.make_page(result, lines[1], table, name=f"{target}.csv", notes=(f"column {names[0]!r} is renamed",))
  return text, lines


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
  for told in ("y.csv", "2.2804 to 2.3196", "23/10", "a leap between rows", "tan(9*x)", "column 'x' is renamed",
               "1 turns, 1.5 s, ended by exact, seed 3", "2 % of the target's spread"):
    assert told in everything
  pictures = [element.get("src") for element in elements if element.tag == "img"]
  assert len(pictures) == 2
  for picture in pictures:
    assert base64.b64decode(picture.removeprefix("data:image/svg+xml;base64,")).rstrip().endswith(b"</svg>")


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


@pytest.mark.skipif(not importlib.util.find_spec("playwright"), reason="no browser")
def test_a_browser_shows_the_page_and_runs_nothing(rng, tmp_path):
  from playwright import sync_api

  (tmp_path / "p.html").write_text(make_page(rng, HOSTILE)[0], encoding="utf-8")
  with sync_api.sync_playwright() as player:
    try:
      browser = player.chromium.launch()
    except sync_api.Error:
      pytest.skip("no browser is installed")
    view, asked, dialogs = browser.new_page(), [], []
    view.on("request", lambda request: asked.append(request.url))
    view.on("dialog", lambda dialog: dialogs.append(dialog.message))
    view.goto((tmp_path / "p.html").as_uri())
    assert not dialogs and all(url.startswith(("file:", "data:")) for url in asked)
    assert view.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
    view.click("summary:has-text('Julia')")
    assert view.is_visible("pre:has-text('function formula')")
    browser.close()
