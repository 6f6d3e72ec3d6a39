"""summary.json and report.md from rows of results: figures by variant and family, beside the paper's."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import itertools
import statistics
from typing import Any

from symformer_jax.evaluation import metrics, published
from symformer_jax.evaluation.runs import Row


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
    "median_complexity": metrics.median((row.complexity for row in answered), worst=float("inf")),
    "mean_seconds": statistics.fmean(row.seconds for row in answered) if answered else None,
    "compile_seconds": sum(row.compile_seconds or 0.0 for row in rows),
    "share_r2_above_0.999_interval": _interval(rows),
  }


def _interval(rows: Sequence[Row]) -> list[float] | None:
  """95 % of the share above 0.999: over seeds when there are several, else by the number of problems."""
  if not rows:
    return None
  shares = [metrics.share_above([row.r2 for row in group], 0.999) for group in _groups(rows, lambda r: r.seed).values()]
  if len(shares) > 1:
    return list(metrics.bootstrap_interval(shares))
  return list(metrics.wilson_interval(shares[0], len(rows)))


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
    "failed": [{"variant": r.variant, "name": r.name, "seed": r.seed, "message": r.message}
               for r in rows if r.predicted is None],
  }


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
    summary: see `make_summary`.
    figures: caption -> file name of the plots beside the report.
  """
  parts = [f"# {title}", _provenance(summary), "## Figures", _variant_table(summary["variants"])]
  parts.append("Seconds are means without compilation, which took "
               f"{sum(v['compile_seconds'] for v in summary['variants'].values()):.1f} s in all. A row without an "
               "answer counts as a miss. Relative error is the mean of |error / y| over points with y != 0.")
  written = sum(v["equal_but_written_differently"] for v in summary["variants"].values())
  parts.append(f"Equal in value to the truth but written differently: {written} rows.")
  for variant, families in summary["families"].items():
    if len(families) > 1:
      parts += [f"## By family{f', {variant}' if variant else ''}", _family_table(families)]
  parts += _published(summary)
  parts += [f"![{caption}]({file})" for caption, file in figures.items()]
  parts += ["## Rows", _row_table(rows)]
  if summary["failed"]:
    lines = [f"- {f['variant']} {f['name']} (seed {f['seed']}): {f['message']}" for f in summary["failed"]]
    parts += ["## Without an answer", "\n".join(lines)]
  return "\n\n".join(parts) + "\n"


def _provenance(summary: Mapping[str, Any]) -> str:
  plain = {k: v for k, v in summary.items() if k not in ("variants", "families", "variables", "failed")}
  return "\n".join(f"- {name}: {_cell(value)}" for name, value in plain.items())


def _cell(value: Any) -> str:
  return ", ".join(f"{k}={v}" for k, v in value.items() if v is not None) if isinstance(value, dict) else str(value)


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
  escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
  return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *escaped])


def format_figure(value: float | None, form: str) -> str:
  """A number for a table; empty where it does not exist."""
  return "" if value is None else format(value, form)


def _variant_table(variants: Mapping[str, Mapping[str, Any]]) -> str:
  header = ["variant", *(name for name, _, _ in _FIGURES), "95 % of > .999"]
  def line(name, figures):
    low, high = figures["share_r2_above_0.999_interval"]
    cells = [format_figure(figures[key], form) for _, key, form in _FIGURES]
    return [name or "all", *cells, f"{low:.1%} to {high:.1%}"]
  return _table(header, itertools.starmap(line, variants.items()))


def _family_table(families: Mapping[str, Mapping[str, Any]]) -> str:
  header = ["family", "rows", "mean R2", "R2 > .999", "recovered", "seconds"]
  peers = ("SymFormer", "NSRS", "DSO")
  has_peers = any(name in published.BENCHMARKS for name in families)
  if has_peers:
    header += [f"{peer}, printed R2 (s)" for peer in peers]
  lines = []
  for name, figures in families.items():
    line = [name, str(figures["rows"]), format_figure(figures["mean_r2"], ".5f"),
            format_figure(figures["share_r2_above_0.999"], ".1%"), format_figure(figures["share_recovered"], ".1%"),
            format_figure(figures["mean_seconds"], ".2f")]
    printed = published.BENCHMARKS.get(name, {})
    if has_peers:
      line += [f"{printed[peer][0]:.5f} ({printed[peer][1]:.0f})" if peer in printed else "" for peer in peers]
    lines.append(line)
  return _table(header, lines)


def _published(summary: Mapping[str, Any]) -> list[str]:
  """The paper's medians for the suites in which it prints them."""
  lines = []
  for variant, by_count in summary["variables"].items():
    for count, figures in by_count.items():
      printed = published.IN_DOMAIN.get((int(count), variant)) or published.SAMPLES.get(variant)
      if printed:
        lines.append([variant, count, f"{printed[0]:g}", format_figure(figures["median_r2"], ".6f"),
                      f"{printed[1]:g}", format_figure(figures["median_relative_error"], ".2g")])
  header = ["variant", "variables", "paper: median R2", "ours", "paper: median rel. error", "ours"]
  return ["## Beside the paper", _table(header, lines)] if lines else []


def _row_table(rows: Sequence[Row], limit: int = 200) -> str:
  header = ["variant", "name", "truth", "predicted", "R2", "recovered", "seconds"]
  lines = [[r.variant, r.name, f"`{r.truth}`", f"`{r.predicted}`" if r.predicted else "",
            format_figure(r.r2, ".6f"), {True: "yes", False: "no", None: ""}[r.recovered],
            format_figure(r.seconds, ".2f")] for r in rows[:limit]]
  more = f"\n\nThe other {len(rows) - limit} rows are in results.csv." if len(rows) > limit else ""
  return _table(header, lines) + more
