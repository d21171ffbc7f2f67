"""What perfgate touches: each family in a folder, families do not know each other."""
