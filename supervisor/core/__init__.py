"""Who gets notice, until when, and what happens next: pure."""
