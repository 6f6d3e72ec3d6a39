"""Shape letters, and the frozen pytrees that cross rooms.

Letters, used in every docstring: B batch, N points, D variables, L tokens, V vocabulary, E width, H heads,
M latents, K candidates, R restarts, C constant slots. In a points array [N, D+1] the last column is y.
"""

import jax
import numpy as np

# On the device or the host: what a compiled function takes, and what a fit that ran in threads returns.
Array = jax.Array | np.ndarray
