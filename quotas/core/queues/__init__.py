"""Which job of which queue is next, and whether the tree admits it."""
