"""The fleet as a Kubernetes API server: what kubectl and client libraries talk to. A door: parse, authorise, call, render."""
