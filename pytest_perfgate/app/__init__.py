"""The use cases of perfgate, one in each module; they import ports and core only."""
