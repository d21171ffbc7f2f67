"""What artifacts say: intervals, overlap, rooflines, trees, machine code."""
