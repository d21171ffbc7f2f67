"""Renders reports as text."""
