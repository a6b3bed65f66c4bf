"""What a person changes of jobs that are in: suspended, resumed, resized, restarted, moved to another queue, deleted."""
