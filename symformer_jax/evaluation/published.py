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

# Table 2, by family: (R2, seconds) of the bivariate SymFormer, asked all rows.
BIVARIATE: dict[str, tuple[float, float]] = {
  "Nguyen": (0.99996, 139.46), "R": (0.99985, 418.67), "Livermore": (0.99992, 170.00), "Koza": (1.00000, 81.50),
  "Keijzer": (0.99884, 250.66), "Constant": (0.99997, 188.50),
}

# Table 3, by variant of the suite `ablation`: median (R2, relative error) of 256 equations; "gradient" is the
# paper's local gradient search, and there is no damped least squares in it.
ABLATION: dict[str, tuple[float, float]] = {
  "no constants + BFGS": (0.9929, 0.1547), "base": (0.9979, 0.0669), "base + gradient": (1.0000, 0.0089),
  "extended": (0.9995, 0.0288), "extended + BFGS init": (0.9998, 0.0303), "extended + gradient": (1.0000, 0.0010),
}

# Figure 2 and the supplement's figures: what the paper's models answered, by name in the list `examples`.
EXAMPLES: dict[str, str] = {
  "pictured-1": "sin(abs(atan(x)))", "pictured-2": "3*log(x) + 7.9", "pictured-3": "-7.7 - x + x*cos(tan(x))",
  "pictured-4": "asin(0.2*cos(4*x))", "pictured-5": "0.002*x**3 - 61.2*x*exp(-x)",
  "pictured-6": "x**2 + cos(x) + atan(x)", "pictured-7": "x - x**3 + sin(y)/y",
  "pictured-8": "cos(0.004 + 0.78*cot(x))", "pictured-9": "-1.4*sqrt(1.42 - 2e-4*x)*x*sin(37 - x)",
  "pictured-10": "cos(x)**3 - 1/sqrt(1/x)", "pictured-11": "x + 3.6/x*sqrt(0.97 + 0.004*x)",
  "pictured-12": "cos(x - log(x))**2", "pictured-13": "atan(0.29*atan(2*x**2))",
  "pictured-14": "-1 - 0.5*y**2 - 0.5*x*y", "pictured-15": "y**0.0625",
  "pictured-16": "-1.14 - 0.94*y + x*y - y*sin(x)",
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
