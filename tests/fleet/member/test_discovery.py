"""What discovery makes of a member's answers, of old and new API servers."""

from fleet.member import discovery
from fleet.member.discovery import Right
from fleet.member.errors import MemberMissing

LIST_PODS = Right("list", "", "pods", "capacity")
GET_LOGS = Right("get", "", "pods/log", "logs")
MAKE_JOBS = Right("create", "batch", "jobs", "running Job")


class Member:
    """Answers as it was told to, and counts."""

    def __init__(self, answers, status=None, grants=()):
        self._answers, self._status, self._grants = answers, status, grants
        self.asked = []

    def get(self, path, params=None, accept=""):
        self.asked.append(path)
        if path not in self._answers:
            raise MemberMissing(f"no {path}", status=404)
        return self._answers[path]

    def create(self, path, body):
        self.asked.append(body["kind"])
        if body["kind"] == "SelfSubjectRulesReview":
            if self._status is None:
                raise MemberMissing("no reviews", status=404)
            return {"status": self._status}
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["resource"] in self._grants}}


def rule(*resources, verbs=("*",), groups=("",), names=()):
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources), "resourceNames": list(names)}


def aggregated(group, version, freshness="Current", **kinds):
    resources = [{"resource": plural, "responseKind": {"kind": kind}} for kind, plural in kinds.items()]
    return {
        "metadata": {"name": group},
        "versions": [{"version": version, "resources": resources, "freshness": freshness}],
    }


def test_it_asks_one_by_one_where_the_member_does_not_aggregate():
    groups = {"groups": [{"versions": [{"groupVersion": "batch/v1"}]}]}
    kinds = {"resources": [{"kind": "Job", "name": "jobs"}, {"kind": "Job", "name": "jobs/status"}]}
    core = {"resources": [{"kind": "Pod", "name": "pods"}]}
    member = Member({"/api": {"versions": ["v1"]}, "/api/v1": core, "/apis": groups, "/apis/batch/v1": kinds})
    assert discovery.apis(member) == {"v1": {"Pod": "pods"}, "batch/v1": {"Job": "jobs"}}


def test_it_keeps_a_group_whose_own_server_is_down_as_it_was():
    items = [aggregated("metrics.k8s.io", "v1", "Stale"), aggregated("batch", "v1", Job="jobs")]
    member = Member({"/apis": {"kind": "APIGroupDiscoveryList", "items": items}})
    before = {"v1": {"Pod": "pods"}, "metrics.k8s.io/v1": {"PodMetrics": "pods"}, "old/v1": {"Old": "olds"}}
    wanted = {"v1": {"Pod": "pods"}, "metrics.k8s.io/v1": {"PodMetrics": "pods"}, "batch/v1": {"Job": "jobs"}}
    assert discovery.apis(member, before, core=False) == wanted
    assert member.asked == ["/apis"]


def test_it_reads_its_rights_from_the_list_of_its_rules():
    status = {
        "resourceRules": [rule("pods", verbs=["list"]), rule("*/log", verbs=["get"]), rule("jobs", names=["one"])]
    }
    member = Member({}, status)
    wanted = {LIST_PODS: True, GET_LOGS: True, MAKE_JOBS: False}
    assert discovery.allowed(member, wanted) == wanted
    assert member.asked == ["SelfSubjectRulesReview"]


def test_it_takes_a_right_to_an_object_for_none_to_its_parts_or_to_others_of_its_group():
    status = {"resourceRules": [rule("pods"), rule("jobs", groups=["other"])]}
    assert discovery.allowed(Member({}, status), [GET_LOGS, MAKE_JOBS]) == {GET_LOGS: False, MAKE_JOBS: False}


def test_it_asks_for_what_an_incomplete_list_does_not_have():
    status = {"resourceRules": [rule("pods")], "incomplete": True}
    member = Member({}, status, grants=["jobs"])
    assert discovery.allowed(member, [LIST_PODS, MAKE_JOBS]) == {LIST_PODS: True, MAKE_JOBS: True}
    assert member.asked == ["SelfSubjectRulesReview", "SelfSubjectAccessReview"]


def test_it_asks_for_each_right_where_rules_are_not_listed():
    member = Member({}, None, grants=["pods"])
    assert discovery.allowed(member, [LIST_PODS, MAKE_JOBS]) == {LIST_PODS: True, MAKE_JOBS: False}
