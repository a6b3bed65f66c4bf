"""Attributes of quotas as an admin changes them: from the waiting job, through the draft and its preview, to the next cycle."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from fleet.models import Node
from jobs.models import DeletedUse, Job
from jobs.services.scheduling import loop
from jobs.services.scheduling.demand import budgets
from quotas.services import trees
from tests.console.builders import apply, go, open_job, sign_in
from tests.jobs.services.scheduling.builders import WHOLE, job
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.web import served

pytestmark = pytest.mark.django_db(transaction=True)
H100, A10 = f"{GPU}:h100", f"{GPU}:a10"
MODEL = "nvidia.com/gpu.product"
MODELS = {"h100": {MODEL: "NVIDIA-H100-80GB-HBM3"}, "a10": {MODEL: "NVIDIA-A10"}}
BUDGET = '{"nvidia.com/gpu-hours": 8, "per": "month", "when-spent": "Wait"}'


@pytest.fixture
def site(transactional_db: None) -> Iterator[str]:
    """Without members and workers: the scheduling cycles are taken by the test."""
    loop._idle_caches.clear()
    budgets._last.clear()
    with served() as port:
        yield f"http://127.0.0.1:{port}"
    loop._idle_caches.clear()
    budgets._last.clear()


def a_tree(*queues: dict, total: dict[str, int] = WHOLE, **attributes: str) -> None:
    books.a_cluster(gpus=6)
    root = quota("root", total, total, *queues, attributes=attributes)
    trees.apply(manifest(root), by="system", now=timezone.now())


def submitted(*texts: str) -> None:
    """And looked at by the scheduler."""
    books.apply(*texts)
    cycle()


def cycle() -> None:
    budgets.review(timezone.now())
    books.cycle()


def why(page: Page, name: str) -> Locator:
    open_job(page, name)
    return page.get_by_role("region", name="Why it is not running")


def settings_of(page: Page, quota: str) -> Locator:
    go(page, "/quotas")
    page.get_by_role("button", name=f"Actions for {quota}", exact=True).click()
    page.get_by_role("menuitem", name="Settings").click()
    return page.get_by_role("dialog", name=f"Settings of {quota}")


def would(page: Page, what: str) -> Locator:
    return page.get_by_role("region", name="What it would do now").get_by_role("region", name=what)


def has_started(page: Page, name: str) -> None:
    open_job(page, name)
    expect(page.get_by_role("link", name="north").first).to_be_visible()


def flavored() -> None:
    queue = team("vision", 0, 6, namespaces=["default"], attributes={"flavor-order": "h100"})
    queue["max"] |= {H100: 3, A10: 0}
    a_tree(queue, total={**WHOLE, H100: 6, A10: 0}, flavors=json.dumps(MODELS))
    Node.objects.update(labels=MODELS["h100"])
    submitted(job("bert", "vision"))
    submitted(job("llama", "vision"))


def test_it_raises_what_a_queue_may_have_of_a_gpu_model(page, aside):
    aside(flavored)
    sign_in(page)
    reason = why(page, "llama")
    expect(reason).to_contain_text("root/vision is short of 3 nvidia.com/gpu:h100")
    go(page, "/quotas")
    page.get_by_role("group", name="Resources shown").get_by_role("button", name=H100).click()
    page.get_by_role("textbox", name=f"max {H100} of root/vision", exact=True).fill("6")
    expect(would(page, "Would start")).to_contain_text("PyTorchJob default/llama")
    apply(page, 2)
    aside(cycle)
    has_started(page, "llama")


def borrowed() -> None:
    """Two jobs of b use all there is, and one of a waits."""
    a_tree(team("a", 0, 6), team("b", 0, 6))
    submitted(job("old", "b"), job("young", "b"))
    books.sent()
    now = timezone.now()
    Job.objects.filter(name="old").update(state="Running", started_at=now - timedelta(hours=1))
    Job.objects.filter(name="young").update(state="Running", started_at=now)
    submitted(job("mine", "a"))


def test_it_lets_queues_reclaim_their_fair_share(page, aside):
    aside(borrowed)
    sign_in(page)
    expect(why(page, "mine")).to_contain_text("is short of 3 GPUs")
    settings = settings_of(page, "root")
    settings.get_by_label("What queues reclaim from each other").select_option("FairShare")
    settings.get_by_role("button", name="Put into the draft").click()
    expect(would(page, "Would start")).to_contain_text("PyTorchJob default/mine")
    expect(would(page, "Would be preempted")).to_contain_text("makes room for PyTorchJob default/mine")
    apply(page, 2)
    expect(page.locator('[role=row][data-path="root/b"]')).to_contain_text("Borrows 100% by weight")
    aside(cycle)
    expect(why(page, "mine")).to_contain_text("1 job is preempted to make room")
    reason = why(page, "young")
    expect(reason).to_contain_text("Preempted by a rule of its quota tree")
    expect(reason).to_contain_text("root/b borrows a share of 100 % by its weight")


def spent() -> None:
    a_tree(team("vision", 0, 6, namespaces=["default"], attributes={"budget": BUDGET}))
    now = timezone.now()
    used = {"leaf": "root/vision", "gpus": 36_000, "placed_at": now - timedelta(seconds=1), "ended_at": now}
    DeletedUse.objects.create(job=1, number=1, **used)
    submitted(job("llama", "vision"))


def test_it_raises_a_budget_that_is_spent(page, aside):
    aside(spent)
    sign_in(page)
    reason = why(page, "llama")
    expect(reason).to_contain_text("root/vision has used 10.0 of 8 GPU-hours (month); renewed at")
    until = aside(lambda: datetime.fromisoformat(books.job("llama").reason["quota"]["until"]))
    expect(reason).to_contain_text(f"it is renewed at {until:%Y-%m-%d} 00:00:00 UTC")
    settings = settings_of(page, "root/vision")
    settings.get_by_label("Budget", exact=True).fill(BUDGET.replace("8", "40"))
    settings.get_by_role("button", name="Put into the draft").click()
    expect(would(page, "Would start")).to_contain_text("PyTorchJob default/llama")
    apply(page, 2)
    aside(cycle)
    has_started(page, "llama")
