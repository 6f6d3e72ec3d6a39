"""summary.json and report.md from rows of results: figures by variant and family, beside the paper's."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import statistics
from typing import Any

import numpy as np

from symformer_jax.evaluation import metrics, paired, problems as problems_lib, published, second_opinion
from symformer_jax.evaluation.runs import OWN_LABEL, Row
from symformer_jax.language import parser


def summarize(rows: Sequence[Row]) -> dict[str, Any]:
  """The figures of a group of rows; None where one does not exist.

  A row without an answer is the worst value in medians and a miss in shares; `mean_r2` clips to [0, 1] and
  counts it as 0, since one wild extrapolation would otherwise be the mean.
  """
  r2 = [row.r2 for row in rows]
  recovered = [row.recovered is True for row in rows]
  answered = [row for row in rows if row.predicted is not None]
  share = metrics.share_above
  return {
    "rows": len(rows),
    "answered": len(answered),
    "median_r2": metrics.median(r2, worst=float("-inf")),
    "mean_r2": statistics.fmean(min(max(value or 0.0, 0.0), 1.0) for value in r2) if rows else None,
    "median_relative_error": metrics.median((row.relative_error for row in rows), worst=float("inf")),
    **{f"share_r2_above_{t}": share(r2, t) for t in metrics.THRESHOLDS},
    "share_exact_in_float32": share(
      [None if row.fvu is None else -row.fvu for row in rows], -metrics.FLOAT32_FVU),
    "share_recovered": share([float(value) for value in recovered], 0.5),
    "equal_but_written_differently": sum(row.recovered is True and row.same_skeleton is False for row in rows),
    "sympy_disagrees": sum(
      row.sympy == (second_opinion.DIFFERENT if row.recovered else second_opinion.EQUAL) for row in rows),
    "median_complexity": metrics.median((row.complexity for row in answered), worst=float("inf")),
    "mean_seconds": statistics.fmean(row.seconds for row in answered if row.seconds is not None) if answered else None,
    "compile_seconds": sum(row.compile_seconds or 0.0 for row in rows),
    **{f"{name}_interval": _interval(rows, figure, is_share=is_share)
       for name, (figure, is_share) in _WITH_INTERVAL.items()},
  }


# Figures of a group of rows that get an interval, and whether they are shares of rows.
_WITH_INTERVAL: dict[str, tuple[Callable[[Sequence[Row]], float | None], bool]] = {
  "share_r2_above_0.999": (lambda rows: metrics.share_above([row.r2 for row in rows], 0.999), True),
  "share_recovered": (lambda rows: metrics.share_above([float(row.recovered is True) for row in rows], 0.5), True),
  "median_r2": (lambda rows: metrics.median((row.r2 for row in rows), worst=float("-inf")), False),
  "median_relative_error": (
    lambda rows: metrics.median((row.relative_error for row in rows), worst=float("inf")), False),
}


def _interval(rows: Sequence[Row], figure: Callable, *, is_share: bool) -> list[float] | None:
  """95 % of a figure: over seeds when there are several; else of a share, by the number of problems."""
  by_seed = [figure(group) for group in _groups(rows, lambda r: r.seed).values()]
  if None not in by_seed and (interval := metrics.bootstrap_interval(by_seed)) is not None:
    return list(interval)
  return list(metrics.wilson_interval(figure(rows), len(rows))) if is_share and rows else None


def _groups(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
  """Rows by key, in order of appearance."""
  groups: dict[Any, list[Row]] = {}
  for row in rows:
    groups.setdefault(key(row), []).append(row)
  return groups


def make_summary(rows: Sequence[Row], provenance: Mapping[str, Any]) -> dict[str, Any]:
  """What summary.json holds.

  Args:
    provenance: command, settings, model, versions, hardware, date: whatever names the run.
  """
  by_variant = _groups(rows, lambda row: row.variant)
  return {
    **provenance,
    "variants": {name: summarize(group) for name, group in by_variant.items()},
    "families": {name: {family: summarize(members) for family, members in _groups(group, lambda r: r.family).items()}
                 for name, group in by_variant.items()},
    "variables": {name: {str(n): summarize(members) for n, members in _groups(group, lambda r: r.n_vars).items()}
                  for name, group in by_variant.items()},
    "training_data": {name: {seen: summarize(members) for seen, members in _groups(group, _seen).items()}
                      for name, group in by_variant.items()},
    "failed": [{"variant": r.variant, "name": r.name, "seed": r.seed, "message": r.message}
               for r in rows if r.predicted is None],
  }


def _seen(row: Row) -> str:
  """What of a problem was in the model's training data."""
  if row.seen_function is None:
    return "unknown"
  return "function seen" if row.seen_function else "skeleton seen" if row.seen_skeleton else "neither seen"


