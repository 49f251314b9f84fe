"""The cone problem as a value: blocks, bias and operator."""
