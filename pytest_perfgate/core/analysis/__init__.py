"""Analyses of artifacts: intervals, overlap, rooflines, trees, machine code."""
