"""Losses, schedules, the train step and the loop around it."""
