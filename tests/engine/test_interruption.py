"""Ctrl-C as a wish to stop, in a process of its own: signals are sent as a terminal sends them."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from symformer_jax.engine import interruption

PRELUDE = """
import dataclasses, gc, json, os, signal, threading, time
import numpy as np
from symformer_jax import SymFormerRegressor, conclusion, inference, testing
from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT

model = testing.FixedProposer(["0.7*x0", "1.2*x0**2"])
config = dataclasses.replace(DEFAULT, sources=("closed_forms", "guesses"))
x = np.linspace(1, 4, 30)
y = x**1.7 + 0.1*np.sin(40*x)
press = lambda: os.kill(os.getpid(), signal.SIGINT)

def search(num=1, sources=config, **options):
  return inference.search(model, [(x, y)]*num, guesses=["x0**1.5"], config=sources, **options)

def tell(results):
  told = [(result.status, result.ended_by, len(result.rounds)) for result in results]
  print(json.dumps([told, signal.getsignal(signal.SIGINT) is signal.default_int_handler]))
"""


# Imports take most of the time of these programs: one process has them and becomes each program by a fork.
FORKS = """
import sys

for line in sys.stdin:
  code, out, err = json.loads(line)
  child = os.fork()
  if not child:
    for number, path in ((1, out), (2, err)):
      os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    exec(code)
    break
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def forks():
  with subprocess.Popen([sys.executable, "-c", PRELUDE + FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                        env=os.environ | {"JAX_PLATFORMS": "cpu"}) as process:
    yield process
    process.stdin.close()


@pytest.fixture
def told(forks, tmp_path):
  def run(code):
    """What a program prints as its last line; its exit code and standard error."""
    out, err = tmp_path / "out", tmp_path / "err"
    print(json.dumps([code, str(out), str(err)]), file=forks.stdin, flush=True)
    watch = threading.Timer(200, os.killpg, (forks.pid, signal.SIGKILL))
    watch.start()
    exit_code = forks.stdout.readline()
    watch.cancel()
    lines = out.read_text().splitlines()
    return json.loads(lines[-1]) if lines else None, int(exit_code), err.read_text()

  return run


def test_ctrl_c_in_the_collector_of_garbage_ends_the_turns_with_the_best_so_far(told):
  """Where Python drops an exception: JAX has it call a function of its own."""
  found, code, stderr = told("""
def press_within(phase, info):
  gc.callbacks.remove(press_within)
  press()

def callback(standing):
  gc.callbacks.append(press_within)
  gc.collect()

tell(search(callback=callback))
""")
  assert (found, code) == ([[["ok", "stopped", 1]], True], 0), stderr
  assert "ignored" not in stderr


def test_ctrl_c_of_a_terminal_ends_a_long_turn(told):
  """One turn goes on for as long as nobody ends it."""
  found, code, stderr = told("""
from symformer_jax.sources import guesses

def propose(self, questions, **_):
  threading.Timer(0.3, press).start()
  while True:
    interruption.check()
    time.sleep(0.01)

guesses.Guesses.propose = propose
tell(search())
""")
  assert (found, code) == ([[["ok", "stopped", 1]], True], 0), stderr


def test_ctrl_c_during_the_choice_loses_nothing_and_begins_nothing_more(told):
  found, code, stderr = told("""
choose, batches = conclusion._choose, inference.compilation.dataset_buckets
inference.compilation.dataset_buckets = lambda: (1,)

def choose_slowly(*args, **options):
  press()
  return choose(*args, **options)

conclusion._choose = choose_slowly
tell(search(2))
""")
  assert (found, code) == ([[["ok", "budget", 2], ["failed", "", 0]], True], 0), stderr


@pytest.mark.parametrize("where", ["turn", "choice"])
def test_a_second_ctrl_c_ends_the_call(told, where):
  found, code, stderr = told(f"""
def press_twice(*args, **options):
  press()
  press()

if {where!r} == "choice":
  conclusion._choose = press_twice
try:
  search(callback=press_twice if {where!r} == "turn" else None)
except KeyboardInterrupt:
  tell([])
""")
  assert (found, code) == ([[], True], 0), stderr


def test_ctrl_c_of_one_target_is_of_those_that_follow(told):
  found, code, stderr = told("""
def callback(standing):
  if standing.index == 0:
    press()

reg = SymFormerRegressor(model, config=config, guesses=["x0**1.5"], callback=callback, verbose=False)
tell([each.result_ for each in reg.fit(x[:, None], np.stack([y, y + 1], axis=1)).estimators_])
""")
  assert (found, code) == ([[["ok", "stopped", 1], ["ok", "stopped", 1]], True], 0), stderr


def test_a_handler_that_a_program_has_set_stays():
  def handler(number, frame):
    seen.append(number)

  seen, before = [], signal.signal(signal.SIGINT, lambda *_: None)
  try:
    signal.signal(signal.SIGINT, handler)
    with interruption.noting_ctrl_c() as ctrl_c:
      signal.raise_signal(signal.SIGINT)
    assert seen == [signal.SIGINT] and not ctrl_c.is_wished() and signal.getsignal(signal.SIGINT) is handler
  finally:
    signal.signal(signal.SIGINT, before)


def test_what_is_raised_inside_leaves_the_handler_as_it_was():
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  try:
    with pytest.raises(LookupError), interruption.noting_ctrl_c() as outer, interruption.noting_ctrl_c() as inner:
      assert inner is outer and not inner.is_wished()
      signal.raise_signal(signal.SIGINT)
      assert inner.is_wished()
      raise LookupError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
  finally:
    signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone():
  seen = []

  def run():
    with interruption.noting_ctrl_c() as ctrl_c:
      seen.append((ctrl_c.is_wished(), signal.getsignal(signal.SIGINT)))

  before = signal.getsignal(signal.SIGINT)
  thread = threading.Thread(target=run)
  thread.start()
  thread.join()
  assert seen == [(False, before)]
