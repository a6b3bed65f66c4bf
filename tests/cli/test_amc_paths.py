"""Paths and templates as kubectl takes them."""

import pytest

from frontend.cli.amc import paths
from frontend.cli.problems import Problem

PODS = {
    "items": [
        {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}}, "status": {"n": 3, "ready": True}},
        {"metadata": {"name": "b"}, "status": {"n": 1, "conditions": [{"type": "Ready", "status": "True"}]}},
    ]
}
FOUND = {
    ".items[*].metadata.name": ["a", "b"],
    "{.items[0].metadata.name}": ["a"],
    "items[-1].metadata.name": ["b"],
    ".items[0:1].metadata.name": ["a"],
    "$.items[1:].metadata.name": ["b"],
    "..name": ["a", "b"],
    ".items[*].status.*": [3, True, 1, [{"type": "Ready", "status": "True"}]],
    r".items[0].metadata.labels.app\.kubernetes\.io/name": ["x"],
    ".items[0].metadata.labels['app.kubernetes.io/name']": ["x"],
    '.items[?(@.metadata.name=="b")].status.n': [1],
    ".items[?(@.status.n > 1)].metadata.name": ["a"],
    ".items[?(@.status.conditions)].metadata.name": ["b"],
    '.items[*].status.conditions[?(@.type=="Ready")].status': ["True"],
    ".items[7].metadata.name": [],
    ".spec.nothing": [],
}
SAID = {
    "{.items[*].metadata.name}": "a b",
    '{range .items[*]}{.metadata.name}{"\\n"}{end}': "a\nb\n",
    "{range .items[*]}{@.metadata.name}: {.status.n}, {end}done": "a: 3, b: 1, done",
    "{.items[0].status}": '{"n":3,"ready":true}',
    "{range .items[*]}{range .status.conditions[*]}{.type}{end}{'/'}{end}": "/Ready/",
    "plain": "plain",
    '{"}"}{.items[0].status.ready}': "}true",
}


@pytest.mark.parametrize("text", FOUND)
def test_it_finds_what_a_path_leads_to(text):
    assert paths.path(text).find(PODS) == FOUND[text]


@pytest.mark.parametrize("text", SAID)
def test_it_prints_a_template(text):
    assert paths.template(text)(PODS) == SAID[text]


@pytest.mark.parametrize("text", ["{.a", "{range .items[*]}x", "{end}", "{.a}}", "{.items[}", "{.items[?(x)]}"])
def test_it_refuses_what_does_not_close(text):
    with pytest.raises(Problem):
        paths.template(text)
