"""A model of 0.2 million parameters learns 32 equations by heart: greedy decoding writes each, token for token."""

import dataclasses
import json

import numpy as np
import pytest

from symformer_jax.data import records
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.training import loop
from symformer_jax.training.config import MeshConfig

FORMS = ("x + {k}", "x**2 + {k}", "x**3 - {k}", "exp(x) + {k}", "{k}.37*x", "0.0{k}*x**2 + x", "{k}1.5*cos(x)",
         "x**2 - {k}40.2")
NUM_STEPS = 400


@pytest.mark.slow
def test_greedy_decoding_is_exact(config, tmp_path):
  texts = [form.format(k=k) for form in FORMS for k in range(2, 6)]
  programs = [(*expression.encode(expression.sort_operands(parser.parse(t, ["x"])), Vocabulary(1)),
               np.array([[-5.0, 5.0]])) for t in texts]
  assert len(set(texts)) == 32
  folder = records.split_folder(tmp_path, "univariate")
  folder.mkdir(parents=True)
  for split in records.SPLITS:
    records.write_shard(folder / records.shard_name(split, 0, 1), [records.pack_equations(programs)])
  model = dataclasses.replace(
    config.model, encoder=dataclasses.replace(config.model.encoder, width=64, num_seeds=8, num_inducing=8, ff_dim=128),
    decoder=dataclasses.replace(config.model.decoder, width=64, ff_dim=128))
  config = dataclasses.replace(
    config, model=model, mesh=MeshConfig(data=1), num_steps=NUM_STEPS, log_every=100, eval_every=10**6,
    checkpoint_every=10**6, num_eval_batches=1,
    data=dataclasses.replace(config.data, dirs=(str(tmp_path),), batch_size=32, length_buckets=(12,)),
    points=dataclasses.replace(
      config.points, num_points=32, min_points=None, noise_probability=0.0, subbox_probability=0.0),
    optimizer=dataclasses.replace(config.optimizer, peak=4e-3, warmup_steps=20, decay_steps=200),
    decoding=dataclasses.replace(config.decoding, every=NUM_STEPS, num_equations=32, num_samples=1))
  run = loop.set_up(config, tmp_path / "run")
  assert loop.train(run)
  loop.close(run)
  lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
  decoded, = (line for line in lines if line["kind"] == "decoding")
  assert decoded["greedy_exact"] == 1.0, [line for line in lines if line["kind"] == "train"][-1]
