"""What a trace of many kernels says: timeline, tree, operators, ranks, comparison, advice."""
