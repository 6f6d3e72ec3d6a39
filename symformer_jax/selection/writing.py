"""How a formula is written: without what says nothing, in simple values and few digits, in its shortest form."""

from collections.abc import Callable, Sequence
import itertools
import math

import numpy as np

from symformer_jax.language import expression, identities, rewritings
from symformer_jax.language.expression import Node
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import rounding, straight
from symformer_jax.selection.idle_parts import without_idle_parts
from symformer_jax.selection.judge import Finalist, Judge

# Other ways to write a formula, by name.
REWRITINGS: dict[str, Callable[[Node], Node]] = {
  "exponentials": rewritings.to_exponentials, "powers": rewritings.to_powers, "origins": rewritings.to_origins,
  "principal_phases": rewritings.to_principal_phases, "unit_slopes": rewritings.to_unit_slopes,
  "unit_constants": rewritings.to_unit_constants, "unit_factors": rewritings.to_unit_factors,
  "absolutes": rewritings.to_absolutes,
  "single_waves": rewritings.to_single_waves, "vertices": rewritings.to_vertices,
  "proper_fractions": rewritings.to_proper_fractions, "other_waves": identities.to_other_waves,
  "complements": identities.to_complements, "roots": identities.to_roots,
  "factors_of_exponentials": identities.to_factors_of_exponentials,
  "joined_logarithms": identities.to_joined_logarithms, "expanded": identities.to_expanded,
  "distributed": identities.to_distributed, "collected": identities.to_collected,
  "multiple_angles": identities.to_multiple_angles, "half_angles": identities.to_half_angles,
  "steps": identities.to_steps, "tangents": identities.to_tangents,
  "single_fractions": identities.to_single_fractions, "multiplied": identities.to_multiplied,
  "limits": rewritings.to_limits}


def rounded(nodes: Sequence[Node], judge: Judge, is_allowed: Callable[[Node], bool]) -> list[Node]:
  """The trees and their variants with fewer and simpler constants, all with the fewest digits."""
  config = judge.config
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)

  def tidied(node: Node) -> Node:
    """Unless a rule forbids what tidying makes of it: exp(u)*exp(v) becomes a sum."""
    return form if is_allowed(form := plain(node)) else node

  nodes = [tidied(lean if is_allowed(lean := without_idle_parts(node, judge.rows.x)) else node) for node in nodes]
  leaner = [tidied(rounding.refit_constants(lean, *data, config=config)) for lean in _leaner(nodes, judge)
            if is_allowed(lean)]
  leaner += [line for node in nodes for line in _straight(node, judge, is_allowed)]
  reduced = [tidied(rounding.remove_redundant(node, *data, config=config)) for node in [*nodes, *leaner]]
  snapped = [_snapped(node, num_errors, judge, tidied) for node in reduced for num_errors in config.snap_errors]
  # A bare number left of a formula is worse than the constant fit, which is there already.
  simpler = [node for node in dict.fromkeys([*reduced, *snapped]) if not node.is_number and is_allowed(node)]
  by_form: dict[Node, Node] = {}
  for node in dict.fromkeys([*nodes, *simpler]):
    form = tidied(rounding.round_constants(node, *data, config=config))
    by_form.setdefault(form if is_allowed(form) else node, node)
  # Other ways to write a formula take most of the time: they are for those that may be listed.
  promising = set(judge.promising(list(by_form)))
  return [_shortest(node, judge, is_allowed) if form in promising else form for form, node in by_form.items()]


@np.errstate(all="ignore")  # what is not finite is left out
def _leaner(nodes: Sequence[Node], judge: Judge) -> list[Node]:
  """The trees without what is next to nothing, where their values hardly change."""
  config, x = judge.config, judge.rows.x
  found: dict[Node, None] = {}
  for share, node in itertools.product(config.idle, nodes):
    lean = without_idle_parts(node, x, share=share)
    if lean != node and not lean.is_number:
      values = expression.evaluate(node, x)
      change = expression.evaluate(lean, x) - values
      if np.mean(change**2) <= config.idle_change**2 * np.var(values):
        found[lean] = None
  return list(found)


