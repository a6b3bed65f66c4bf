"""What jobs are charged for and what they used, as rows: charges of quota leaves, spans and GPU-time."""