# --- Markdown --------------------------------------------------------------------------------------------------

_FIGURES = (
  ("rows", "rows", "d"), ("median R2", "median_r2", ".6f"), ("median rel. error", "median_relative_error", ".2g"),
  ("R2 > .99", "share_r2_above_0.99", ".1%"), ("> .999", "share_r2_above_0.999", ".1%"),
  ("> .9999", "share_r2_above_0.9999", ".1%"), ("FVU < 1.2e-7", "share_exact_in_float32", ".1%"),
  ("recovered", "share_recovered", ".1%"), ("complexity", "median_complexity", "g"),
  ("seconds", "mean_seconds", ".2f"),
)


def make_report(title: str, rows: Sequence[Row], summary: Mapping[str, Any], figures: Mapping[str, str]) -> str:
  """report.md: tables by variant and family, the paper's figures where it prints some, every row, every failure.

  Args:
    title: the suite's.
    rows: judged.
    summary: see `make_summary`; `missing` in it names variants that could not be asked, with the reason.
    figures: caption -> file name of the plots beside the report.
  """
  parts = [f"# {title}", _provenance(summary), "## Figures",
           _variant_table(summary["variants"], summary.get("missing", {}))]
  parts.append("Seconds are means without compilation, which took "
               f"{sum(v['compile_seconds'] for v in summary['variants'].values()):.1f} s in all. A row without an "
               "answer counts as a miss. Relative error is the mean of |error / y| over points with y != 0.")
  parts += [_intervals(summary["variants"]), *_paired(rows), _equivalence(summary["variants"]), *_signs(rows)]
  parts += _training_data(summary["training_data"])
  for variant, families in summary["families"].items():
    if len(families) > 1:
      parts += [f"## By family{f', {variant}' if variant else ''}", _family_table(families)]
  parts += [*_published(summary), *_pictured(rows)]
  parts += [f"![{caption}]({file})" for caption, file in figures.items()]
  parts += ["## Rows", _row_table(rows)]
  if summary["failed"]:
    lines = [f"- {f['variant']} {f['name']} (seed {f['seed']}): {f['message']}" for f in summary["failed"]]
    parts += ["## Without an answer", "\n".join(lines)]
  return "\n\n".join(parts) + "\n"


_TABLES = ("variants", "families", "variables", "training_data", "failed", "missing")


def _provenance(summary: Mapping[str, Any]) -> str:
  plain = {k: v for k, v in summary.items() if k not in _TABLES}
  return "\n".join(f"- {name}: {_cell(value)}" for name, value in plain.items())


def _cell(value: Any) -> str:
  return ", ".join(f"{k}={v}" for k, v in value.items() if v is not None) if isinstance(value, dict) else str(value)


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
  escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
  return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *escaped])


def format_figure(value: float | None, form: str) -> str:
  """A number for a table; empty where it does not exist."""
  return "" if value is None else format(value, form)


