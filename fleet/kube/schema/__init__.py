"""Schemas of kinds: parsing, checking, validation of objects, defaults; and the schemas of the built-in kinds."""
