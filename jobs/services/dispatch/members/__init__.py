"""Single steps in a member: objects, namespaces, queues, permissions, reservations, pods. Each may be repeated."""
