"""Which action a job allows in which state: one table, used by the services and shown by every door."""

from enum import StrEnum


class Action(StrEnum):
    SUSPEND = "suspend"
    RESUME = "resume"
    DELETE = "delete"


def refusal(action: Action, *, state: str, suspended: bool, finished: bool, deleting: bool) -> str:
    """Why ``action`` is not allowed now, as a sentence; empty when it is."""
    if deleting:
        return "the job is being deleted"
    if action is Action.DELETE:
        return ""
    if finished:
        return f"the job has ended ({state})"
    if action is Action.SUSPEND and suspended:
        return "the job is suspended already"
    if action is Action.RESUME and not suspended:
        return "the job is not suspended"
    return ""
