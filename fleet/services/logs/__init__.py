"""Logs of ended pods: recorded as due with the pod's end, read from the member once, kept within bounds, and shown."""
