"""Instruments that turn a call into samples."""
