"""The names objects of members have at the fleet."""

import re

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.members.hub_names import LONGEST, hub_name, kept_of, split

LABEL = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
NAME = st.lists(LABEL, min_size=1, max_size=8).map(".".join).map(lambda name: name[:253].rstrip(".-"))
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@given(name=NAME, cluster=LABEL)
def test_it_is_a_name_that_kubernetes_takes_and_says_where_the_object_is(name, cluster):
    hub = hub_name(name, cluster)
    assert len(hub) <= LONGEST and SUBDOMAIN.fullmatch(hub) and split(hub)[1] == cluster
    assert split(hub)[0] == name or name.startswith(kept_of(hub)) and kept_of(hub)


@given(one=st.tuples(NAME, LABEL), other=st.tuples(NAME, LABEL))
def test_two_objects_never_have_one_name(one, other):
    assert one == other or hub_name(*one) != hub_name(*other)


def test_names_that_are_too_long_differ_by_what_was_cut():
    one, other, cluster = "a" * 252 + "b", "a" * 252 + "c", "c" * 63
    assert hub_name(one, cluster) != hub_name(other, cluster)
    assert len(hub_name(one, cluster)) == LONGEST and kept_of(hub_name(one, cluster)) == "a" * 179


def test_a_name_without_a_cluster_is_no_name_of_the_fleet():
    assert split("master-0") == ("master-0", "") and kept_of("a" * 253) == ""
    assert split(".north") == (".north", "")
