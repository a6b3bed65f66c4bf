"""Schemas of kinds: read, checked, and held against objects; those of the built-in kinds."""
