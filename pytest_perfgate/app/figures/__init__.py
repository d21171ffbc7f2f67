"""Figures beside the time of a call."""
