"""The work of an operator as a trace records it: a table by name, one file a family."""
