"""The import contracts can fail: each planted violation, in a skeleton of the house, breaks the contract it should."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT

SKELETON = (
    "fleet/models",
    "quotas/core",
    "jobs/core/scheduling",
    "jobs/kinds",
    "jobs/models",
    "simulator/operators",
    "simulator/machinery",
    "frontend/cli",
)
"""What the planted violations import or stand in, beside the packages that the contracts name."""


def named() -> set[str]:
    """The folders of the packages of the product that the contracts name."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    roots = set(contracts["importlinter"]["root_packages"].split())
    lists = [
        section.get(key, "")
        for section in contracts.values()
        for key in ("containers", "source_modules", "forbidden_modules")
    ]
    modules = {name for text in lists for name in text.split()}
    return {name.replace(".", "/") for name in roots | modules if name.split(".")[0] in roots}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for folder in {*SKELETON, *named()}:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    for folder in [path for path in tmp_path.rglob("*") if path.is_dir()]:
        (folder / "__init__.py").touch()
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def broken(house: Path) -> list[str]:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=house, capture_output=True, text=True, check=False)
    assert "Analyzed" in done.stdout, done.stdout + done.stderr
    return [line.removesuffix(" BROKEN") for line in done.stdout.splitlines() if line.endswith(" BROKEN")]


def test_the_skeleton_keeps_every_contract(house: Path) -> None:
    assert broken(house) == []


@pytest.mark.parametrize(
    ("module", "imports", "contract"),
    [
        ("fleet/services/x", "jobs.models", "Apps know only the apps below them"),
        ("fleet/models/x", "fleet.services", "Floors of fleet"),
        ("jobs/core/x", "jobs.kinds", "Floors of jobs"),
        ("jobs/core/x", "django", "The pure floors know no framework and no network"),
        ("quotas/core/x", "redis", "The pure floors know no framework and no network"),
        ("jobs/core/placement/x", "jobs.core.scheduling", "Floors of jobs.core"),
        ("jobs/services/lifecycle/x", "jobs.services.scheduling", "Stages of jobs.services"),
        ("jobs/services/x", "jobs.models", "Stages of jobs.services"),
        ("simulator/machinery/x", "simulator.operators", "Floors of the simulator"),
        ("simulator/operators/x", "fleet.models", "The simulator knows a member's API and nothing of the fleet"),
        ("jobs/services/x", "kubernetes", "Only fleet.member speaks to a member's API"),
        ("jobs/services/x", "simulator", "Product code never imports the simulator"),
        ("frontend/cli/x", "jobs.core", "The command line speaks HTTP only"),
        ("deploy/bootstrap/x", "yaml", "The bootstrap and the supervisor need nothing installed"),
    ],
)
def test_a_planted_violation_is_caught(house: Path, module: str, imports: str, contract: str) -> None:
    (house / f"{module}.py").write_text(f"import {imports}\n")
    assert contract in broken(house)