def _variant_table(variants: Mapping[str, Mapping[str, Any]], missing: Mapping[str, str]) -> str:
  """A line per variant; one that could not be asked says why."""
  header = ["variant", *(name for name, _, _ in _FIGURES)]
  # Beside other systems the rows of the model have no label of their own.
  unnamed = OWN_LABEL if len(variants) > 1 else "all"
  lines = [[name or unnamed, *(format_figure(figures[key], form) for _, key, form in _FIGURES)]
           for name, figures in variants.items()]
  lines += [[name, f"missing: {why}", *[""] * (len(_FIGURES) - 1)] for name, why in missing.items()]
  return _table(header, lines)


def _intervals(variants: Mapping[str, Mapping[str, Any]]) -> str:
  """95 % intervals of the main figures."""
  forms = {"share_r2_above_0.999": ".1%", "share_recovered": ".1%", "median_r2": ".6f", "median_relative_error": ".2g"}
  header = ["95 % interval", "R2 > .999", "recovered", "median R2", "median rel. error"]
  def cell(interval: Sequence[float] | None, form: str) -> str:
    return "" if interval is None else " to ".join(format_figure(end, form) for end in interval)
  lines = [[name or "all", *(cell(figures[f"{key}_interval"], form) for key, form in forms.items())]
           for name, figures in variants.items()]
  note = ("Over seeds where there are several (bootstrap of the figure per seed); of one seed, shares alone have one "
          "(Wilson, by the number of problems).")
  return f"{_table(header, lines)}\n\n{note}"


def _paired(rows: Sequence[Row]) -> list[str]:
  """Variants beside the first, problem by problem."""
  by_variant = _groups(rows, lambda row: row.variant)
  if len(by_variant) < 2:
    return []
  first = next(iter(by_variant)) or OWN_LABEL
  note = ("Shares less those of the first variant, over the problems both have; in brackets 95 % of the difference "
          "(bootstrap over problems), and problems that only the one or the other solves.")
  return [_table([f"less {first}", *paired.MEASURES], paired.table_lines(by_variant)), note]


def _equivalence(variants: Mapping[str, Mapping[str, Any]]) -> str:
  """How many answers are equal in value but written differently (SymFormer, sec. 4.5), and where SymPy differs."""
  written = sum(v["equal_but_written_differently"] for v in variants.values())
  disagrees = sum(v["sympy_disagrees"] for v in variants.values())
  return (f"Equal in value to the truth but written differently: {written} rows. SymPy, asked as a second opinion, "
          f"says otherwise than the numbers in {disagrees} rows; the numbers count.")


def _signs(rows: Sequence[Row]) -> list[str]:
  """The rows whose answer is the truth for variables of the signs in the data, and for no others."""
  names = list(dict.fromkeys(" ".join(filter(None, (row.variant, row.name))) for row in rows if row.needs_signs))
  return [f"Recovered only for variables of the signs in the data (`sqrt(y**2)` for y above 0): {len(names)} of the "
          f"problems{': ' + ', '.join(names) if names else ''}."]


