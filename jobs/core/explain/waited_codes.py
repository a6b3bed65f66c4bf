"""Why a job waited, by the codes of its reasons: kept with the job as they change, and cut into its slices of waiting. Pure.

`timeline` knows who had the job in hand; this knows the reason within. Jobs from before the codes were kept have none.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from jobs.core.explain.timeline import Owner, Run, Slice
from jobs.core.reasons import Code

_KEPT = 100
"""Codes kept with a job: the latest."""
_FIRST: Mapping[Owner, Code] = {
    Owner.QUEUE: Code.WAITING_FOR_SCHEDULER,
    Owner.QUOTA: Code.RECLAIMED,
    Owner.SUSPENDED: Code.SUSPENDED,
}
"""Of a stretch of waiting, until the scheduler has said why."""


def enter_code(
    stored: Sequence[Sequence[str]] | None, before: Mapping[str, Any] | None, reason: Mapping[str, Any], now: datetime
) -> list[list[str]]:
    """The codes of a job, as they are kept with it, once its reason is this one; ``before``: what its reason was."""
    codes, code = [list(each) for each in stored or ()], str(reason.get("code", ""))
    if codes and codes[-1][0] == code == (before or {}).get("code"):
        return codes
    return [*codes, [code, now.isoformat()]][-_KEPT:]


def split(
    waiting: Slice, stored: Sequence[Sequence[str]] | None, runs: Sequence[Run]
) -> Iterator[tuple[str, datetime, datetime]]:
    """(code, begin, end) of what a slice of waiting consists of; a code from before the last attempt does not count."""
    if stored is None:
        yield "", waiting.starts_at, waiting.ends_at
        return
    since = max((run.ended_at for run in runs if run.ended_at and run.ended_at <= waiting.starts_at), default=None)
    code, begin = _FIRST.get(waiting.owner, Code.WAITING_FOR_SCHEDULER).value, waiting.starts_at
    for following, text in stored:
        at = datetime.fromisoformat(text)
        if at >= waiting.ends_at or (since is not None and at < since):
            continue
        if begin < at and following != code:
            yield code, begin, at
            begin = at
        code = following
    yield code, begin, waiting.ends_at
