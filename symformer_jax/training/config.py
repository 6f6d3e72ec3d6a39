"""The configuration of a training run: frozen, built from a config file's ConfigDict."""

import dataclasses

from symformer_jax.arguments import check_seed
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
    lambda_delay: steps at `lambda_start` (97 700 in the paper), then 1 - cosine up to `lambda_end`.
    lambda_start: weight of the regression loss at the start: 0 in the paper, 1 to continue from trained weights.
    lambda_end: weight of the regression loss at the end.
    noise_std: standard deviation of the noise on input constants at the start, decayed by the same cosine.
      The paper's text and table disagree on whether 0.1 is a variance; the reference code takes a deviation.
    update_every: steps between updates of learning rate, lambda and noise (977 in the paper).
    huber_delta: error of a constant beyond which its loss grows linearly; None: squared everywhere, as in the paper.
  """

  label_smoothing: float = 0.1
  lambda_delay: int = 97_700
  lambda_start: float = 0.0
  lambda_end: float = 1.0
  noise_std: float = 0.1
  update_every: int = 977
  huber_delta: float | None = None


@dataclasses.dataclass(frozen=True)
class MeshConfig:
  """Sizes of the mesh axes; data = -1 takes all devices that are left."""

  data: int = -1
  fsdp: int = 1
  tensor: int = 1


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
  """Decoding of validation equations during training, without refinement: how good answers are, not tokens.

  Attributes:
    every: steps between evaluations; 0 switches them off.
    num_equations: validation equations.
    num_samples: samples for each (top 20), besides the greedy answer.
  """

  every: int = 20_000
  num_equations: int = 256
  num_samples: int = 64


# Of the run itself what has no 0: that of `eval_every` and `checkpoint_every` switches these off.
_COUNTS = ("num_steps", "log_every", "num_eval_batches", "keep_checkpoints")
# Rows that are drawn of a data set, 64 MB a column: far more no machine holds of a batch, and indices are of 32 bits.
MAX_DRAWN_ROWS = 2**24
# Samples of a validation equation: those of a search are as many at most.
MAX_SAMPLES = 10**7


@dataclasses.dataclass(frozen=True)
class TrainConfig:
  """Everything a run depends on.

  Attributes:
    num_steps: length of the run; schedules end there.
    seed: of parameters, data order, points, dropout and noise.
    compute_dtype: `float32` or `bfloat16` for the forward and backward pass; parameters stay float32.
    accumulation: parts of a batch whose gradients are added up one after the other, for less memory; with a dropout
      of 0 the result is that of the whole batch.
    remat: whether the gradient computes each block again instead of storing its inside: less memory, a third more
      work.
    on_nonfinite: what a loss or gradient that is not finite does: `stop` the run, or `skip` that update.
    max_gradient_norm: a gradient of a larger norm counts as not finite; None for none. Of a network that learns it is 1
      to 10, of one whose sums have outgrown bfloat16 1e4 and more within some steps (docs/results/wide.md).
    max_skips: skipped updates in a row after which the run stops all the same.
    log_every, eval_every, checkpoint_every: in steps.
    num_eval_batches: validation batches per evaluation.
    keep_checkpoints: how many of the newest to keep, beside the one of the lowest validation loss.
    init_from: model name or export folder whose parameters to start from; it may be smaller (`transfer`).
  """

  model: ModelConfig = ModelConfig()
  data: DataConfig = DataConfig()
  points: PointsConfig = PointsConfig()
  optimizer: OptimizerConfig = OptimizerConfig()
  loss: LossConfig = LossConfig()
  mesh: MeshConfig = MeshConfig()
  decoding: DecodingConfig = DecodingConfig()
  num_steps: int = 381_000
  seed: int = 0
  compute_dtype: str = "float32"
  accumulation: int = 1
  remat: bool = False
  on_nonfinite: str = "stop"
  max_gradient_norm: float | None = None
  max_skips: int = 100
  log_every: int = 100
  eval_every: int = 2000
  checkpoint_every: int = 1000
  num_eval_batches: int = 8
  keep_checkpoints: int = 2
  init_from: str = ""

  def __post_init__(self) -> None:
    for part, names in ((self, _COUNTS), (self.data, ("batch_size", "blocks_per_group")),
                        (self.points, ("num_points", "draws")), (self.loss, ("update_every",)),
                        (self.optimizer, ("model_width",)), (self.mesh, ("fsdp", "tensor"))):
      for name in names:
        if getattr(part, name) < 1:
          raise ValueError(f"{name} must be at least 1, got {getattr(part, name)}")
    if self.points.num_points * self.points.draws > MAX_DRAWN_ROWS:
      raise ValueError(f"num_points times draws must be at most {MAX_DRAWN_ROWS}, got "
                       f"{self.points.num_points * self.points.draws}")
    if self.decoding.num_samples > MAX_SAMPLES:
      raise ValueError(f"num_samples must be at most {MAX_SAMPLES}, got {self.decoding.num_samples}")
    check_seed(self.seed)
    if self.on_nonfinite not in ("stop", "skip"):
      raise ValueError(f"unknown on_nonfinite {self.on_nonfinite!r}: expected 'stop' or 'skip'")
    if self.compute_dtype not in ("float32", "bfloat16"):
      raise ValueError(f"unknown compute_dtype {self.compute_dtype!r}: expected 'float32' or 'bfloat16'")
    if self.loss.huber_delta is not None and not self.loss.huber_delta > 0:
      raise ValueError(f"loss.huber_delta must be above 0, or None for squared errors, got {self.loss.huber_delta}")
    if self.max_gradient_norm is not None and not self.max_gradient_norm > 0:
      raise ValueError(f"max_gradient_norm must be above 0, or None for no bound, got {self.max_gradient_norm}")
    if self.accumulation < 1 or self.data.batch_size % self.accumulation:
      raise ValueError(f"accumulation must divide the batch of {self.data.batch_size}, got {self.accumulation}")
