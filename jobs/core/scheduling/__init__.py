"""The scheduling cycle: which gangs are considered, in which order, what is decided, and backfill. Pure."""
