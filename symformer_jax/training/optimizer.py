"""The optimiser of a configuration: Adam or AdamW, with clipping where asked for."""

from typing import Any

import jax
import optax

from symformer_jax.training import schedules
from symformer_jax.training.config import TrainConfig


def make_optimizer(config: TrainConfig) -> optax.GradientTransformation:
  """Adam (SymFormer, sec. 4.1; AdamW with weight decay on matrices only) under the configured schedule."""
  o = config.optimizer
  rate = schedules.learning_rate(o, config.num_steps, config.loss.update_every)

  def is_matrix(params: Any) -> Any:
    return jax.tree.map(lambda p: p.ndim > 1, params)

  steps = [] if o.clip_norm is None else [optax.clip_by_global_norm(o.clip_norm)]
  steps.append(optax.adamw(rate, b2=o.b2, weight_decay=o.weight_decay, mask=is_matrix))
  chain = optax.chain(*steps)
  # The loop ends a run after `max_skips` bad gradients in a row, before optax would let one through.
  return optax.apply_if_finite(chain, 2 * config.max_skips) if config.on_nonfinite == "skip" else chain
