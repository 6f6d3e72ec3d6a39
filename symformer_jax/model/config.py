"""The shape of a network: everything that decides its parameters, frozen and hashable (static under jit)."""

import dataclasses

from symformer_jax.language.vocabulary import Vocabulary

# Far above what anybody trains. Beyond it a mistyped or hostile config takes minutes and gigabytes before it fails.
MAX_LAYERS, MAX_SIZE = 256, 1 << 16
FEATURES = ("raw", "bits", "scaled", "columns")
NORMS = ("post", "pre", "full")


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
  """Set encoder (SymFormer, sec. 3.1 and table of hyperparameters).

  Attributes:
    width: E of the encoder.
    num_heads, head_dim: attention shape. The paper's 95 M parameters need head_dim = width = 384.
    ff_dim: inner width of the feed-forward layers.
    num_layers: induced set attention blocks.
    num_inducing: inducing points of each block.
    num_seeds: M, seed vectors of the final pooling.
    features: how points enter: `raw` floats (paper), IEEE-754 `bits`, `scaled` floats, or `columns`, which are scaled
      over more decades and tell which columns the table has.
  """

  width: int = 384
  num_heads: int = 12
  head_dim: int = 384
  ff_dim: int = 1536
  num_layers: int = 4
  num_inducing: int = 64
  num_seeds: int = 32
  features: str = "raw"


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
  """Autoregressive decoder with a classification and a regression head.

  Attributes:
    width: E of the decoder; half of it holds the symbol embedding, half the projected constant.
    num_heads, head_dim, ff_dim, num_layers: as in the encoder; the paper's 576 = 12 x 48.
    max_length: longest sequence with its start token, so L = max_length positions are trained.
    regression_hidden: width of the two hidden layers of the regression head.
  """

  width: int = 576
  num_heads: int = 12
  head_dim: int = 48
  ff_dim: int = 2048
  num_layers: int = 4
  max_length: int = 52
  regression_hidden: int = 64


@dataclasses.dataclass(frozen=True)
class ModelConfig:
  """One network.

  Attributes:
    vocabulary: tokens; its encoding decides whether the regression head ends in tanh (mantissas) or not.
    norm: `post` (paper), `pre`, or `full`: as `pre`, and what the encoder attends to is normalised too. Without that
      its sums grow from block to block, past what bfloat16 trains with (docs/results/wide.md).
    activation: `relu` (paper) or `gelu`.
    dropout: rate after each encoder block and decoder sublayer.
  """

  vocabulary: Vocabulary = Vocabulary()
  encoder: EncoderConfig = EncoderConfig()
  decoder: DecoderConfig = DecoderConfig()
  norm: str = "post"
  activation: str = "relu"
  dropout: float = 0.1

  def __post_init__(self) -> None:
    _check_sizes("encoder", self.encoder)
    _check_sizes("decoder", self.decoder)
    if not 0 <= self.dropout < 1:
      raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout}")
    if self.vocabulary.has_requested:
      raise ValueError("vocabulary.has_requested must be False: no network knows operators on request")
    if self.vocabulary.num_variables > MAX_SIZE:
      raise ValueError(f"a network knows at most {MAX_SIZE} variables, got {self.vocabulary.num_variables}")
    if self.encoder.features not in FEATURES:
      raise ValueError(f"unknown point features {self.encoder.features!r}: expected one of {', '.join(FEATURES)}")
    if self.norm not in NORMS:
      raise ValueError(f"unknown norm {self.norm!r}: expected one of {', '.join(NORMS)}")
    if self.activation not in ("relu", "gelu"):
      raise ValueError(f"unknown activation {self.activation!r}: expected 'relu' or 'gelu'")
    if self.decoder.width % 2:
      raise ValueError(f"decoder width must be even, got {self.decoder.width}")


def _check_sizes(name: str, part: EncoderConfig | DecoderConfig) -> None:
  for field in dataclasses.fields(part):
    value, most = getattr(part, field.name), MAX_LAYERS if field.name == "num_layers" else MAX_SIZE
    if field.type is int and not 1 <= value <= most:
      raise ValueError(f"{name}.{field.name} must lie between 1 and {most}, got {value}")
