"""The demo fleet, its manifests, and a training script that really trains."""
