"""Anything may be sent: the answer is a Status of 4xx or what was asked for, never of 5xx, and a refused write wrote nothing.

Bodies, patches, selectors, paths and queries are made by Hypothesis; the requests go through the application as it is served.
"""

import asyncio
import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import yaml
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TransactionTestCase

from deploy.config.kube import application
from fleet.models import JournalEntry
from fleet.services.authorization import access
from jobs.models import Dependent, Job, Policy
from tests.support.examples import examples
from tests.support.people import person
from tests.support.world import POLICY, pytorch_job

JOB, RULE = yaml.safe_load(pytorch_job("llama")), yaml.safe_load(POLICY)
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"k": "v"}}
HOMES = {
    "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs": JOB,
    "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies": RULE,
    "/api/v1/namespaces/default/configmaps": MAP,
}
PATCHES = ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
OFTEN = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))

words = st.text(max_size=12) | st.sampled_from(
    ["", "default", "llama", "settings", "-1", "1Gi", "True", "null", "a/b", "\x00"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def paths_of(found: Any, path: tuple = ()) -> list[tuple]:
    steps = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    return [path, *(each for key, inner in steps for each in paths_of(inner, (*path, key)))]


def put(found: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    copy = dict(found) if isinstance(found, dict) else list(found)
    copy[path[0]] = put(found[path[0]], path[1:], value)
    return copy


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, Any]:
    """A good object with one or two of its values replaced, and where it belongs."""
    home, body = draw(st.sampled_from(sorted(HOMES.items())))
    for _ in range(draw(st.integers(1, 2))):
        body = put(body, draw(st.sampled_from(paths_of(body))), draw(values))
    return home, body


class Asking(TransactionTestCase):
    def setUp(self) -> None:
        ada = person("ada", superuser=True)
        self.token = access.mint(ada, "fuzz", life=None, now=timezone.now())[1]
        self.application = application()

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json", query: str = "") -> int:
        """The code; an answer that is no JSON, or a failure of the server, ends the test."""
        sent = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]
        headers = [(b"authorization", f"Bearer {self.token}".encode()), (b"content-type", kind.encode("latin-1"))]
        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers}
        heard: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return sent.pop(0)

        async def send(message: dict[str, Any]) -> None:
            heard.append(message)

        asyncio.run(self.application({**scope, "client": ("127.0.0.1", 1)}, receive, send))
        code, text = heard[0]["status"], b"".join(each.get("body", b"") for each in heard[1:])
        answer = json.loads(text) if b"json" in dict(heard[0]["headers"])[b"content-type"] else {}
        assert code < 500, (method, path, query, body[:500], answer)
        assert code < 400 or (answer["kind"], answer["status"], answer["code"]) == ("Status", "Failure", code)
        return int(code)

    def rows(self) -> list[Any]:
        stored = [list(model.objects.order_by("pk").values()) for model in (Job, Policy, Dependent)]
        return [*stored, JournalEntry.objects.count()]


def test_every_law_is_asked() -> None:
    assert {each for each in dir(Fuzzed) if each.startswith("test_")} == {
        "test_it_takes_or_refuses_any_body",
        "test_it_takes_or_refuses_any_patch",
        "test_it_reads_or_refuses_any_selector_path_and_query",
    }


class Fuzzed(Asking):
    @OFTEN
    @given(spoilt(), st.sampled_from(["POST", "PUT"]), st.sampled_from(["", "fieldValidation=Strict", "dryRun=All"]))
    def test_it_takes_or_refuses_any_body(self, what: tuple[str, Any], method: str, query: str) -> None:
        home, body = what
        name = "" if method == "POST" else f"/{HOMES[home]['metadata']['name']}"
        before = self.rows()
        code = self.ask(method, home + name, json.dumps(body).encode("utf-8", "surrogatepass"), query=query)
        if code >= 400 or "dryRun" in query:
            assert self.rows() == before

    @OFTEN
    @given(st.sampled_from(sorted(HOMES)), st.sampled_from(PATCHES), values, st.data())
    def test_it_takes_or_refuses_any_patch(self, home: str, kind: str, value: Any, data: st.DataObject) -> None:
        good = HOMES[home]
        self.ask("POST", home, json.dumps(good).encode())
        path = data.draw(st.sampled_from(paths_of(good)))
        pointer = "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path)
        step = {"op": data.draw(st.sampled_from(["add", "replace", "remove", "move", "test", "?"])), "path": pointer}
        whole = put(good, path, value) if "apply" in kind else value if not path else put(good, path, value)
        body = [{**step, "value": value, "from": "/spec"}] if "json-patch" in kind else whole
        before = self.rows()
        sent = json.dumps(body).encode("utf-8", "surrogatepass")
        name = good["metadata"]["name"]
        code = self.ask("PATCH", f"{home}/{name}", sent, f"application/{kind}", "fieldManager=fuzz&force=true")
        if code >= 400:
            assert self.rows() == before

    @OFTEN
    @given(
        st.lists(words, max_size=4),
        st.dictionaries(
            st.sampled_from(
                [
                    "labelSelector",
                    "fieldSelector",
                    "limit",
                    "continue",
                    "resourceVersion",
                    "resourceVersionMatch",
                    "force",
                ]
            ),
            words | st.sampled_from(["a in (b", "metadata.name=x,metadata.namespace!=y", "!a,b notin (c)"]),
        ),
        st.sampled_from(["GET", "DELETE", "HEAD", "OPTIONS", "PUT"]),
    )
    def test_it_reads_or_refuses_any_selector_path_and_query(self, parts: list, query: dict, method: str) -> None:
        more = "/".join(quote(part, errors="replace") for part in parts)
        for home in (*HOMES, "/apis", "/api/v1/namespaces", "/openapi/v3"):
            self.ask(method, f"{home}/{more}" if more else home, query=urlencode(query, errors="replace"))


pytestmark = pytest.mark.django_db(transaction=True)
