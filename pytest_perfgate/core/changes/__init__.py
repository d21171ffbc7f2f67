"""What a change does to its own tests, limits and settings."""
