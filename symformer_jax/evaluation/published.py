"""Figures printed in the SymFormer paper (Vastl et al., 2022), to stand beside ours."""

# Table 1, by family: (R2, seconds on 32 CPU threads) of SymFormer, NSRS and DSO.
BENCHMARKS: dict[str, dict[str, tuple[float, float]]] = {
  "Nguyen": {"SymFormer": (0.99998, 47.50), "NSRS": (0.96744, 169.46), "DSO": (0.99297, 140.25)},
  "R": {"SymFormer": (0.99986, 94.33), "NSRS": (1.00000, 95.67), "DSO": (0.97488, 855.33)},
  "Livermore": {"SymFormer": (0.99996, 43.00), "NSRS": (0.88551, 193.09), "DSO": (0.99651, 276.32)},
  "Koza": {"SymFormer": (1.00000, 101.00), "NSRS": (0.99999, 111.50), "DSO": (1.00000, 217.50)},
  "Keijzer": {"SymFormer": (0.99904, 48.67), "NSRS": (0.97392, 255.50), "DSO": (0.95302, 3929.50)},
  "Constant": {"SymFormer": (0.99998, 90.88), "NSRS": (0.88742, 230.38), "DSO": (1.00000, 2816.19)},
}

# Section 4.2: median (R2, relative error) on fresh equations, by number of variables and refinement.
IN_DOMAIN: dict[tuple[int, str], tuple[float, float]] = {
  (1, "refine=none"): (0.9995, 0.0288), (1, "refine=lm"): (1.0000, 0.0010),
  (2, "refine=none"): (0.9996, 0.0389), (2, "refine=lm"): (1.0000, 0.0035),
}

# Supplementary table: median (R2, relative error) of 256 equations by number of samples, without refinement.
SAMPLES: dict[str, tuple[float, float]] = {
  "samples=16": (0.998256, 0.066528), "samples=64": (0.999068, 0.046484), "samples=256": (0.999449, 0.030616),
  "samples=1024": (0.999826, 0.022776), "samples=4096": (0.999942, 0.017102), "samples=16384": (0.999985, 0.008698),
}
