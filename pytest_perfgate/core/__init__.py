"""What perfgate concludes: pure functions of values; no files, clock, process, network or random source."""
