"""The Job controller for batch/v1."""
