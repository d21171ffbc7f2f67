"""Everything outside of perfgate: one folder for each family of adapters, which do not import each other."""
