"""Analyses of traces of many kernels: timeline, tree, operators, ranks, comparison, advice."""
