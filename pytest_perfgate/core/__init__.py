"""What perfgate concludes: pure functions of values, without files, clock, processes, network or randomness."""
