"""What all REST endpoints share: parsing, permissions, pages, limits, problems, probes."""
