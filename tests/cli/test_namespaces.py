"""``convoy namespace``: what each verb asks of the server, and what it says."""

import json

POLICY = {
    "name": "vision",
    "pod_security": "baseline",
    "service_accounts": [],
    "capabilities": ["IPC_LOCK"],
    "host_paths": [],
    "host_network": True,
    "node_name": False,
}


def test_it_lists_sets_and_unsets_policies(server, convoy):
    server.page("namespaces/", POLICY)
    server.on("namespaces/vision/", POLICY, method="PUT")
    server.on("namespaces/vision/", {}, method="DELETE")
    assert "IPC_LOCK, host network" in convoy("namespace", "list").out
    assert "level baseline" in convoy("namespace", "set", "vision", "--capability", "IPC_LOCK", "--host-network").out
    sent = json.loads(server.sent("PUT").body)
    assert {"name": "vision", **sent} == POLICY
    assert "defaults" in convoy("namespace", "unset", "vision").out
