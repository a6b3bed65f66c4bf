"""Dispatch: carries the decisions of the scheduler out in the member clusters, object by object, idempotently."""
