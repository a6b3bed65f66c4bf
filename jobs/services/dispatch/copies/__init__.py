"""What is sent to a member for an attempt: the manifest of the copy, with its overrides, ranks, devices, state and size."""
