"""Database helpers that know nothing of what the rows mean."""
