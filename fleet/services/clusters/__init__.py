"""Clusters as the fleet keeps them: joined, changed, detached, judged by their health, discovered again."""
