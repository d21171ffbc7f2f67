"""Artifacts into values."""
