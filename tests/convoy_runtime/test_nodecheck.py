"""Nodes that check each other over real connections: what each is called, and what its pod ends with."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from types import SimpleNamespace

import pytest

from convoy_runtime import check_leader, nodecheck, pair_check, torch_check
from convoy_runtime.check_messages import Channel, Ended
from convoy_runtime.nodecheck import FAILED
from convoy_runtime.pair_check import CheckFailed
from deploy.bootstrap.ports import is_free
from jobs.core.settings import FailoverSettings
from tests.support.free_ports import free_port

PATIENCE_S = "120"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """A thirtieth of what is sent between nodes: these share a processor."""
    monkeypatch.setattr(pair_check.check, "__defaults__", (1 << 18,))


def free_ports(count: int) -> list[int]:
    """With the one that the first node leads by: two after its own."""
    ports: list[int] = []
    while len(ports) < count:
        port = free_port()
        if port not in ports and (ports or is_free(port + 2)):
            ports.append(port)
    return ports if ports[0] + 2 not in ports else free_ports(count)


@contextmanager
def corrupting(port: int) -> Iterator[int]:
    """A way to a port on which one byte in the middle of what is sent changes."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as closing:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                Thread(target=pass_on, args=(peer,), daemon=True).start()

        def pass_on(peer: socket.socket) -> None:
            with suppress(OSError), peer, socket.create_connection(("127.0.0.1", port)) as behind:
                seen = 0
                while piece := peer.recv(1 << 16):
                    if seen < 1000 <= seen + len(piece):
                        piece = piece[: 999 - seen] + bytes([piece[999 - seen] ^ 1]) + piece[1000 - seen :]
                    seen += len(piece)
                    behind.sendall(piece)

        closing.callback(listener.close)
        Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def run(tmp_path, capsys, nodes: int, faulty: int = -1, **more: str) -> list[tuple[int, dict]]:
    """The exit code and the verdict of each node."""
    ports = free_ports(nodes)
    with ExitStack() as ways:
        shown = [ways.enter_context(corrupting(port)) if node == faulty else port for node, port in enumerate(ports)]
        peers = ",".join(f"127.0.0.1:{port}" for port in shown)

        def check(node: int) -> int:
            own = ["--peers", peers, "--node", str(node), "--listen", str(ports[node]), "--key", "k"]
            files = ["--termination-log", str(tmp_path / f"said-{node}"), "--verdict", str(tmp_path / f"known-{node}")]
            return nodecheck.main([*own, *files, "--join-s", PATIENCE_S, "--check-s", PATIENCE_S])

        with ThreadPoolExecutor(nodes) as pods:
            codes = list(pods.map(check, range(nodes)))
    said = [json.loads((tmp_path / f"said-{node}").read_text()) for node in range(nodes)]
    return list(zip(codes, said, strict=True))


def test_nodes_that_work_pass_in_one_round(tmp_path, capsys):
    for code, said in run(tmp_path, capsys, 3):
        assert (code, said["verdict"], said["rounds"]) == (0, "ok", 1)
        assert said["name"] == "convoy.nodecheck" and said["seconds"] > 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["ok"] * 3


@pytest.mark.parametrize(("nodes", "faulty"), [(3, 1), (5, 4)])
def test_a_node_on_whose_way_a_byte_changes_fails_and_no_other(tmp_path, capsys, nodes, faulty):
    ends = run(tmp_path, capsys, nodes, faulty)
    assert [code for code, _ in ends] == [FAILED if node == faulty else 0 for node in range(nodes)]
    assert ends[faulty][1]["verdict"] == "faulty" and "with nodes that work" in ends[faulty][1]["message"]


def test_a_container_that_is_started_again_says_what_was_known(tmp_path, capsys):
    known = tmp_path / "known"
    known.write_text('{"verdict": "faulty", "message": "it failed", "rounds": 3}')
    argv = ["--service", "none.invalid", "--nodes", "3", "--verdict", str(known)]
    assert nodecheck.main([*argv, "--termination-log", str(tmp_path / "said")]) == FAILED
    assert json.loads(capsys.readouterr().out)["message"] == "it failed"


def test_a_slow_node_fails_only_where_that_is_asked_for(tmp_path, capsys):
    known = tmp_path / "known"
    for more, code in (([], 0), (["--slow-fails"], FAILED)):
        known.write_text('{"verdict": "slow"}')
        argv = ["--service", "none.invalid", "--nodes", "3", "--verdict", str(known)]
        assert nodecheck.main([*argv, "--termination-log", str(tmp_path / "said"), *more]) == code


