"""Limits and their verdicts."""
