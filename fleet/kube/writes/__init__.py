"""Writes: patches, field ownership of server-side apply, and checks for unknown fields."""
