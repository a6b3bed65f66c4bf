"""State machines of jobs, works and shares: states, events, and the services that may cause each event. No I/O."""
