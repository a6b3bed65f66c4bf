"""Rows follow the model of the life, and nothing of the product writes a state past it."""

import ast
from itertools import product
from pathlib import Path

import pytest
from django.utils import timezone

import jobs
from jobs.core.life.jobs import JOB, JobEvent, JobState
from jobs.core.life.machine import IllegalTransition
from jobs.core.life.shares import SHARE
from jobs.core.life.works import WORK, WorkEvent, WorkState
from jobs.models import Job, Work
from jobs.services.lifecycle import transitions
from tests.support import books
from tests.support.world import pytorch_job

ROOT = Path(jobs.__file__).parent
PURE = {"core", "kinds", "runtime"}
"""Packages without rows."""
MODULES = [path for path in ROOT.rglob("*.py") if not {*PURE, "migrations"} & set(path.parts)]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("services.")


@pytest.mark.django_db
def test_rows_of_jobs_move_exactly_where_the_table_says():
    books.apply(pytorch_job("llama"))
    for state, event in product(JobState, JobEvent):
        Job.objects.update(state=state)
        moved = transitions.move_jobs(Job.objects.all(), event)
        assert moved == JOB.allows(state, event)
        assert Job.objects.get().state == (JOB.target(event) if moved else state), (state, event)


@pytest.mark.django_db
def test_rows_of_works_move_exactly_where_the_table_says():
    now = timezone.now()
    books.apply(pytorch_job("llama"))
    cluster, job = books.a_cluster(), Job.objects.get()
    known = {"api_version": job.api_version, "kind": job.kind, "namespace": "default", "name": "llama"}
    Work.objects.create(job_uid=job.uid, attempt=1, cluster=cluster, due_at=now, created_at=now, **known)
    for state, event in product(WorkState, WorkEvent):
        Work.objects.update(state=state)
        moved = transitions.move_works(Work.objects.all(), event)
        assert moved == WORK.allows(state, event)
        assert Work.objects.get().state == (WORK.target(event) if moved else state), (state, event)


def test_a_job_in_hand_enters_no_state_that_the_table_does_not_allow():
    job = Job(state="Succeeded")
    with pytest.raises(IllegalTransition):
        transitions.enter(job, JobEvent.PLACED)
    assert job.state == "Succeeded"


def writes(tree: ast.AST) -> list[int]:
    """Lines that write a state: an assignment to ``.state``, or ``state=`` in what creates or updates rows."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
            lines += [node.lineno for each in flat if _is_state(each) and not _from_table(node.value)]
        elif isinstance(node, ast.Call) and _called(node) in (
            "update",
            "create",
            "bulk_create",
            "Job",
            "Work",
            "setattr",
            "replace",
            "Share",
        ):
            given = [keyword for keyword in node.keywords if keyword.arg == "state"]
            lines += [node.lineno for keyword in given if not _from_table(keyword.value)]
        elif isinstance(node, ast.Dict):
            keys = zip(node.keys, node.values, strict=True)
            values = [value for key, value in keys if isinstance(key, ast.Constant) and key.value == "state"]
            lines += [node.lineno for value in values if _names_a_state(value) and not _from_table(value)]
    return lines


def _is_state(target: ast.AST) -> bool:
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return isinstance(target, ast.Attribute) and target.attr == "state" and not is_own


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _from_table(value: ast.AST | None) -> bool:
    """``JOB.target(...)``, ``JOB.after(...)`` or those of works."""
    is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    return is_call and value.func.attr in ("target", "after") and getattr(value.func.value, "id", "") in ("JOB", "WORK")


def _names_a_state(value: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr.isupper() for node in ast.walk(value))


def test_no_product_code_writes_a_state_past_the_table():
    found = {module_of(path): writes(ast.parse(path.read_text())) for path in MODULES}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "job.state = Job.State.QUEUED",
        "job.state, job.reason = Job.State.QUEUED, None",
        "rows.update(state='Gone')",
        "Work.objects.create(state=State.GONE)",
        "defaults = {'state': Work.State.GONE}",
        "replace(share, state=ShareState.LOST)",
    ],
)
def test_the_check_sees_a_write_past_the_table(text):
    assert writes(ast.parse(text)) == [1]


def test_each_event_is_caused_by_the_modules_that_the_table_names():
    causes: dict[str, set[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in (
                "JobEvent",
                "WorkEvent",
                "ShareEvent",
            ):
                causes.setdefault(f"{node.value.id}.{node.attr}", set()).add(module_of(path))
    named = {f"JobEvent.{event.name}": set(rule.writers) for event, rule in JOB.transitions.items()}
    named |= {f"WorkEvent.{event.name}": set(rule.writers) for event, rule in WORK.transitions.items()}
    named |= {f"ShareEvent.{event.name}": set(rule.writers) for event, rule in SHARE.transitions.items()}
    assert causes == named
