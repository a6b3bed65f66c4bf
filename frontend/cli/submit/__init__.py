"""``convoy submit``: command lines as arena has them, turned into manifests of the fleet's kinds."""
