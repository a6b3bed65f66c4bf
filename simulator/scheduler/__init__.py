"""The gang-aware scheduler of a simulated member, with Koordinator reservations."""
