"""A small data set on disk and a configuration that trains on it in seconds."""

import dataclasses

import numpy as np
import pytest

from configs import tiny
from symformer_jax import configuration
from symformer_jax.data import records
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.training.config import TrainConfig

FORMS = ("{a}*x + {b}", "sin({a}*x)", "x**2 + {b}", "{a}*exp(x) + x", "1/(x**2 + {c})", "x**3", "cos(x)*x",
         "sqrt(x**2)")


def equations(count, rng):
  """`count` different equations as a block."""
  programs = []
  for i in range(count):
    a, b, c = rng.uniform(-5, 5), rng.uniform(-5, 5), rng.uniform(0.5, 5)
    text = FORMS[i % len(FORMS)].format(a=round(a, 3), b=round(b, 3), c=round(c, 3))
    node = expression.sort_operands(parser.parse(text, ["x"]))
    programs.append((*expression.encode(node, Vocabulary(1)), np.array([[-5.0, 5.0]])))
  return records.pack_equations(programs)


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
  rng = np.random.default_rng(0)
  root = tmp_path_factory.mktemp("data")
  folder = root / "symformer_equations" / "univariate" / "1.0.0"
  folder.mkdir(parents=True)
  blocks = [equations(256, rng) for _ in range(4)]
  records.write_shard(folder / "symformer_equations-train.tfrecord-00000-of-00001", blocks)
  records.write_shard(folder / "symformer_equations-validation.tfrecord-00000-of-00001", [equations(256, rng)])
  return root


def quick(built, data_dir):
  """The configuration on this data, quick to compile: sequences of one length, no new mantissas, no decoding."""
  return dataclasses.replace(
    built, data=dataclasses.replace(built.data, dirs=(str(data_dir),), length_buckets=(15,)),
    points=dataclasses.replace(built.points, resample_probability=0.0),
    decoding=dataclasses.replace(built.decoding, every=0))


@pytest.fixture(scope="session")
def config(data_dir):
  built = configuration.build(TrainConfig, tiny.get_config().to_dict())
  return quick(built, data_dir)
