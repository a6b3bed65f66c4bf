"""Manifests in, over REST: applied, deleted, previewed; and one action on many jobs."""
