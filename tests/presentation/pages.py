"""A page of an answer that is made by hand: what tests of pages look at."""

from symformer_jax.commands.tables import Table
from symformer_jax.language import parser
from symformer_jax.presentation import page
from symformer_jax.results import Constant, Counts, Equation, Progress, Rejected, SearchResult, Seconds, Seen
from symformer_jax.selection import scoring

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "{{ 7*7 }}", "a&amp;b'`${")


def make_page(rng, names=("x", "z", "u", "v"), target="y", *, num_rows=30):
  """The text of a page, and the lines of its front; the second one is shown."""
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
