"""A scheduler that is told of one change after the other answers like one that was told everything just now."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import CapacityHold
from jobs.core.policies.propagation import PolicySpec
from jobs.core.reasons import Code
from jobs.core.scheduling.scheduler import Scheduler
from quotas.core.accounts.ledger import Charge, Ledger
from tests.jobs.core.builders import GPU, NOON, PLENTY, cluster, gang, mine, node
from tests.quotas.core.builders import quota, tree
from tests.support.examples import examples

LEAVES = [
    quota("a", {GPU: 2}, {GPU: 8}),
    quota("b", {GPU: 4}, {GPU: 6}, attributes={"queue-policy": "Block"}),
    quota("c", {GPU: 0}, {GPU: 14}, attributes={"cluster-affinity": "south"}),
]
TREE = tree({**PLENTY, GPU: 14}, *LEAVES)
NODES = {"north": [8, 4], "south": [6, 2]}


class Play:
    """One scheduler that is told step by step, and the facts to make another one from."""

    def __init__(self) -> None:
        self.kept = Scheduler(Quota(Ledger(TREE), 1))
        self.waiting, self.charges, self.promises = {}, {}, {}
        self.sites = {name: cluster(name, [node(n) for n in nodes]) for name, nodes in NODES.items()}
        for site in self.sites.values():
            self.tell(site)

    def tell(self, site) -> None:
        self.kept.places.set_cluster(site.id, site.member)
        for each in site.nodes:
            self.kept.places.set_node(site.member.name, each)

    def submit(self, leaf: str, workers: int, gpus: int, priority: int) -> None:
        job = len(self.waiting) + len(self.charges) + 1000
        while job in self.waiting or job in self.charges:
            job += 1
        made = mine(f"j{job}", leaf, workers, gpus=gpus, priority=priority, job_id=job) if leaf else None
        made = made or gang(f"j{job}", workers=workers, gpus=gpus, priority=priority, job_id=job)
        self.waiting[job] = made
        self.kept.put(made)

    def end(self, at: int) -> None:
        if self.promises:
            job = sorted(self.promises)[at % len(self.promises)]
            self.kept.places.release(self.promises.pop(job).key)
            if self.charges.pop(job):
                self.kept.release(job)

    def delete(self, at: int) -> None:
        if self.waiting:
            job = sorted(self.waiting)[at % len(self.waiting)]
            del self.waiting[job]
            self.kept.drop(job)

    def node(self, name: str, at: int, used: int) -> None:
        site = self.sites[name]
        changed = replace(site.nodes[at % 2], requested={GPU: used})
        nodes = tuple(changed if each.name == changed.name else each for each in site.nodes)
        self.sites[name] = replace(site, nodes=nodes)
        self.kept.places.set_node(name, changed)

    def cordon(self, name: str) -> None:
        site = self.sites[name]
        member = replace(site.member, cordoned=not site.member.cordoned)
        self.sites[name] = replace(site, member=member)
        self.kept.places.set_cluster(site.id, member)

    def fresh(self) -> Scheduler:
        made = Scheduler(Quota(Ledger(TREE), 1), PlacementCache(self.sites.values()))
        for job, charge in self.charges.items():
            if charge:
                made.charge(job, charge)
        for promise in self.promises.values():
            made.places.hold(promise)
        for each in self.waiting.values():
            made.put(each)
        return made

    def cycle(self, after_s: int) -> None:
        now = NOON + timedelta(seconds=after_s)
        fresh = self.fresh().run(now)
        plan = self.kept.run(now)
        assert where(plan) == where(fresh)
        for each in plan.placed:
            job = each.gang.job_id
            del self.waiting[job]
            key = (job, 1)
            self.promises[job] = CapacityHold(
                key, each.placement.cluster, each.gang.demand.total, each.placement.hold(key).nodes
            )
            self.charges[job] = each.gang.charge if each.gang.asks_quota else None
        kept = {each.name: each for each in self.kept.gangs.values()}
        assert kept.keys() == {each.name for each in self.waiting.values()}
        assert all(waits.gang.name in kept for waits in plan.waits)


def where(plan) -> dict[str, tuple]:
    return {each.gang.name: (each.placement.cluster, str(each.placement.assignment.nodes())) for each in plan.placed}


names, index = st.sampled_from(sorted(NODES)), st.integers(0, 9)
changes = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(["a", "a", "b", "c", ""]), *[st.integers(0, 3)] * 3),
    st.tuples(st.just("end"), index),
    st.tuples(st.just("end"), index),
    st.tuples(st.just("delete"), index),
    st.tuples(st.just("node"), names, index, st.integers(0, 8)),
    st.tuples(st.just("cordon"), names),
)


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(st.lists(changes, max_size=6), max_size=8))
def test_it_answers_as_one_that_was_told_everything_just_now(stream):
    play = Play()
    for step, together in enumerate(stream):
        for what, *how in together:
            getattr(play, what)(*how)
        play.cycle(step)
    assert play.kept.quota.ledger.used("root")[GPU] == sum(c.amounts.get(GPU, 0) for c in play.charges.values() if c)


def test_it_tells_only_those_whose_reason_is_news():
    scheduler = Scheduler(places=PlacementCache([cluster("north", [node(2)])]))
    scheduler.put(gang("one"))
    assert [each.gang.name for each in scheduler.run(NOON).waits] == ["default/one"]
    scheduler.put(gang("two", after_s=1))
    assert [each.gang.name for each in scheduler.run(NOON).waits] == ["default/two"]


def test_it_tells_the_first_at_once_of_another_reason_and_everybody_soon():
    kept = Scheduler(Quota(Ledger(TREE), 1), PlacementCache([cluster("north", [node(8)])]))
    policy = PolicySpec()
    many = [mine(f"j{i:03}", "a", 0, gpus=5, job_id=i, policy=policy) for i in range(1, 61)]
    for each in many:
        kept.put(each)
    plan = kept.run(NOON)
    assert len(plan.placed) == 1 and {each.reason.code for each in plan.waits} == {Code.QUOTA_EXCEEDED}
    assert len(plan.waits) == 59

    def told(after_s: float) -> list[Code]:
        return [each.reason.code for each in kept.run(NOON + timedelta(seconds=after_s)).waits]

    kept.release(plan.placed[0].gang.job_id)
    assert told(1) == [Code.NO_CLUSTER_FITS] * 20
    assert told(2) == []
    assert told(6) == [Code.NO_CLUSTER_FITS] * 59
    assert told(20) == []


def test_it_tells_the_first_every_few_seconds_of_a_reason_that_comes_and_goes_and_in_the_end_the_last():
    kept = Scheduler(Quota(Ledger(TREE), 1), PlacementCache([cluster("north", [node(8)])]))
    policy = PolicySpec()
    for i in range(1, 2001):
        kept.put(mine(f"j{i:04}", "a", 0, gpus=5, job_id=i, policy=policy))
    first = kept.run(NOON).placed[0]
    places = list(first.placement.holds(first.gang))

    def turn(second: int) -> None:
        """Now the quota has room and the cluster none, now the other way round."""
        if second % 2:
            kept.places.hold_all(places)
            kept.release(first.gang.job_id)
        else:
            kept.charge(first.gang.job_id, first.gang.charge)
            for each in places:
                kept.places.release(each.key)

    def told(second: int) -> list[Code]:
        return [each.reason.code for each in kept.run(NOON + timedelta(seconds=second)).waits]

    at = {}
    for second in range(1, 13):
        turn(second)
        at[second] = told(second)
    cluster_, quota_ = [Code.NO_CLUSTER_FITS] * 20, [Code.QUOTA_EXCEEDED] * 20
    assert {second: codes for second, codes in at.items() if codes} == {1: cluster_, 6: quota_, 11: cluster_}
    assert told(15) == [] and told(16) == quota_ and told(17) == []


def test_it_tells_many_of_other_amounts_by_and_by():
    kept = Scheduler(Quota(Ledger(TREE), 1), PlacementCache([cluster("north", [node(8)])]))
    policy = PolicySpec()
    for i in range(1, 252):
        kept.put(mine(f"j{i:03}", "a", 0, gpus=5, job_id=i, policy=policy))
    kept.charge(1000, mine("other", "a", 0, gpus=1).charge)
    assert len(kept.run(NOON).waits) == 250
    kept.release(1000)
    told = [kept.run(NOON + timedelta(seconds=after_s)).waits for after_s in (1, 6, 7, 8, 9, 30)]
    assert [len(each) for each in told] == [0, 100, 100, 50, 0, 0]
    assert {each.gang.job_id for waits in told for each in waits} == set(kept.gangs)
    assert all("used" in each.reason.message for waits in told for each in waits)


def test_it_starts_whom_freed_room_fits_and_asks_nobody_else():
    scheduler = Scheduler(places=PlacementCache([cluster("north", [node(4)])]))
    scheduler.places.hold(CapacityHold("other", "north", {}, (({GPU: 2}, ("north-0",)),)))
    for each in (gang("huge", workers=20), gang("small")):
        scheduler.put(each)
    assert {each.reason.code for each in scheduler.run(NOON).waits} == {Code.NO_CLUSTER_FITS}
    scheduler.places.release("other")
    plan = scheduler.run(NOON + timedelta(minutes=1))
    assert [each.gang.name for each in plan.placed] == ["default/small"] and plan.waits == []


def test_it_starts_the_next_of_a_leaf_when_a_charge_ends():
    scheduler = Scheduler(Quota(Ledger(TREE), 1), PlacementCache([cluster("north", [node(8)] * 4)]))
    scheduler.charge(1, Charge("root/a", {GPU: 8}))
    scheduler.put(mine())
    assert scheduler.run(NOON).placed == []
    scheduler.release(1)
    assert [each.gang.name for each in scheduler.run(NOON).placed] == ["default/llama"]


def test_it_asks_again_when_a_clusters_time_is_served():
    scheduler = Scheduler(places=PlacementCache([cluster("north")]))
    scheduler.put(gang(excluded={"north": NOON + timedelta(seconds=9)}))
    assert scheduler.run(NOON).placed == []
    assert len(scheduler.run(NOON + timedelta(seconds=9)).placed) == 1
