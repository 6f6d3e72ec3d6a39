"""From latents to candidate formulas."""
