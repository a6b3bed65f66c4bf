"""The simulator as a process: several members, faults from outside, a clean end, and scenario files."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway
from simulator import fault
from simulator.faults_control import ControlServer, send
from simulator.main import Fleet
from simulator.shape import parse
from tests.simulator.casting import until

CONFIG = """
timeScale: 50
members:
  - {name: north, pools: [{name: gpu, count: 1, gpus: 8}]}
  - {name: south, pools: [{name: gpu, count: 1, gpus: 8}]}
"""


def start(home: Path, *more: str) -> subprocess.Popen[str]:
    (home / "fleet.yaml").write_text(CONFIG)
    command = [sys.executable, "-m", "simulator.main", "--home", str(home), "--config", str(home / "fleet.yaml")]
    return subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.processes
def test_it_serves_members_until_it_is_told_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scenario.yaml").write_text("- {at: 1s, member: south, fault: slow 0.01}\n")
    running = start(tmp_path, "--scenario", str(tmp_path / "scenario.yaml"))
    try:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "2 simulated members are ready: north, south\n"
        assert yaml.safe_load((tmp_path / "north.kubeconfig").read_text())["current-context"] == "north"
        assert (tmp_path / "north" / "kubeconfig.yaml").stat().st_mode & 0o077 == 0
        assert fault.main(["--home", str(tmp_path), "north", "slow", "0.01"]) == 0
        assert fault.main(["--home", str(tmp_path), "west", "away"]) == 2
        assert "no member 'west'" in capsys.readouterr().err
        assert running.stderr.readline() == "scenario: south: slow 0.01\n"
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=120)
    assert running.returncode == 0


def test_it_says_so_when_no_simulator_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fault.main(["--home", str(tmp_path), "north", "away"]) == 1
    assert "no simulator answers" in capsys.readouterr().err


@pytest.mark.processes
def test_it_ends_with_words_when_the_file_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("members: 3")
    command = [sys.executable, "-m", "simulator.main", "--home", str(tmp_path), "--config"]
    done = subprocess.run([*command, str(tmp_path / "fleet.yaml")], capture_output=True, text=True, timeout=120)
    assert (done.returncode, "at least one member" in done.stderr) == (2, True)


def test_it_is_reached_in_a_folder_with_a_very_long_name(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    home.mkdir()
    server = ControlServer(home, lambda member, words: f"{member} {words}")
    server.start()
    assert send(home, "north", ["away"]) == "north ['away']"
    server.stop()


def test_it_takes_one_member_away_and_leaves_the_other(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, parse(CONFIG), tmp_path)
    fleet.start()
    try:
        clients = {name: MemberClient(member.access()) for name, member in fleet.members.items()}
        fleet.members["north"].faults.away = True
        with pytest.raises(MemberAway):
            clients["north"].get("/version")
        assert clients["south"].get("/version")
        fleet.members["north"].faults.away = False
        until(lambda: clients["north"].get("/version"))
    finally:
        fleet.stop()
