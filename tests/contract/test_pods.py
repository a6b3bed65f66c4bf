"""Pods with their logs and streams, as far as one that is not there can show them: the same words on every target."""

import json

import pytest

from fleet.kube.resources import PODS
from tests.contract.target import Target

MISSING = PODS.path("default", "no-such-pod")


@pytest.mark.parametrize("path", [MISSING, f"{MISSING}/log", f"{MISSING}/log?follow=true&tailLines=3"])
def test_a_pod_that_is_not_there_is_not_found_by_its_name(target: Target, path: str) -> None:
    code, status = target.raw("GET", path)
    assert (code, status["kind"], status["reason"]) == (404, "Status", "NotFound")
    assert status["message"] == 'pods "no-such-pod" not found' and status["details"]["kind"] == "pods"


@pytest.mark.parametrize("verb", ["exec?command=ls&stdout=true", "attach?stdout=true", "portforward?ports=80"])
def test_no_stream_opens_to_a_pod_that_is_not_there(target: Target, verb: str) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Protocol": "v5.channel.k8s.io"}
    code, status = target.raw("GET", f"{MISSING}/{verb}", **headers, **key)
    assert (code, status["reason"]) == (404, "NotFound")


def test_discovery_names_what_pods_have(target: Target) -> None:
    _, listed = target.raw("GET", "/api/v1")
    verbs = {each["name"]: set(each["verbs"]) for each in listed["resources"]}
    assert {"get", "list", "watch"} <= verbs["pods"] and "get" in verbs["pods/log"]
    assert all({"create", "get"} <= verbs[f"pods/{stream}"] for stream in ("exec", "attach", "portforward"))


def test_pods_are_printed_in_the_columns_of_kubectl(target: Target) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = json.loads(target.text(PODS.path("default"), {}, Accept=accept))
    names = [column["name"] for column in table["columnDefinitions"]]
    assert (table["kind"], names[:5]) == ("Table", ["Name", "Ready", "Status", "Restarts", "Age"])


def test_a_field_that_pods_cannot_be_selected_by_is_a_bad_request(target: Target) -> None:
    code, status = target.raw("GET", f"{PODS.path('default')}?fieldSelector=spec.colour%3Dred")
    assert (code, status["reason"]) == (400, "BadRequest")


NO_WORDS: dict = {}
ENDED, FAILED = (
    {"terminated": {"exitCode": 0, "reason": "Completed"}},
    {"terminated": {"exitCode": 86, "reason": "Error"}},
)


def initialising(*states: dict, main: dict | None = None) -> dict:
    about = {"image": "i", "imageID": "i", "ready": False, "restartCount": 0}
    entries = [{"name": f"init{number}", "state": state, **about} for number, state in enumerate(states)]
    waits = {"waiting": {"reason": "PodInitializing"}}
    return {
        "initContainerStatuses": entries,
        "containerStatuses": [{"name": "main", "state": main or waits, **about}],
    }


@pytest.mark.parametrize(
    ("phase", "status", "word"),
    [
        ("Pending", initialising(NO_WORDS, NO_WORDS), "Init:0/2"),
        ("Pending", initialising(ENDED, {"running": {}}), "Init:1/2"),
        ("Pending", initialising(ENDED, {"waiting": {"reason": "CrashLoopBackOff"}}), "Init:CrashLoopBackOff"),
        ("Failed", initialising(FAILED, {"waiting": {"reason": "PodInitializing"}}), "Init:Error"),
        ("Failed", initialising({"terminated": {"exitCode": 3}}, NO_WORDS), "Init:ExitCode:3"),
        ("Failed", initialising(ENDED, ENDED, main=FAILED), "Error"),
    ],
)
def test_a_pod_is_printed_by_the_init_container_that_keeps_it(
    target: Target, phase: str, status: dict, word: str
) -> None:
    target.members_only("its pods are those of jobs")
    name = f"init-{word.lower().replace(':', '-').replace('/', '-of-')}"
    init = [{"name": f"init{number}", "image": "i"} for number in range(2)]
    spec = {"initContainers": init, "containers": [{"name": "main", "image": "i"}], "nodeName": "no-such-node"}
    target.member.create(PODS.path("default"), {"metadata": {"name": name}, "spec": spec})
    target.member.merge_patch(PODS.path("default", name, "status"), {"status": {"phase": phase, **status}})
    table = target.member.get(PODS.path("default", name), accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table["rows"][0]["cells"][2] == word
    target.member.delete(PODS.path("default", name), grace_s=0)
