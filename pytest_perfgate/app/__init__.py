"""What perfgate does: one use case a file; sees ports and core only."""
