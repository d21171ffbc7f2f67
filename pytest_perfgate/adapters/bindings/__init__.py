"""Thin wrappers that families share."""
