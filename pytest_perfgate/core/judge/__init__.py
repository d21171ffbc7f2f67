"""Judges a measurement against limits, a baseline and a revision."""
