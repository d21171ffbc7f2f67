"""Instruments that run something and leave an artifact."""
