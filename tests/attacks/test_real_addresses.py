"""The address that limits and the audit see: a caller's word for it counts only where a trusted proxy passes it on."""

import asyncio

import pytest
from django.utils import timezone

from deploy.config.http import behind
from deploy.config.kube import application
from fleet.kubeapi import limits as kube
from fleet.limits.limited import Limited
from fleet.limits.settings import Limits
from fleet.models import AuditEntry
from jobs.models import Dependent
from tests.support.asgi_door import Reader, token_of

CASES = {
    "no proxy is trusted": ([], "10.0.0.1", "198.51.100.7", "10.0.0.1"),
    "a trusted one": (["10.0.0.1"], "10.0.0.1", "198.51.100.7", "198.51.100.7"),
    "two in a trusted network, and what the caller made up": (
        ["10.0.0.0/8"],
        "10.0.0.1",
        "203.0.113.9, 198.51.100.7, 10.0.0.2",
        "198.51.100.7",
    ),
    "another than the trusted one": (["10.0.0.1"], "192.0.2.1", "198.51.100.7", "192.0.2.1"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("case", CASES)
def test_the_audit_has_the_address_of_the_caller_and_not_what_it_made_up(case: str) -> None:
    proxies, client, header, expected = CASES[case]
    token = token_of("ada")
    Dependent.objects.create(
        kind="Secret", namespace="default", name="key", created_at=timezone.now(), resource_version=1,
        manifest={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "default"}},
    )  # fmt: skip

    async def read() -> int:
        door = behind(proxies, Limited(application(), Limits(), kube.sort, kube.refusal))
        forwarded = ((b"x-forwarded-for", header.encode()),)
        path = "/api/v1/namespaces/default/secrets/key"
        reader = Reader(door, token, path, address=client, headers=forwarded)
        await reader.task
        return reader.code

    assert asyncio.run(read()) == 200
    assert AuditEntry.objects.get(kind="Secret").address == expected
