"""Dispatch: brings what was decided to the member clusters, object by object, idempotently."""
