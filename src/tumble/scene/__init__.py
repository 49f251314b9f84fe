"""Scenes: materials, shapes, bodies, packings and scene files. No compiled code here."""
