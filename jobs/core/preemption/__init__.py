"""Preemption: which running gangs make room for a waiting gang that is entitled to it, and what that costs. Pure."""
