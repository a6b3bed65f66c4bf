"""How many pods a running job may have, and what a change of their number does to the capacity it holds."""
