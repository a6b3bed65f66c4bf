"""What is in use under a tree: the ledger, GPU-time over periods, spent budgets, and what is borrowed."""
