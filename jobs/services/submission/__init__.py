"""Submission: manifests in, previews of what they would do, and the actions a person takes on a job."""
