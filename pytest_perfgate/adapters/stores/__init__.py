"""Baselines, records and history on disk."""
