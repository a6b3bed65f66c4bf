"""Writes an incident as a post-mortem in Markdown: what happened and when, what was lost, and headings for a person to fill in.

Times are in UTC. Names, messages and reasons come from members and tenants: what Markdown would read as markup is escaped.
No I/O.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from jobs.core.failover.incident_story import Affected, Stage, Step, Story, What, steps
from jobs.core.failover.incidents import IncidentKind

_TITLES = {
    IncidentKind.CLUSTER_SILENT: "{cluster} did not answer",
    IncidentKind.CLUSTER_UNHEALTHY: "{cluster} was not ready",
    IncidentKind.CREDENTIALS: "{cluster} refused Convoy's credentials",
    IncidentKind.DISRUPTION: "{cluster} fell silent together with other clusters",
    IncidentKind.CLUSTER_DRAINED: "{cluster} was drained",
    IncidentKind.CLUSTER_TAINTED: "Jobs left {cluster} for a taint",
    IncidentKind.CLUSTER_DETACHED: "{cluster} was detached from the fleet",
    IncidentKind.NODE_LOST: "Nodes of {cluster} were lost",
    IncidentKind.PODS_EVICTED: "{cluster} evicted pods",
    IncidentKind.COPIES_REMOVED: "Copies were deleted in {cluster}",
    IncidentKind.REFUSED: "{cluster} refused a job",
    IncidentKind.JOB_FAILED: "{job} failed",
}
_STAGES = {
    Stage.OPEN: "the cause lasts",
    Stage.RECOVERING: "the cause is over, jobs still wait",
    Stage.OVER: "over",
}
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~&])")


def title(story: Story) -> str:
    """The incident in one line of plain text."""
    job = story.affected[0].title if story.affected else "A job"
    return _TITLES[story.facts.kind].format(cluster=story.facts.cluster, job=job)


def render(story: Story) -> str:
    return "\n".join([*_head(story), *_timeline(story), *_jobs(story), *_left_to_fill_in()]) + "\n"


def _head(story: Story) -> Iterator[str]:
    facts = story.facts
    yield f"# {_plain(title(story))}"
    yield ""
    yield f"- Incident: `{facts.uid}` ({facts.kind}), {_STAGES[story.stage]}"
    yield f"- Began: {_time(facts.began_at)}"
    if facts.over_at:
        yield f"- Cause over: {_time(facts.over_at)}, after {_duration((facts.over_at - facts.began_at).total_seconds())}"
    if facts.nodes:
        yield f"- Nodes: {', '.join(_plain(node) for node in facts.nodes)}"
    if facts.message:
        yield f"- Signal: {_plain(facts.message)}"
    yield f"- Jobs stopped: {len({each.job for each in story.affected})}, of which {len(story.waiting)} wait"
    if story.returned:
        yield f"- Jobs that were to move and continued there: {len({each.job for each in story.returned})}"
    if story.other_jobs:
        yield f"- Jobs of namespaces that you may not see: {story.other_jobs}"
    yield f"- GPU-minutes not used while jobs were stopped: {story.gpu_minutes_stopped:.1f}"
    yield (
        f"- GPU-minutes that the stopped attempts had run: {story.gpu_minutes_repeated:.1f}"
        " (repeated, except for what the programs saved)"
    )
    if story.is_cut:
        yield "- There are more jobs than are listed here; the amounts are those of the listed jobs."
    yield f"- Written: {_time(story.now)}"


def _timeline(story: Story) -> Iterator[str]:
    yield ""
    yield "## Timeline (UTC)"
    yield ""
    for step in steps(story):
        yield f"- {_time(step.at)}: {_sentence(step, story)}"


def _sentence(step: Step, story: Story) -> str:
    job, cluster = _plain(step.title), _plain(step.cluster)
    message = f": {_plain(step.message)}" if step.message else ""
    return {
        What.SIGNAL: f"first failed check of {cluster}",
        What.DECLARED: f"{cluster} is no longer Ready{message}",
        What.LEFT: f"{job} ends attempt {step.attempt} on {cluster}{message}",
        What.PLACED: f"{job} is placed on {cluster} as attempt {step.attempt}",
        What.RUNNING: f"{job} runs again on {cluster}",
        What.RETURNED: f"{job} continues on {cluster} as attempt {step.attempt}, which was still running",
        What.CAUSE_OVER: f"{cluster} is Ready again" if story.facts.reason else "nothing more has followed",
        What.EXPECTED: f"{job} leaves {cluster}, unless it is Ready again before",
    }[step.what]


def _jobs(story: Story) -> Iterator[str]:
    if not story.affected:
        return
    yield ""
    yield "## Jobs"
    yield ""
    yield "| Job | GPUs | Attempt | Had run | Stopped for | Saved step | Now |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for each in story.affected:
        yield (
            f"| {_plain(each.title)} | {each.gpus} | {each.attempt} | {_duration(each.ran_s)} | {_duration(each.stopped_s)}"
            f" | {'' if each.saved_step is None else each.saved_step} | {_now(each)} |"
        )


def _now(each: Affected) -> str:
    if each.waits:
        return f"{each.state}: {_plain(each.why)}" if each.why else each.state
    where = f" on {_plain(each.next_cluster)}" if each.next_cluster else ""
    return f"{each.state}{where}"


def _left_to_fill_in() -> Iterator[str]:
    for heading in ("Why it happened", "What went well, what did not", "What will be done, and its owner"):
        yield ""
        yield f"## {heading}"


def _plain(text: str) -> str:
    """The text on one line, without markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
