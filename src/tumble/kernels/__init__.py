"""Scalar formulas, written once. Floats and tuples in and out; backends loop over them."""
