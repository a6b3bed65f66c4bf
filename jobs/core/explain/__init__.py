"""Explanations for people: the timeline of a job, and the changes that would let it start. Pure."""
