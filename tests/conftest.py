"""Test-wide settings: eight CPU devices, strict shapes, warnings as errors, fixed seeds."""

import builtins
import importlib.metadata
import io
import os
import pathlib
import shutil
import signal
import tempfile

# Before the first import of jax: the sharding tests need several devices, and no test an accelerator.
XLA_FLAGS = [os.environ.get("XLA_FLAGS", ""), "--xla_force_host_platform_device_count=8"]
# Half of the time of tests is compilation, which costs a third less without XLA's newer emitters of fused loops; where
# there are no older ones the flag ends the process.
if importlib.metadata.version("jaxlib").startswith("0.10."):
  XLA_FLAGS.append("--xla_cpu_use_fusion_emitters=false")
# Optimized less, the tests of constants take four fifths, those of products nine tenths of their time.
XLA_FLAGS.append("--xla_backend_optimization_level=1")
os.environ["XLA_FLAGS"] = " ".join(XLA_FLAGS)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Many tests and the processes they start compile the same steps: once a run is enough.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", tempfile.mkdtemp(prefix="symformer-test-cache-"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
# Two processes of tests, and others, share the cores, and threads of BLAS wait for each other by spinning: the tests of
# exact fractions took sixteen times as long (symformer_jax/engine/threads.py).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Figures are drawn to files; a display may not exist.
os.environ.setdefault("MPLBACKEND", "Agg")
# A shell that runs tests in the background, or nohup, ignores these, and processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

import hypothesis  # noqa: E402  (after the environment is set)
import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import threadpoolctl  # noqa: E402

# Where NumPy was loaded before this file was read (a plugin of jaxtyping does so), the environment came too late.
threadpoolctl.threadpool_limits(limits=1, user_api="blas")
jax.config.update("jax_numpy_rank_promotion", "raise")
# The same examples in every run: a failure can be seen again; compilation makes a deadline meaningless.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=False)
hypothesis.settings.load_profile("fixed")

# Tests in these folders and modules run what they compile a few times only: unoptimized they take half of the time,
# searches twice.
UNOPTIMIZED = (
  "commands", "data", "decoding", "evaluation", "model", "pretrained", "training", "test_restarts", "test_snapping",
  "test_evolution")

# Names of tests, as pytest writes them: what stands in their file on its meaning.
THOROUGH = frozenset(
  line for line in (pathlib.Path(__file__).parent / "thorough.txt").read_text(encoding="utf-8").splitlines()
  if not line.startswith("#"))

# Each with its reason; everything else is an error.
ALLOWED_WARNINGS = (
  # Other packages' calls to what their dependencies will drop: not ours to change.
  "ignore::DeprecationWarning:(?!symformer_jax|data_gen|launch|configs)",
  "ignore::PendingDeprecationWarning",
  "ignore::FutureWarning:orbax",
  # Finalizers of other packages' temporary directories and event loops run when the collector pleases.
  "ignore::ResourceWarning",
  # Two workers may write one entry of the compilation cache at a time; what cannot be read is compiled.
  "ignore:Error (reading|writing) persistent compilation cache entry:UserWarning",
  # Forked workers beside JAX's threads: our pools use spawn, but tools under test may fork.
  "ignore:os.fork.. was called:RuntimeWarning",
)


def pytest_configure(config):
  config.addinivalue_line("filterwarnings", "error")
  for line in ALLOWED_WARNINGS:
    config.addinivalue_line("filterwarnings", line)


@pytest.hookimpl(tryfirst=True)  # before what is not asked for is left out
def pytest_collection_modifyitems(items):
  for item in items:
    if item.nodeid in THOROUGH:
      item.add_marker(pytest.mark.thorough)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
  is_unoptimized = item.path.parent.name in UNOPTIMIZED or item.path.stem in UNOPTIMIZED
  jax.config.update("jax_disable_most_optimizations", is_unoptimized)
  # Of the processes that a test starts too: some compare to the bit.
  os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = str(is_unoptimized)


def pytest_unconfigure(config):
  # Workers of pytest-xdist share the folder of the process that started them, which ends last.
  is_worker = hasattr(config, "workerinput")
  if not is_worker and "symformer-test-cache-" in os.environ["JAX_COMPILATION_CACHE_DIR"]:
    shutil.rmtree(os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)


@pytest.fixture(autouse=True)
def fixed_seed():
  """Anything that still draws from NumPy's global state (scikit-learn's checks do) draws the same."""
  np.random.seed(0)


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
  """Programs compiled for one module are let go once they hold much of what a process may map.

  Linux allows a process 65 530 maps (`vm.max_map_count`) and each compiled program takes several: the tests of half
  this suite in one process would pass that, and XLA ends such a process without a word.
  """
  yield
  maps = pathlib.Path("/proc/self/maps")
  if maps.exists() and len(maps.read_bytes().splitlines()) > 12_000:
    jax.clear_caches()


@pytest.fixture
def rng() -> np.random.Generator:
  return np.random.default_rng(0)


@pytest.fixture
def other_locale(monkeypatch):
  """A locale whose files have another encoding, as on some systems: what is read and written must name its own."""
  plain_open = open

  def open_(file, mode="r", *args, encoding=None, **options):
    encoding = encoding or (None if "b" in mode else "utf-16")
    return plain_open(file, mode, *args, encoding=encoding, **options)
  monkeypatch.setattr(builtins, "open", open_)
  monkeypatch.setattr(io, "text_encoding", lambda encoding, *_: encoding or "utf-16")
