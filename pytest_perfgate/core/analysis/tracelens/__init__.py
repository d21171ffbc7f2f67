"""What the reference tool says of a trace, arithmetic and omissions included; see docs/tracelens-differences.md."""
