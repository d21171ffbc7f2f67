"""Limits: their grammar, scopes and merging."""
