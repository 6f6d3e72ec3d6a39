"""Best sets of few blocks of columns by exchange: exchange.py, but of groups of columns that count as one.

Each block is an unknown function times a known one: its columns are a basis of the functions, each times the known one.
Everything follows from products of columns, so that the number of rows counts once.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import VaryingConfig

# What keeps matrices of columns that are nearly dependent regular, as a share of a unit vector's square: of sets, and
# of what sets leave of a further block, which has rounding of both.
REGULAR, REGULAR_REST = 1e-12, 1e-8
# Share of a block's length below which a direction of it is rounding.
DEPENDENT = 1e-9

Blocks = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Products:
  """Products of orthonormal columns of M blocks of K, and of these with a target of length 1.

  Attributes:
    within: [M*K, M*K]; along: [M*K].
  """

  within: np.ndarray
  along: np.ndarray
  block_size: int

  @property
  def num_blocks(self) -> int:
    return len(self.along) // self.block_size

  def places(self, sets: np.ndarray) -> np.ndarray:
    """Columns [S, s*K] of sets of blocks [S, s]."""
    return (sets[..., None] * self.block_size + np.arange(self.block_size)).reshape(len(sets), -1)


def products_of(known: np.ndarray, basis: np.ndarray, target: np.ndarray, weights: np.ndarray) -> Products:
  """Products of the blocks `known[:, m] * basis`, and of the target, all less what a constant explains of them.

  Args:
    known: [N, M]; basis: [N, K]; target: [N], whatever its length; weights: [N], not negative.
  """
  root = np.sqrt(weights)
  ones = root / np.linalg.norm(root)

  def centred(columns: np.ndarray) -> np.ndarray:
    """Of columns [..., N, K]."""
    return columns - ones[:, None] * np.einsum("n,...nk->...k", ones, columns)[..., None, :]

  raw = (root[:, None] * known).T[:, :, None] * basis  # [M, N, K]
  blocks, sizes, _ = np.linalg.svd(centred(raw), full_matrices=False)
  # What the constant explains wholly leaves rounding, which has a direction all the same.
  largest = np.linalg.norm(raw, axis=(1, 2))[:, None]
  blocks = blocks * (sizes > DEPENDENT * largest)[:, None]
  by_rows = blocks.transpose(1, 0, 2)
  columns = by_rows.reshape(len(target), -1)
  goal = centred((root * target)[:, None])[:, 0]
  return Products(columns.T @ columns, columns.T @ (goal / np.linalg.norm(goal)), basis.shape[1])


def best_sets(products: Products, *, max_size: int, config: VaryingConfig) -> list[list[tuple[Blocks, float]]]:
  """Sets of one block, of two, ... that leave little of the target, the least first; no larger ones where it is met.

  Args:
    max_size: blocks of a set at most.
    config: how many sets are carried on and exchanged.
  """
  order = np.argsort(left_by_one_more(products, np.zeros((1, 0), int))[0], kind="stable")
  found = [_sorted(products, [(int(i),) for i in order[: config.num_kept]])]
  # One block seldom tells which: with few all go on.
  begun: list[Blocks] = [(int(i),) for i in order[: max(config.num_kept, 2 * config.num_exchanged)]]
  for _ in range(2, min(max_size, products.num_blocks) + 1):
    if found[-1][0][1] < config.exact:
      break
    grown = _grown(products, begun, config)
    if not grown:
      break
    found.append(grown)
    begun = [blocks for blocks, _ in grown]
  return found


def _grown(products: Products, begun: list[Blocks], config: VaryingConfig) -> list[tuple[Blocks, float]]:
  """Sets of one block more than those begun, improved by exchange."""
  found: dict[Blocks, float] = {}
  asked: set[Blocks] = set()
  for _ in range(1 + config.num_rounds):
    interruption.check()
    new = [blocks for blocks in begun if blocks not in asked]
    if not new:
      break
    asked.update(new)
    left = left_by_one_more(products, np.array(new))
    for blocks, row in zip(new, left, strict=True):
      for i in np.argsort(row, kind="stable")[: config.num_completed]:
        if np.isfinite(row[i]):
          found[tuple(sorted((*blocks, int(i))))] = float(row[i])
    best = sorted(found, key=lambda blocks: found[blocks])[: config.num_exchanged]
    begun = list(dict.fromkeys(blocks[:i] + blocks[i + 1 :] for blocks in best for i in range(len(blocks))))
  return _sorted(products, sorted(found, key=lambda blocks: found[blocks])[: config.num_kept])


def _sorted(products: Products, sets: Sequence[Blocks]) -> list[tuple[Blocks, float]]:
  """With what they leave, the least first; what a further block leaves is known less well."""
  return sorted(((blocks, left_by(products, blocks)) for blocks in sets), key=lambda item: item[1])


def left_by_one_more(products: Products, sets: np.ndarray) -> np.ndarray:
  """What sets of blocks [S, s] and one block more leave of the target [S, M]; infinite for a block that is there."""
  size, num = products.block_size, products.num_blocks
  places = products.places(sets)
  across = products.within[places].reshape(*places.shape, num, size)  # [S, s*K, M, K]
  solved, explained = np.zeros(across.shape), np.zeros(len(sets))
  rest = np.broadcast_to(products.along.reshape(num, size), (len(sets), num, size))
  if sets.shape[1]:
    gram = products.within[places[:, :, None], places[:, None, :]] + REGULAR * np.eye(places.shape[1])
    along = products.along[places]
    solution = np.linalg.solve(gram, np.concatenate([across.reshape(*places.shape, -1), along[..., None]], axis=2))
    solved = solution[..., :-1].reshape(across.shape)
    explained = np.einsum("sp,sp->s", solution[..., -1], along)
    rest = rest - np.einsum("spmk,sp->smk", across, solution[..., -1])
  own = products.within.reshape(num, size, num, size)[np.arange(num), :, np.arange(num)]  # [M, K, K]
  inner = own - np.matmul(across.transpose(0, 2, 3, 1), solved.transpose(0, 2, 1, 3))
  inner = inner + REGULAR_REST * np.eye(size)
  gains = np.einsum("smk,smk->sm", rest, np.linalg.solve(inner, rest[..., None])[..., 0])
  left = np.maximum(1 - explained[:, None] - gains, 0)
  left[np.arange(len(sets))[:, None], sets] = np.inf
  return left


def left_by(products: Products, blocks: Blocks) -> float:
  """What a set of blocks leaves of the target."""
  if not blocks:
    return 1.0
  places = products.places(np.array([blocks]))[0]
  gram = products.within[np.ix_(places, places)] + REGULAR * np.eye(len(places))
  return max(0.0, 1 - float(products.along[places] @ np.linalg.solve(gram, products.along[places])))
