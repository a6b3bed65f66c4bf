"""Signing in and out: sessions, bearer tokens, one-time links, and their audit."""
