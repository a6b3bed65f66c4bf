"""Runs the product's processes on one machine: starts, watches, restarts and stops them.

It knows commands, pipes and probes; it imports nothing of the product, so it stays small and cannot share its faults.
"""
