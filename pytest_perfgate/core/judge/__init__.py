"""A measurement against limits, a baseline and a revision."""
