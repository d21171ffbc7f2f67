"""The reference tool's figures of a trace, with its arithmetic and omissions; see docs/tracelens-differences.md."""
