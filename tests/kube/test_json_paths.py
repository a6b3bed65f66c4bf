"""JSONPath as kubectl writes it: what it finds, what it refuses, and that it ends."""

import pytest

from fleet.kube.requests import json_paths

STATUS = {
    "step": 40,
    "note": "a b",
    "nothing": None,
    "saved": {"path": "s3://ckpt/40", "a.b": 1},
    "conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "False", "n": 3}],
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("{.step}", "40"),
        ("{ .saved.path }", "s3://ckpt/40"),
        ("$.saved.path", "s3://ckpt/40"),
        ("saved", '{"path":"s3://ckpt/40","a.b":1}'),
        ("{.saved['a.b']}", "1"),
        (r"{.saved.a\.b}", "1"),
        ('{.conditions[?(@.type=="Running")].status}', "False"),
        ("{.conditions[?(@.n>=3)].type}", "Running"),
        ("{.conditions[?(@.n)].type}", "Running"),
        ("{.conditions[*].type}", "Created Running"),
        ("{.conditions[-1].type}", "Running"),
        ("{.conditions[0:1].type}", "Created"),
        ("{..status}", "True False"),
        ("{.saved.*}", "s3://ckpt/40 1"),
        ("{.absent.further[3]}", ""),
        ("{.step.further}", ""),
        ("{.note}", "a b"),
    ],
)
def test_it_finds_what_kubectl_finds(path, text):
    assert json_paths.shown(json_paths.parse(path).find(STATUS)) == text


@pytest.mark.parametrize(
    "path", ["", "{}", ".", "{.}", "{.a", ".a}", "{.a[}", "{.a[?(@.b)(]}", "{.a b}", "{range .a[*]}", "." + "a" * 2000]
)
def test_it_refuses_what_is_not_a_path(path):
    with pytest.raises(json_paths.PathError):
        json_paths.parse(path)


def test_it_gives_up_a_path_that_selects_without_end():
    wide = {str(i): {str(k): {str(m): m for m in range(40)} for k in range(40)} for i in range(40)}
    assert json_paths.parse("{.*.*.*}").find(wide) == []


@pytest.mark.parametrize("path", ["{..a..b}", "{..a[?(@..b)]}"])
def test_it_searches_no_values_inside_each_other_again_and_again(path):
    """A tenant writes path and status: 100 objects inside each other, around 100,000 values, would be searched for minutes."""
    with pytest.raises(json_paths.PathError, match="more than once"):
        json_paths.parse(path)
