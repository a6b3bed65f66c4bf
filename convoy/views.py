"""How values look in a notebook and at a prompt. What a tenant wrote is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Generic, TypeVar

from convoy import types

T = TypeVar("T")
_COLORS = {"Succeeded": "#2b8a3e", "Running": "#1971c2", "Failed": "#c92a2a", "Queued": "#e67700"}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """As HTML."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ("".join(f"<td>{escape(str(value))}</td>" for value in row) for row in rows)
    return (
        f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
    )


def message_of(job: Mapping[str, Any]) -> str:
    """Why it is in its state; empty where nothing is said."""
    reason = job["reason"]
    return str(reason["message"]) if reason else ""


def job_line(job: Mapping[str, Any]) -> str:
    where = f" on {job['cluster']}" if job["cluster"] else ""
    why = message_of(job)
    return f"{job['kind']} {job['namespace']}/{job['name']} is {job['state']}{where}" + (f": {why}" if why else "")


def job_html(job: Mapping[str, Any]) -> str:
    color = _COLORS.get(job["state"], "#495057")
    state = f'<b style="color:{color}">{escape(job["state"])}</b>'
    rest = escape(job_line(job).partition(f" is {job['state']}")[2])
    return f"<code>{escape(job['kind'])} {escape(job['namespace'])}/{escape(job['name'])}</code> is {state}{rest}"


class JobList(list[T], Generic[T]):
    """Jobs, as a table where that can be shown."""

    def _repr_html_(self) -> str:
        values = [getattr(job, "value", {}) for job in self]
        head = ("Kind", "Namespace", "Name", "State", "Cluster", "GPUs", "Why")
        rows = (
            (
                job["kind"], job["namespace"], job["name"], job["state"], job["cluster"] or "", job["gpus"],
                message_of(job),
            )
            for job in values
        )  # fmt: skip
        return table(head, rows)


class Explanation:
    """Why a job waits, or why it is where it is; ``value`` is all that the server says."""

    def __init__(self, value: types.Explanation) -> None:
        self.value = value

    @property
    def message(self) -> str:
        return self.value["message"]

    @property
    def changes(self) -> list[str]:
        """What would let the job start, in sentences."""
        return [str(change["message"]) for change in self.value["changes"]]

    def _rows(self) -> Iterable[tuple[str, str, str]]:
        for cluster in self.value["clusters"]:
            yield cluster["cluster"], "Chosen" if cluster["chosen"] else str(cluster["code"]), cluster["message"]

    def __str__(self) -> str:
        lines = [f"{self.value['name']} is {self.value['state']}: {self.message}"]
        lines += [f"  {cluster}: {verdict}: {why}" for cluster, verdict, why in self._rows()]
        lines += [f"  it would start if you: {change}" for change in self.changes[:5]]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = escape(f"{self.value['name']} is {self.value['state']}: {self.message}")
        changes = "".join(f"<li>{escape(change)}</li>" for change in self.changes[:5])
        return f"<p>{head}</p>{table(('Cluster', 'Verdict', 'Why'), self._rows())}" + (
            f"<ul>{changes}</ul>" if changes else ""
        )


class JobView:
    """A job as it was when it was last read; ``value`` is the whole answer of the server."""

    def __init__(self, value: types.JobDetail) -> None:
        self.value = value

    @property
    def uid(self) -> str:
        return self.value["id"]

    @property
    def name(self) -> str:
        return self.value["name"]

    @property
    def namespace(self) -> str:
        return self.value["namespace"]

    @property
    def kind(self) -> str:
        return self.value["kind"]

    @property
    def state(self) -> str:
        return self.value["state"]

    @property
    def cluster(self) -> str:
        """Empty while it is placed nowhere."""
        return self.value["cluster"] or ""

    @property
    def reason(self) -> str:
        """Why it is in its state, in a sentence."""
        return message_of(self.value)

    def __repr__(self) -> str:
        return f"<{job_line(self.value)}>"

    def _repr_html_(self) -> str:
        return job_html(self.value)
