"""Checks of what a change does to its own tests, limits and settings."""
