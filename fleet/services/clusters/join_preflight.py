"""Checks a cluster before it joins, one check after the other, and returns the result of each. Writes nothing.

`clusters.join` asks the same questions and refuses at the first no; here a person sees how far it got and what to mend.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.core import tags
from fleet.errors import Conflict, ConvoyError
from fleet.models import Cluster
from fleet.services.clusters import clusters
from fleet.services.members import event_handlers, member_facts
from fleet.services.members.member_facts import Findings


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    """name, kubeconfig, answer, kinds, rights or new."""
    ok: bool
    detail: str


def examine(name: str, kubeconfig_text: str, context: str = "") -> list[Check]:
    """The checks in their order; the first that fails is the last."""
    checks: list[Check] = []
    for check in _checks(name, kubeconfig_text, context):
        checks.append(check)
        if not check.ok:
            break
    return checks


def _checks(name: str, text: str, context: str) -> Iterator[Check]:
    fault = tags.cluster_name_fault(name)
    taken = not fault and Cluster.objects.filter(name=name).exists()
    yield Check("name", not (fault or taken), fault or ("a cluster of this name has joined already" if taken else name))
    try:
        access = clusters.parse_kubeconfig(text, context)
    except ConvoyError as e:
        yield Check("kubeconfig", False, str(e))
        return
    yield Check("kubeconfig", True, access.server)
    try:
        findings = member_facts.probe(access)
    except ConvoyError as e:
        yield Check("answer", False, str(e))
        return
    yield Check("answer", True, findings.version)
    yield from _of_findings(findings)


def _of_findings(findings: Findings) -> Iterator[Check]:
    kinds = [kind for kind in event_handlers.resources() if member_facts.serves(findings.apis, kind)]
    listed = ", ".join(f"{kind.kind} ({kind.api_version})" for kind in kinds)
    yield Check("kinds", bool(kinds), listed or "it serves no kind of training job that the fleet knows")
    lacking = member_facts.missing_essentials(findings)
    refused = [f"{each['verb']} {each['resource']}" for each in findings.permissions if not each["allowed"]]
    some = f"without {', '.join(refused)}" if refused else "everything that is needed"
    yield Check("rights", not lacking, f"not allowed: {', '.join(lacking)}" if lacking else some)
    try:
        clusters.refuse_known(findings.member_uid)
    except Conflict as e:
        yield Check("new", False, str(e))
    else:
        yield Check("new", True, "it is no member yet")