def _training_data(by_variant: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
  """The figures split by what of a problem was in the model's training data."""
  if all(set(groups) == {"unknown"} for groups in by_variant.values()):
    return ["Whether a problem was in the training data is unknown: no hash file of it is at hand."]
  lines = [[variant or "all", seen, str(figures["rows"]), format_figure(figures["median_r2"], ".6f"),
            format_figure(figures["share_r2_above_0.999"], ".1%"), format_figure(figures["share_recovered"], ".1%")]
           for variant, groups in by_variant.items() for seen, figures in groups.items()]
  return ["## By what was in the training data",
          _table(["variant", "training data", "rows", "median R2", "R2 > .999", "recovered"], lines)]


def _family_table(families: Mapping[str, Mapping[str, Any]]) -> str:
  header = ["family", "rows", "mean R2", "R2 > .999", "recovered", "seconds"]
  peers = ("SymFormer", "NSRS", "DSO")
  has_peers = any(name in published.BENCHMARKS for name in families)
  if has_peers:
    header += [f"{peer}, printed R2 (s)" for peer in (*peers, "bivariate SymFormer")]
  lines = []
  for name, figures in families.items():
    line = [name, str(figures["rows"]), format_figure(figures["mean_r2"], ".5f"),
            format_figure(figures["share_r2_above_0.999"], ".1%"), format_figure(figures["share_recovered"], ".1%"),
            format_figure(figures["mean_seconds"], ".2f")]
    printed = published.BENCHMARKS.get(name, {})
    if has_peers:
      columns = [*(printed.get(peer) for peer in peers), published.BIVARIATE.get(name)]
      line += [f"{pair[0]:.5f} ({pair[1]:.0f})" if pair else "" for pair in columns]
    lines.append(line)
  return _table(header, lines)


def _published(summary: Mapping[str, Any]) -> list[str]:
  """The paper's medians for the suites in which it prints them."""
  lines = []
  for variant, by_count in summary["variables"].items():
    for count, figures in by_count.items():
      printed = (published.IN_DOMAIN.get((int(count), variant)) or published.SAMPLES.get(variant)
                 or published.ABLATION.get(variant))
      if printed:
        lines.append([variant, count, f"{printed[0]:g}", format_figure(figures["median_r2"], ".6f"),
                      f"{printed[1]:g}", format_figure(figures["median_relative_error"], ".2g")])
  header = ["variant", "variables", "paper: median R2", "ours", "paper: median rel. error", "ours"]
  return ["## Beside the paper", _table(header, lines)] if lines else []


def _pictured(rows: Sequence[Row]) -> list[str]:
  """Our answers beside those that the paper's captions show, all judged alike."""
  pictured = {problem.name: problem for problem in problems_lib.load_list("examples")}
  lines = []
  for row in rows:
    problem = pictured.get(row.name)
    if problem is None or row.truth != problem.text:
      continue
    theirs = parser.parse(published.EXAMPLES[row.name], problem.names)
    rng = np.random.default_rng(row.seed)
    is_equal = metrics.is_recovered(problem.truth, theirs, problem.box, rng=rng, has_signs=True)
    points = problems_lib.draw_points(problem, problems_lib.NUM_SCORING_POINTS, rng=rng)
    note = describe_equality(is_equal, metrics.has_same_skeleton(problem.truth, theirs))
    ours = f"`{row.predicted}`" if row.predicted else ""
    lines.append([row.name, f"`{row.truth}`", ours, format_figure(row.r2, ".6f"),
                  describe_equality(row.recovered, row.same_skeleton), f"`{published.EXAMPLES[row.name]}`",
                  format_figure(metrics.score_formula(theirs, points).r2, ".6f"), note])
  header = ["name", "truth", "ours", "R2", "the truth?", "the paper's, as printed", "R2", "the truth?"]
  return ["## Beside the answers pictured in the paper", _table(header, lines)] if lines else []


def describe_equality(is_recovered: bool | None, is_same_skeleton: bool | None) -> str:
  """The note on equivalence beside an answer; empty without one."""
  if is_recovered is None:
    return ""
  if not is_recovered:
    return "no"
  return "yes" if is_same_skeleton else "equal in value, written differently"


def _row_table(rows: Sequence[Row], limit: int = 200) -> str:
  header = ["variant", "name", "truth", "predicted", "R2", "the truth?", "seconds"]
  lines = [[r.variant, r.name, f"`{r.truth}`", f"`{r.predicted}`" if r.predicted else "",
            format_figure(r.r2, ".6f"), describe_equality(r.recovered, r.same_skeleton),
            format_figure(r.seconds, ".2f")] for r in rows[:limit]]
  more = f"\n\nThe other {len(rows) - limit} rows are in results.csv." if len(rows) > limit else ""
  return _table(header, lines) + more
