"""Division of one job over several clusters: replicas per cluster, and where each share goes. Pure."""
