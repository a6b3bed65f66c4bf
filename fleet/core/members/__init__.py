"""What members are and how they are judged: nodes and pods as observed, capacity, health, names, marks."""
