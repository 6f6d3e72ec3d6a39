"""The configuration of a training run: frozen, built from a config file's ConfigDict."""

import dataclasses

from symformer_jax.arguments import check_seed
from symformer_jax.data.pipeline import DataConfig
from symformer_jax.data.points import LEAST_NOISE, PointsConfig
from symformer_jax.errors import show
from symformer_jax.model.config import MAX_SIZE, ModelConfig
from symformer_jax.ranges import SHARE, Range, check_ranges


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


# Rows that are drawn of a data set, 64 MB a column: far more no machine holds of a batch, and indices are of 32 bits.
MAX_DRAWN_ROWS = 2**24
# Samples of a validation equation: those of a search are as many at most.
MAX_SAMPLES = 10**7
# Steps and what counts them: of 32 bits on the device.
_MAX_STEPS = 2**31 - 1
_STEPS, _COUNT = Range(0, _MAX_STEPS), Range(1, _MAX_STEPS)
# A group of blocks is in memory at once, and a folder is listed as often as it counts.
_MANY = 2**16
# Every number of a config, but for `seed` and the model's, which have checks of their own.
RANGES = {
  "num_steps": _COUNT,
  "accumulation": _COUNT,
  "max_gradient_norm": Range(0, is_above=True, none="no bound"),
  "max_skips": Range(1, _MAX_STEPS // 2),  # optax lets one through after twice as many
  "log_every": _COUNT,
  "eval_every": _STEPS,
  "checkpoint_every": _STEPS,
  "num_eval_batches": _COUNT,
  "keep_checkpoints": _COUNT,
  "data.batch_size": Range(1, MAX_DRAWN_ROWS),
  "data.blocks_per_group": Range(1, _MANY),
  "data.length_buckets": Range(2, MAX_SIZE),  # the start token and another
  "data.repeats": Range(1, _MANY),
  "data.num_streams": Range(0, _MANY),
  "points.num_points": Range(1, MAX_DRAWN_ROWS),
  "points.draws": Range(1, MAX_DRAWN_ROWS),
  "points.min_points": Range(1, MAX_DRAWN_ROWS, none="all"),
  "points.subset_probability": SHARE,
  "points.subbox_probability": SHARE,
  "points.noise_probability": SHARE,
  "points.max_noise": Range(LEAST_NOISE, 1e3),
  "points.resample_probability": SHARE,
  "points.log_probability": SHARE,
  "points.proportional_share": SHARE,
  "points.distractor_probability": SHARE,
  "points.max_distractors": Range(1, MAX_SIZE),
  "points.spread_probability": SHARE,
  "optimizer.peak": Range(0, is_above=True),
  "optimizer.warmup_steps": _STEPS,
  "optimizer.decay_steps": _STEPS,
  "optimizer.model_width": Range(1, MAX_SIZE),
  "optimizer.weight_decay": Range(0),
  "optimizer.clip_norm": Range(0, is_above=True, none="no clipping"),
  "optimizer.b2": Range(0, 1, is_below=True),
  "loss.label_smoothing": Range(0, 1, is_below=True),
  "loss.lambda_delay": _STEPS,
  "loss.lambda_start": Range(0),
  "loss.lambda_end": Range(0),
  "loss.noise_std": Range(0),
  "loss.update_every": _COUNT,
  "loss.huber_delta": Range(0, is_above=True, none="squared errors"),
  "mesh.data": Range(-1, _MANY),
  "mesh.fsdp": Range(1, _MANY),
  "mesh.tensor": Range(1, _MANY),
  "decoding.every": _STEPS,
  "decoding.num_equations": Range(1, MAX_DRAWN_ROWS),
  "decoding.num_samples": Range(1, MAX_SAMPLES),
}


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
    check_ranges(self, RANGES)
    check_seed(self.seed)
    points, buckets, longest = self.points, self.data.length_buckets, self.model.decoder.max_length
    if points.num_points * points.draws > MAX_DRAWN_ROWS:
      raise ValueError(f"points.num_points times points.draws must be at most {MAX_DRAWN_ROWS}, got "
                       f"{points.num_points * points.draws}")
    if points.min_points is not None and points.min_points > points.num_points:
      raise ValueError(f"points.min_points must be at most the {points.num_points} of points.num_points, got "
                       f"{points.min_points}")
    if not buckets or list(buckets) != sorted(set(buckets)) or buckets[-1] > longest:
      raise ValueError(f"data.length_buckets must rise to at most the {longest} of model.decoder.max_length, got "
                       f"{show(buckets)}")
    if self.optimizer.schedule == "rsqrt" and not self.optimizer.warmup_steps:
      raise ValueError("optimizer.warmup_steps must be at least 1 with optimizer.schedule='rsqrt', got 0")
    if self.mesh.data == 0:
      raise ValueError("mesh.data must be at least 1, or -1 for all devices that are left, got 0")
    if self.on_nonfinite not in ("stop", "skip"):
      raise ValueError(f"unknown on_nonfinite {self.on_nonfinite!r}: expected 'stop' or 'skip'")
    if self.compute_dtype not in ("float32", "bfloat16"):
      raise ValueError(f"unknown compute_dtype {self.compute_dtype!r}: expected 'float32' or 'bfloat16'")
    if self.data.batch_size % self.accumulation:
      raise ValueError(f"accumulation must divide the batch of {self.data.batch_size}, got {self.accumulation}")