def test_where_not_all_pods_come_the_training_starts(tmp_path, capsys):
    argv = ["--service", "none.invalid", "--nodes", "3", "--join-s", "0"]
    assert nodecheck.main([*argv, "--termination-log", str(tmp_path / "said")]) == 0
    assert json.loads(capsys.readouterr().out)["message"] == "0 of 3 pods have come"


def test_all_pods_have_the_same_order_of_addresses():
    answers = iter([["10.0.0.2"], ["10.0.0.2", "10.0.0.10", "10.0.0.2"]])
    found = nodecheck.addresses_of("gang", 2, float("inf"), lambda _: next(answers), lambda _: None)
    assert found == ["10.0.0.10", "10.0.0.2"]
    with pytest.raises(CheckFailed, match="1 of 2"):
        nodecheck.addresses_of("gang", 2, 0.0, lambda _: ["10.0.0.2"], lambda _: None)


def test_a_stranger_at_the_door_of_the_leader_does_not_count(tmp_path, capsys, monkeypatch):
    """Whatever it says: nothing, no message, too much, or another key."""
    created = socket.create_server

    def visited(address, **options):
        made = created(address, **options)
        if options.get("backlog") == 1024:
            for said in (b"", b"\xff\n", b"x" * 200_000, b'{"key": "other", "node": 1}\n', b'{"key": "k"}\n'):
                with socket.create_connection(("127.0.0.1", made.getsockname()[1])) as stranger:
                    stranger.settimeout(0.5)
                    try:
                        stranger.sendall(said)
                    except OSError:
                        continue
        return made

    monkeypatch.setattr(nodecheck.socket, "create_server", visited)
    assert [said["verdict"] for _, said in run(tmp_path, capsys, 2)] == ["ok", "ok"]


def test_a_message_is_bounded():
    one, other = socket.socketpair()
    with one, other:

        def say() -> None:
            with suppress(OSError):
                one.sendall(b"[" * 300_000)

        saying = Thread(target=say, daemon=True)
        saying.start()
        with pytest.raises(Ended, match="too much"):
            Channel(other).receive(time.monotonic() + 120)
        other.close()
        saying.join(120)


def test_a_node_that_freezes_after_it_joined_is_known_before_the_start_times_out():
    asked = nodecheck._arguments(["--service", "gang", "--nodes", "2"])
    rounds_s = 2 * (asked.check_s + check_leader.MARGIN_S)
    assert asked.join_s + rounds_s < FailoverSettings().start_timeout_s


def test_a_round_has_one_deadline_for_all_that_it_checks(monkeypatch):
    left = []
    monkeypatch.setattr(nodecheck, "check", lambda *_: 1.0)
    monkeypatch.setattr(torch_check, "run", lambda members, me, timeout_s: left.append(timeout_s) or 2.0)
    clock = iter([100.0, 130.0])
    monkeypatch.setattr(nodecheck, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with socket.socket() as listener:
        outcome = nodecheck._outcome([], 0, listener, "k", 60.0, by_torch=True)
    assert outcome == {"ok": True, "seconds": 3.0} and left == [30.0]


def test_a_pod_that_starts_after_the_check_waits_for_no_other(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(nodecheck, "addresses_of", lambda *_: pytest.fail("it waits for the others"))
    argv = ["--service", "none.invalid", "--nodes", "3", "--until", str(time.time() - 1)]
    assert nodecheck.main([*argv, "--termination-log", str(tmp_path / "said")]) == 0
    assert "too late" in json.loads(capsys.readouterr().out)["message"]


@pytest.mark.parametrize("without", [0, 1])
def test_torch_checks_all_nodes_or_none(tmp_path, capsys, monkeypatch, without):
    ran, have_torch = [], iter([False] * without + [True] * (3 - without))
    monkeypatch.setattr(torch_check, "is_there", lambda: next(have_torch))
    monkeypatch.setattr(torch_check, "devices", lambda: 1)
    monkeypatch.setattr(torch_check, "run", lambda members, me, timeout_s: ran.append(me) or 1.0)
    assert [said["verdict"] for _, said in run(tmp_path, capsys, 3)] == ["ok"] * 3
    assert sorted(ran) == ([] if without else [0, 1, 2])
