"""Reading artifacts into values."""
