"""Parts of the decoding by themselves: which tokens may be chosen, noise under a condition, drawn constants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.decoding import beam, loop, sampling, strategies
from symformer_jax.decoding.strategies import Beam, Greedy, Nucleus, StochasticBeam, Temperature, TopK
from symformer_jax.language.vocabulary import Vocabulary

PROBABILITIES = np.array([0.15, 0.5, 0.05, 0.3])


def chosen(strategy, noise=None):
  """Where no noise is given: the tokens that some noise makes the choice."""
  logits = jnp.log(PROBABILITIES)
  if noise is not None:
    return int(strategy.choose(jnp.asarray(noise)[None], logits[None])[0])
  found = strategy.choose(1000 * jnp.eye(4), jnp.tile(logits, (4, 1)))
  return {token for token in range(4) if found[token] == token}


@pytest.mark.parametrize(("strategy", "tokens"), [
  (Greedy(), {1}), (TopK(1), {1}), (TopK(2), {1, 3}), (TopK(3, temperature=9.0), {0, 1, 3}), (TopK(9), {0, 1, 2, 3}),
  (Temperature(), {0, 1, 2, 3}), (Nucleus(0.01), {1}), (Nucleus(0.49), {1}), (Nucleus(0.51), {1, 3}),
  (Nucleus(0.79), {1, 3}), (Nucleus(0.81), {0, 1, 3}), (Nucleus(0.96), {0, 1, 2, 3}),
  (Nucleus(0.65, temperature=2.0), {1, 3}), (Nucleus(0.68, temperature=2.0), {0, 1, 3}),  # of roots: .67 are the two
  (Nucleus(0.85, temperature=0.5), {1, 3}), (Nucleus(0.65, temperature=0.5), {1})])  # of squares: .69 and .93
def test_which_tokens_may_be_chosen(strategy, tokens):
  assert chosen(strategy) == tokens


@pytest.mark.parametrize("make", [Temperature, lambda t: TopK(4, t), lambda t: Nucleus(1.0, t)])
@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_noise_is_added_to_what_the_temperature_divides(make, temperature, rng):
  for noise in rng.gumbel(size=(30, 4)):
    expected = np.argmax(np.log(PROBABILITIES) / temperature + noise)
    assert chosen(make(temperature), noise) == expected


@pytest.mark.parametrize("strategy", [Greedy(), Temperature(0.7), TopK(2, 0.7), TopK(1), Nucleus(0.6, 0.7)])
def test_each_row_is_chosen_by_itself(strategy, rng):
  noise, logits = (jnp.asarray(a, jnp.float32) for a in (rng.gumbel(size=(9, 5)), 3 * rng.normal(size=(9, 5))))
  alone = [int(strategy.choose(noise[i : i + 1], logits[i : i + 1])[0]) for i in range(9)]
  assert strategy.choose(noise, logits).tolist() == alone and len(set(alone)) > 1


def test_what_a_damaged_network_gives_is_bounded():
  """Infinite logits have no softmax, and noise is lost beside larger ones."""
  found = loop._finite(jnp.array([jnp.nan, jnp.inf, -jnp.inf, 2.5, -3e38]))
  np.testing.assert_allclose(found, [0, 1e30, -1e30, 2.5, -1e30], rtol=1e-6)


def test_strategies_have_what_is_given_to_them_by_name():
  made = {name: strategies.make_strategy(name, top_k=7, temperature=1.7) for name in strategies.STRATEGIES}
  assert made == {"top_k": TopK(7, 1.7), "temperature": Temperature(1.7), "nucleus": Nucleus(0.95, 1.7),
                  "greedy": Greedy(), "beam": Beam(), "distinct": StochasticBeam(1.7)}
  # As in SymFormer, sec. 4.
  assert strategies.make_strategy("top_k") == TopK() == TopK(20, 1.0)
  assert Temperature() == Temperature(1.0) and StochasticBeam() == StochasticBeam(1.0)


def test_noise_is_conditioned_on_its_largest(rng):
  perturbed, largest = rng.normal(size=(3, 5)) * 3, np.array([-1.0, 2.0, 0.5])
  perturbed[1, 2] = -np.inf
  found = np.asarray(beam._condition(jnp.asarray(perturbed), jnp.asarray(largest)))
  highest = perturbed.max(axis=1, keepdims=True)
  # Kool et al. (2019), eq. 21.
  expected = -np.log(np.exp(-largest[:, None]) - np.exp(-highest) + np.exp(-perturbed))
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(found.max(axis=1), largest, rtol=1e-6)
  assert np.all(np.argsort(found, axis=1) == np.argsort(perturbed, axis=1))


def test_constants_are_drawn_where_they_stand_and_a_key_fixes_them():
  vocab = Vocabulary(2)
  ids = np.array([[vocab.first_constant_id, vocab.ids["+"], vocab.first_variable_id]] * 400)
  found, again, other = (sampling._draw_constants(ids, jax.random.key(seed), vocab) for seed in (0, 0, 1))
  assert np.array_equal(found, again) and not np.array_equal(found, other)
  assert not found[:, 1:].any() and len(set(found[:, 0])) == 400 and 0.4 < np.mean(found[:, 0] > 0) < 0.6
