"""Which addresses may be called."""

import pytest

from fleet.member import addresses
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberAway


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "0.0.0.0", "224.0.0.1"]
)
def test_it_never_calls_metadata_or_senseless_addresses(address):
    assert addresses.refusal(address, private_ok=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd00::1", "::ffff:10.0.0.1"])
def test_it_calls_private_addresses_only_where_allowed(address):
    assert not addresses.refusal(address, private_ok=True)
    assert "CONVOY_PRIVATE_MEMBERS" in addresses.refusal(address, private_ok=False)


def test_it_calls_public_addresses():
    assert not addresses.refusal("1.1.1.1", private_ok=False)


def test_it_sees_through_a_name():
    assert addresses.server_refusal("https://localhost:6443", private_ok=False)


def test_it_hangs_up_on_a_private_address_before_saying_anything(unused_listener):
    client = MemberClient(Access(f"https://localhost:{unused_listener.port}", token="secret"), private_ok=False)
    with pytest.raises(MemberAway, match="private address"):
        client.get("/version")
    assert unused_listener.heard() == b""
