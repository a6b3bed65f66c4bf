"""exec, attach and port-forward of a simulated member, over WebSocket and SPDY, as a Kubernetes API server speaks them."""
