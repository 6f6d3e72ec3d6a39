"""SymFormer-JAX: symbolic regression with a pre-trained transformer and on-device refinement."""
