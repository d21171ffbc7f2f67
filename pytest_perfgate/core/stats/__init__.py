"""Honest statistics: exact where an exact rule exists, seeds passed in."""
