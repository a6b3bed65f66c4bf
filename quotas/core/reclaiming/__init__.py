"""Which running jobs stop so that an entitled one can run: candidates, rights, and the cheapest choice."""
