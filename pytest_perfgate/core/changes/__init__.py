"""Reads the source of tests, and compares two versions: limits, marks, fixtures, bodies; `app` makes the checks."""
