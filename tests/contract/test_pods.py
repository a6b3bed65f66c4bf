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
