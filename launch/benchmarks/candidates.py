"""Formulas of the generator with their points: what the benchmarks evaluate and refine."""

import functools
from typing import NamedTuple

import numpy as np

from configs.data import univariate
from data_gen import config as config_lib, domains, filters, simplify, trees
from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import expression
from symformer_jax.language.vocabulary import Vocabulary


class Candidates(NamedTuple):
  """K formulas, each with points of its own.

  Attributes:
    ids: [K, L]; values: true numbers at constant tokens [K, L]; x: [K, N, 1]; y: [K, N], without noise.
  """

  ids: np.ndarray
  values: np.ndarray
  x: np.ndarray
  y: np.ndarray


# Ids, mantissas, x [N, 1] and y [N] of a formula.
_Drawn = tuple[list[int], list[float], np.ndarray, np.ndarray]


@functools.cache
def draw(num: int, *, num_points: int = 100, max_tokens: int = 32, seed: int = 0, needs_constants: bool = True,
         setting: str = "rules") -> Candidates:
  """Draws formulas as the univariate generator does, points uniform on each formula's box.

  Args:
    num: K; num_points: N; max_tokens: L; seed: of everything.
    needs_constants: whether formulas without a constant token are left out.
    setting: the generator's `simplify` setting.
  """
  rng, vocab = np.random.default_rng(seed), Vocabulary(1)
  config = config_lib.from_dict({**univariate.get_config().to_dict(), "num_points": num_points})
  sampler = trees.TreeSampler(config)
  found: list[_Drawn] = []
  while len(found) < num:
    candidate = _draw_one(rng, sampler, config, vocab, setting)
    if candidate is None or len(candidate[0]) > max_tokens:
      continue
    if needs_constants and not any(vocab.is_constant[i] for i in candidate[0]):
      continue
    found.append(candidate)
  ids, values = np.zeros((num, max_tokens), np.int32), np.zeros((num, max_tokens))
  for k, (tokens, mantissas, _, _) in enumerate(found):
    ids[k, :len(tokens)] = tokens
    values[k, :len(tokens)] = np.array(mantissas) * np.array(vocab.constant_scale)[tokens]
  return Candidates(ids, values, np.stack([f[2] for f in found]), np.stack([f[3] for f in found]))


def _draw_one(
  rng: np.random.Generator, sampler: trees.TreeSampler, config: config_lib.GeneratorConfig, vocab: Vocabulary,
  setting: str,
) -> _Drawn | None:
  """`(ids, mantissas, x [N, 1], y [N])` or None for a formula the generator would drop."""
  tree = sampler.sample(rng)
  with np.errstate(all="ignore"):
    box = domains.find_box(tree, rng, config)
    if box is None or filters.is_too_large(box[2], config) or filters.is_near_constant(box[2]):
      return None
    if filters.is_near_linear(box[1], box[2]):
      return None
    try:
      tree = simplify.simplify(tree, setting, digits=config.simplify_digits)
      ids, mantissas = expression.encode(tree, vocab)
    except (ExpressionError, InputError, ArithmeticError):
      return None
    y = np.broadcast_to(trees.evaluate(tree, box[1]), box[1].shape[1:])
  return (ids, mantissas, box[1].T, y) if np.isfinite(y).all() else None