def _snapped(node: Node, num_errors: float, judge: Judge, tidied: Callable[[Node], Node]) -> Node:
  """A tree with simple values, tidied; where it was undefined before that, its constants fitted again: one that nothing
  depends on any more stood in their way, as the 8 in `0*log(8 - x)`.
  """
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)
  found = rounding.snap_constants(node, *data, num_errors=num_errors, config=judge.config)
  if math.isfinite(judge.score(found).mse):
    return tidied(found)
  return rounding.refit_constants(tidied(found), *data, config=judge.config)


def _straight(node: Node, judge: Judge, is_allowed: Callable[[Node], bool]) -> list[Node]:
  """The tree with a line in the place of a function, where that describes the rows as well."""
  whole = Finalist(node, judge.score(node))
  if judge.is_exact(whole):
    return []
  data, lines = (judge.rows.x, judge.rows.y, judge.rows.weights), []
  for line in straight.straightened(node, judge.rows.x, judge.rows.weights, share=judge.config.straight):
    fitted = rounding.refit_constants(tidy(line), *data, config=judge.config)
    fitted = tidy(rounding.remove_redundant(fitted, *data, config=judge.config))
    if is_allowed(fitted):
      lines.append(Finalist(fitted, judge.score(fitted)))
  most = judge.cost(whole, is_rounded=False)
  return [each.node for each in lines if judge.cost(each, is_rounded=False) < most]


def plain(node: Node) -> Node:
  """Without forms in which nobody would leave a formula: `(0.9*exp(-0.4*x)*x)**3` is `0.729*exp(-1.2*x)*x**3`, `x*y*x`
  is `x**2*y`, `cos(-0.3*x)` is `cos(0.3*x)`, `log(exp(x)*y)` is `x + log(y)`.
  """
  for rewrite in (rewritings.to_powers_of_factors, rewritings.to_powers_of_equals, rewritings.to_positive_arguments,
                  rewritings.to_opened_logarithms):
    node = rewrite(tidy(node))
  return tidy(node)


def _shortest(node: Node, judge: Judge, is_allowed: Callable[[Node], bool]) -> Node:
  """The tree with the fewest digits, or rewritten where that is the shorter description, at most `max_rewritten` ways
  one after the other.
  """
  written, least = node, math.inf
  for rewritten in range(judge.config.max_rewritten):
    forms = [(judge.cost_of(form), found, form) for found, form in _forms(node, judge, is_allowed)]
    cost, found, form = min(forms, key=lambda each: each[0], default=(math.inf, node, node))
    if rewritten and cost >= least:
      break
    node, is_done, written, least = found, found == node, form, cost
    if is_done:
      break
  return written


def _forms(node: Node, judge: Judge, is_allowed: Callable[[Node], bool]) -> list[tuple[Node, Node]]:
  """Ways to write a tree, and each with the fewest digits.

  The rules are asked of what comes out: digits and simple values change operators, and may make a column vanish.
  """
  config = judge.config
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)
  rounded = rounding.round_constants(node, *data, config=config)
  variants = [(node, rounded)]
  # Parts whose constants are the same once rounded can be joined only then.
  rewrites = [rewrite for name, rewrite in REWRITINGS.items() if name in config.rewritings]
  pairs = [(rewrite(base), base) for rewrite in rewrites for base in (node, tidy(rounded))]
  for rewritten in dict.fromkeys(tidy(rewritten) for rewritten, base in pairs if rewritten != base):
    refitted = rounding.refit_constants(rewritten, *data, config=config)
    snapped = rounding.snap_constants(refitted, *data, config=config)
    variants.append((snapped, rounding.round_constants(snapped, *data, config=config)))
  # A rule may forbid what tidying makes of a variant, and not the variant.
  forms = [(found, form if is_allowed(form := plain(variant)) else variant) for found, variant in variants]
  return [(found, form) for found, form in forms if is_allowed(form) and (node.is_number or not form.is_number)]
