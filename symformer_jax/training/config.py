"""The configuration of a training run: frozen, built from a config file's ConfigDict."""

import dataclasses

from symformer_jax.data.pipeline import DataConfig
from symformer_jax.data.points import PointsConfig
from symformer_jax.model.config import ModelConfig


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
  """Attributes:
    schedule: `rsqrt` (paper: learning rate as in Vaswani et al. 2017, divided by five) or `wsd` (warm up, stay
      at `peak`, decay linearly to 0 over the last `decay_steps`).
    peak: learning rate of `wsd`.
    warmup_steps: steps of linear warm-up (4000 in the paper).
    decay_steps: see `wsd`.
    model_width: d of the rsqrt schedule; the paper's is the encoder's width.
    weight_decay: AdamW's; 0 is the paper's Adam.
    clip_norm: largest gradient norm, None for no clipping (paper).
    b2: Adam's second moment decay.
  """

  schedule: str = "rsqrt"
  peak: float = 1e-3
  warmup_steps: int = 4000
  decay_steps: int = 0
  model_width: int = 384
  weight_decay: float = 0.0
  clip_norm: float | None = None
  b2: float = 0.999


@dataclasses.dataclass(frozen=True)
class LossConfig:
  """Attributes:
    label_smoothing: mass spread over the vocabulary (0.1 in the paper).
    lambda_delay: steps without regression loss (97 700 in the paper), then 1 - cosine up to `lambda_end`.
    lambda_end: weight of the regression loss at the end.
    noise_std: standard deviation of the noise on input constants at the start, decayed by the same cosine.
      The paper's text and table disagree on whether 0.1 is a variance; the reference code takes a deviation.
    update_every: steps between updates of learning rate, lambda and noise (977 in the paper).
  """

  label_smoothing: float = 0.1
  lambda_delay: int = 97_700
  lambda_end: float = 1.0
  noise_std: float = 0.1
  update_every: int = 977


@dataclasses.dataclass(frozen=True)
class MeshConfig:
  """Sizes of the mesh axes; data = -1 takes all devices that are left."""

  data: int = -1
  fsdp: int = 1
  tensor: int = 1


@dataclasses.dataclass(frozen=True)
class TrainConfig:
  """Everything a run depends on.

  Attributes:
    num_steps: length of the run; schedules end there.
    seed: of parameters, data order, points, dropout and noise.
    compute_dtype: `float32` or `bfloat16` for the forward and backward pass; parameters stay float32.
    log_every, eval_every, checkpoint_every: in steps.
    num_eval_batches: validation batches per evaluation.
    keep_checkpoints: how many of the newest to keep.
    init_from: model name, export folder or work directory whose parameters to start from.
  """

  model: ModelConfig = ModelConfig()
  data: DataConfig = DataConfig()
  points: PointsConfig = PointsConfig()
  optimizer: OptimizerConfig = OptimizerConfig()
  loss: LossConfig = LossConfig()
  mesh: MeshConfig = MeshConfig()
  num_steps: int = 381_000
  seed: int = 0
  compute_dtype: str = "float32"
  log_every: int = 100
  eval_every: int = 2000
  checkpoint_every: int = 1000
  num_eval_batches: int = 8
  keep_checkpoints: int = 2
  init_from: str = ""
