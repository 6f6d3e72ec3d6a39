"""One candidate: from its number to an equation or the name of the rule that rejects it."""

from typing import NamedTuple

import numpy as np

from data_gen import domains, exclusion, filters, laws, simplify, trees
from data_gen.config import GeneratorConfig, LawsConfig
from data_gen.exclusion import Exclusion
from data_gen.shapes import Shapes
from data_gen.stored import hash_skeleton, read_tree
from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import expression
from symformer_jax.language.expression import Node
from symformer_jax.language.vocabulary import Vocabulary

# Begins the rule of a candidate that computes what a test problem does; the problem's name follows.
EXCLUDED = "excluded: "


class Equation(NamedTuple):
  """An accepted candidate.

  Attributes:
    ids: tokens [L] as bytes.
    constants: float32 mantissas [L] as bytes, 0 where there is none.
    domain: box [D, 2].
    function: fingerprint of its values.
    skeleton: hash of its tokens, all constants alike.
  """

  ids: bytes
  constants: bytes
  domain: np.ndarray
  function: int
  skeleton: int

  @property
  def key(self) -> bytes:
    """What two equal equations have in common."""
    return self.ids + self.constants


class Generator:
  """Makes candidates of one configuration."""

  def __init__(self, config: GeneratorConfig, seed: int, problems: Exclusion | Shapes):
    self.config, self.seed, self.problems = config, seed, problems
    self.vocab = Vocabulary(config.num_variables)
    self.sampler = laws.LawSampler(config) if isinstance(config, LawsConfig) else trees.TreeSampler(config)
    self.has_boxes = isinstance(self.sampler, laws.LawSampler)

  def make(self, index: int) -> Equation | str:
    """Candidate `index`, the same whoever makes it: all randomness comes from (seed, index)."""
    rng = np.random.default_rng((self.seed, index))
    with np.errstate(all="ignore"):
      tree, box = self._draw(rng)
      if tree is None:
        return "no_law"
      if self._is_plain(tree):
        return "plain"
      rule, columns, y = self._judge(tree, rng, box)
      if rule or columns is None or y is None:
        return rule
      try:
        final = simplify.simplify(tree, self.config.simplify, digits=self.config.simplify_digits,
                                  max_tokens=self.config.max_tokens)
      except simplify.TooLongError:
        return "too_long"
      except ExpressionError:
        return "inexpressible"
      except RecursionError:
        return "recursion"
      return self._finish(final, columns, y, rng, box)

  def _draw(self, rng: np.random.Generator) -> tuple[Node | None, np.ndarray | None]:
    """A random tree, and its box [D, 2] where that is drawn with it; None and None where no draw made one."""
    if isinstance(self.sampler, trees.TreeSampler):
      return self.sampler.sample(rng), None
    law = self.sampler.sample(rng)
    if law is None:
      return None, None
    # Variables that a law does not have lie in [0, 0].
    return law.tree, np.pad(law.box, ((0, self.config.num_variables - len(law.box)), (0, 0)))

  def _is_plain(self, node: Node) -> bool:
    return self.config.min_nesting > 0 and filters.count_nesting(node) < self.config.min_nesting

  def _find_box(self, node: Node, box: np.ndarray | None, rng: np.random.Generator
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    return domains.find_box(node, rng, self.config) if box is None else domains.try_box(node, box, rng, self.config)

  def _judge(self, tree: Node, rng: np.random.Generator, box: np.ndarray | None = None
             ) -> tuple[str, np.ndarray | None, np.ndarray | None]:
    """Numeric tests of the raw tree, so that SymPy sees only what may stay: `(rule or "", columns, y)`."""
    found = self._find_box(tree, box, rng)
    if found is None:
      return "no_finite_box", None, None
    _, columns, y = found
    if filters.is_too_large(y, self.config):
      return "too_large", None, None
    if filters.is_near_constant(y):
      return "constant", None, None
    # A linear function is kept only when its tree had one operator, or as a law.
    if not self.has_boxes and trees.count_operators(tree) > 1 and filters.is_near_linear(columns, y):
      return "linear", None, None
    return "", columns, y

  def _finish(self, final: Node, columns: np.ndarray, y: np.ndarray, rng: np.random.Generator,
              box: np.ndarray | None = None) -> Equation | str:
    """Tests of the simplified formula, in the precision in which it is stored."""
    if filters.is_constant_out_of_range(final, self.config):
      return "constant_out_of_range"
    if sum(1 for _ in expression.walk(final)) > self.config.max_tokens:
      return "too_long"
    if self._is_plain(final):
      return "plain_simplified"
    try:
      ids, constants = expression.encode(final, self.vocab)
    except InputError:
      return "not_encodable"
    mantissas = np.asarray(constants, np.float32)
    stored = read_tree(ids, mantissas, self.vocab)
    if not filters.is_equal(y, trees.values(stored, columns)):
      return "wrong_simplification"
    found = self._find_box(stored, box, rng)
    if found is None:
      return "no_finite_box_simplified"
    box, _, values = found
    if filters.is_too_large(values, self.config):
      return "too_large_simplified"
    probes = exclusion.probe(stored, self.config)
    problem = self.problems.matches(stored) if isinstance(self.problems, Shapes) else self.problems.matches(probes)
    if problem:
      return f"{EXCLUDED}{problem}"
    skeleton = hash_skeleton(ids, self.vocab)
    return Equation(bytes(ids), mantissas.tobytes(), box, exclusion.fingerprint(probes), skeleton)
