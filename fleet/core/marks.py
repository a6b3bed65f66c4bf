"""The labels by which Convoy knows again what it made in a member."""

JOB_UID = "convoy.dev/job-uid"
ATTEMPT = "convoy.dev/attempt"
"""The fencing token: a copy whose number is not the job's latest is removed before it is counted."""
FLEET = "convoy.dev/fleet"
"""Which fleet made it: what another fleet made in the same member is none of our business."""
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "convoy"
