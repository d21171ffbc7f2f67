"""Profilers, which run something and leave an artifact."""
