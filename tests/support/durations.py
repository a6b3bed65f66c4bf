"""What tests cost: the longest files first, the slowest tests named, and each of them held to its committed budget.

``tests/durations.json`` has the seconds of each file and the budget of each slow test; ``--write-durations`` writes it anew
after a run of all tests. Those over budget are always named; with ``--hold-durations``, for a machine that does nothing else,
they fail the run; with ``--quick`` the slow ones are left out. The seconds of a run are first divided by how much slower than
the file this machine is: the median over the slow tests. A busy or an old machine makes all of them slower, a mistake one.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from tests.support.together import folder_of, scope_of

FILE = Path(__file__).resolve().parent.parent / "durations.json"
SHOWN = 30
QUICK_S = 2.0
"""From here on the seconds of a test are kept, and ``--quick`` leaves it out."""
SLOW_S = 4.0
"""No budget is smaller."""
OVER = 3.0
FEWEST = 10
"""Of slow tests that must have run for the machine's speed to be known."""
UNKNOWN_S = 5.0
"""A file that is not in the list yet, in a folder of which none is."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help=f"write {FILE.name} from this run")
    parser.addoption("--quick", action="store_true", help=f"leave out tests that took {QUICK_S:g} s or more")
    parser.addoption("--hold-durations", action="store_true", help="fail where a test took several times its budget")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Durations(config, known()), "durations")


def known() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = json.loads(FILE.read_text())
    return found


def slowdown(spent: dict[str, float], budgets: dict[str, float]) -> float:
    """How much slower this machine was than the one that wrote the budgets; never less than one."""
    ratios = [spent[name] / budgets[name] for name in spent.keys() & budgets.keys()]
    return max(1.0, median(ratios)) if len(ratios) >= FEWEST else 1.0


def over_budget(spent: dict[str, float], budgets: dict[str, float]) -> list[str]:
    """A sentence for each test that took several times its budget; none while the machine's speed is not known."""
    if len(spent.keys() & budgets.keys()) < FEWEST:
        return []
    slower = slowdown(spent, budgets)
    took = ((name, seconds / slower, max(budgets.get(name, 0.0), SLOW_S)) for name, seconds in sorted(spent.items()))
    return [
        f"{name} took {seconds:.1f} s, its budget is {budget:.1f} s"
        for name, seconds, budget in took
        if seconds > OVER * budget
    ]


def summed(spent: dict[str, float]) -> dict[str, dict[str, float]]:
    files: dict[str, float] = defaultdict(float)
    for name, seconds in spent.items():
        files[name.partition("::")[0]] += seconds
    slow = {name: seconds for name, seconds in spent.items() if seconds >= QUICK_S}
    return {
        part: {name: round(rows[name], 1) for name in sorted(rows)}
        for part, rows in (("files", files), ("tests", slow))
    }


def merged(
    kept: dict[str, dict[str, float]], spent: dict[str, float], skipped: set[str]
) -> dict[str, dict[str, float]]:
    """What a run took; a file of which every test was skipped keeps the seconds and budgets that it had."""
    ran = {name for name in spent if name not in skipped}
    files = {name.partition("::")[0] for name in ran}
    new = summed({name: spent[name] for name in ran})
    here = {name.partition("::")[0] for name in spent}
    for part, rows in new.items():
        rows |= {
            name: s for name, s in kept[part].items() if (file := name.partition("::")[0]) in here and file not in files
        }
        new[part] = dict(sorted(rows.items()))
    return new


def by_seconds(nodeids: Iterable[str], seconds: dict[str, float]) -> Callable[[pytest.Item], float]:
    """Sorts tests by what is run whole with them, a file or a folder.

    A new file is taken for one of its folder: those of browsers and flows, taken for short, would be left for the end.
    """
    folders: dict[str, list[float]] = defaultdict(list)
    for file, took in seconds.items():
        folders[folder_of(file)].append(took)
    total: dict[str, float] = defaultdict(float)
    for file in {nodeid.partition("::")[0] for nodeid in nodeids}:
        total[scope_of(file)] += seconds.get(file, mean(folders.get(folder_of(file), [UNKNOWN_S])))
    return lambda item: -total[scope_of(item.nodeid)]


def leave_out_slow(items: list[pytest.Item], slow: Container[str], config: pytest.Config) -> None:
    left_out = [item for item in items if item.nodeid.partition("@")[0] in slow]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.nodeid.partition("@")[0] not in slow]


class Durations:
    def __init__(self, config: pytest.Config, kept: dict[str, dict[str, float]]) -> None:
        self.config, self.kept = config, kept
        self.spent: dict[str, float] = defaultdict(float)
        self.over: list[str] = []
        self.skipped: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """What takes longest first, so that no process is left with it at the end; within a file nothing changes."""
        if self.config.getoption("--quick"):
            leave_out_slow(items, self.kept["tests"], self.config)
        items.sort(key=by_seconds([item.nodeid for item in items], self.kept["files"]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self.skipped.add(report.nodeid.partition("@")[0])
        self.spent[report.nodeid.partition("@")[0]] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workerinput"):
            return
        if self.config.getoption("--write-durations"):
            FILE.write_text(json.dumps(merged(self.kept, self.spent, self.skipped), indent=1) + "\n")
            return
        self.over = over_budget(self.spent, self.kept["tests"])
        held = self.config.getoption("--hold-durations")
        if held and self.over and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        slowest = sorted(self.spent.items(), key=lambda row: -row[1])[:SHOWN]
        terminalreporter.section(
            f"slowest {len(slowest)} of {len(self.spent)} tests, {sum(self.spent.values()):.0f} s in all"
        )
        for name, seconds in slowest:
            terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
        if self.over:
            terminalreporter.section("over budget")
            for sentence in self.over:
                terminalreporter.write_line(sentence)
