"""The node side of a simulated member: nodes, kubelet, pod processes, devices, logs."""
