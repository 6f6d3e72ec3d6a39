"""Choices of `small` compared one at a time: short runs on equal data, each with one thing changed.

Command, for each name of STUDIES:
  python -m launch.train --config=configs/studies.py:bits --workdir=DIR/bits --config.data.dirs="('DATA',)"
Cost: 61 thousand examples each, 5 minutes on one CPU core.
Result: docs/results/studies.md.
"""

from ml_collections import ConfigDict

from configs import small
from symformer_jax.errors import InputError

# Name -> what is changed. The shapes `wide_encoder` and `wide_decoder` cost what `control` costs an example.
STUDIES = {
  "control": {},
  "raw": {"model.encoder.features": "raw"},
  "bits": {"model.encoder.features": "bits"},
  "post_norm": {"model.norm": "post"},
  "deep_encoder": {"model.encoder.num_layers": 4},
  "wide_encoder": {
    "model.encoder.width": 88, "model.encoder.head_dim": 22, "model.encoder.ff_dim": 352,
    "model.decoder.width": 80, "model.decoder.head_dim": 20, "model.decoder.ff_dim": 320},
  "wide_decoder": {
    "model.encoder.width": 40, "model.encoder.head_dim": 10, "model.encoder.ff_dim": 160,
    "model.decoder.width": 156, "model.decoder.head_dim": 39, "model.decoder.ff_dim": 624},
  "label_smoothing": {"loss.label_smoothing": 0.1},
  "no_target_noise": {"points.noise_probability": 0.0},
  "no_resampling": {"points.resample_probability": 0.0},
  "points_32": {"points.num_points": 32},
}


def get_config(name: str = "control") -> ConfigDict:
  """Differences from `small`: 480 steps, and the study's own."""
  if name not in STUDIES:
    raise InputError(f"unknown study {name!r}: expected one of {', '.join(STUDIES)}")
  config = small.get_config()
  config.optimizer.update(warmup_steps=80, decay_steps=240)
  config.decoding.every = 0
  config.update(num_steps=480, eval_every=80, checkpoint_every=240, num_eval_batches=16, seed=3)
  config.update_from_flattened_dict(STUDIES[name])
  return config
