"""The objects that the Kubernetes door shows beside jobs and queues: clusters, nodes, pods, metrics, events."""
