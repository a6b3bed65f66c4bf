"""Names and labels: what Kubernetes lets a thing be called."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.names import label_fault, pair_fault, subdomain_fault


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True, alphabet=st.characters(codec="ascii")))
def test_it_takes_every_label_and_takes_it_as_a_subdomain(name: str) -> None:
    assert (label_fault(name), subdomain_fault(name), subdomain_fault(f"{name}.{name}")) == ("", "", "")


@given(st.text(max_size=20))
def test_it_refuses_everything_else(name: str) -> None:
    allowed = re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert bool(label_fault(name)) == (allowed is None)


@pytest.mark.parametrize("name", [None, "", 5, "a/b", "A", "a_b", "-a", "a-", "a" * 254, "a..b", ".a", "a\n", "é", "²"])
def test_it_refuses_what_is_no_name(name: object) -> None:
    assert label_fault(name) and subdomain_fault(name)


def test_it_knows_how_long_a_name_may_be() -> None:
    assert not label_fault("a" * 63) and label_fault("a" * 64)
    assert not subdomain_fault("a" * 253) and "at most 253" in subdomain_fault("a" * 254)


@pytest.mark.parametrize(("key", "value"), [("a", ""), ("a.b/c_d", "X.y-z"), ("kubernetes.io/os", "linux"), ("A", "1")])
def test_it_takes_labels(key: str, value: str) -> None:
    assert pair_fault(key, value) == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "a"),
        ("/a", "a"),
        ("a/", "a"),
        ("a/b/c", "a"),
        ("A.b/c", "a"),
        ("a", "b c"),
        ("a", "x" * 64),
        ("a", 1),
        (1, "a"),
    ],
)
def test_it_refuses_labels(key: object, value: object) -> None:
    assert pair_fault(key, value)
