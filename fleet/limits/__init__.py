"""What one caller may take of a process: requests a second and at once, watches, streams, attempts to sign in."""
