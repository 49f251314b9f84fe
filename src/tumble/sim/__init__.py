"""Stepping: one step, and simulations made of many."""
