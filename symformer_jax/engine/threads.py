"""Linear algebra on the host by one thread while a search runs.

A search asks NumPy and SciPy for thousands of small decompositions. Several threads gain little on such matrices, and
those of BLAS wait for each other by spinning: where other processes want the cores as well, a search takes several
times as long (docs/results/engine.md, "Threads").
"""

from collections.abc import Iterator
import contextlib
import threading

import threadpoolctl


class _OneThread:
  """The limit, which belongs to the process.

  A number of threads that one thread has lowered no other can raise again (OpenBLAS), so each lifts the limit when its
  search ends: searches in others then go on with more.
  """

  def __init__(self) -> None:
    self._lock = threading.Lock()
    self._num_inside = 0

  @contextlib.contextmanager
  def __call__(self) -> Iterator[None]:
    with self._lock:
      limits = threadpoolctl.threadpool_limits(limits=1, user_api="blas")
      if not self._num_inside:
        self._before = limits  # the others see the limit itself
      self._num_inside += 1
    try:
      yield
    finally:
      with self._lock:
        self._num_inside -= 1
        self._before.restore_original_limits()


one_blas_thread = _OneThread()
