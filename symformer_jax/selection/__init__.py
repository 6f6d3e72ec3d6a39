"""From refined candidates to the answer: Pareto front, criteria, rescaling."""
