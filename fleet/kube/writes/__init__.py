"""Writes: patches, field ownership of server-side apply, and unknown fields."""
