"""What the flags of launch.evaluate name; the modules that they belong to take seconds to import."""

SUITES = ("paper", "official", "in_domain", "out_of_domain", "ablation", "examples", "laws", "samples", "noise",
          "sources", "anytime", "points", "ranges", "real")
LISTS = ("paper", "reference", "official", "examples", "laws", "feynman")
PROBLEM_COLUMNS = ("family", "name", "n_vars", "expression", "ranges")
PEERS = ("operon", "gplearn", "rils_rols", "pysr", "file")
PREDICTION_COLUMNS = ("name", "expression")
# The generator's bound on values (SymFormer, sec. 3.3).
LARGEST_VALUE = 1e7
