"""Auditing: the lines of the audit, their chain, where they are handed on to, and refused attempts that are only counted."""
