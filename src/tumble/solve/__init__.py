"""Solvers of the cone problem, one method a file, and the measures of a solution."""
