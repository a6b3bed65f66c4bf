"""What a cycle works with: the snapshot, classes of alike gangs, the quota pass, the placement cache, the plan. Pure."""
