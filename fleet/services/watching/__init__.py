"""Watching: which watcher process watches which member, and how what a member shows becomes rows."""
