"""Changes: the journal that lists them, the events that publish them, and in whose name they are made."""
