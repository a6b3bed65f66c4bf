"""What runs beside the training process, and what it says: pure."""
