"""Each file of tests is imported by one process of a run only: by the one that runs it, right before it does.

pytest-xdist lets every process import and collect all files: 7 seconds of processor time in each of them, and 20 where no
bytecode is kept yet. Here a file is collected by its name alone, as one placeholder; when its turn comes, its tests take the
place of that. A run that names or selects single tests is collected in the usual way.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.parsing import uninterrupted


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") and is_of_whole_files(config):
        config.pluginmanager.register(LateCollection(), "late-collection")


SELECTING = ("keyword", "deselect", "lf", "failedfirst", "newfirst", "stepwise")


def is_of_whole_files(config: pytest.Config) -> bool:
    """Whether names of files are enough to choose what runs; marks that the configuration selects by are looked at later."""
    selects = any(getattr(config.option, name, None) for name in SELECTING)
    other_marks = config.option.markexpr not in config.getini("addopts")
    return not selects and not other_marks and not any("::" in argument for argument in config.args)


class LateModule(pytest.Module):
    """One file, not imported before it is awake."""

    is_awake = False

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        if self.is_awake:
            yield from super().collect()
        else:
            yield Placeholder.from_parent(self, name="tests")


class Placeholder(pytest.Item):
    """Stands for all tests of a file."""

    def tests(self) -> list[pytest.Item]:
        """Those that run, in their order; a file that cannot be imported reports that as it does otherwise."""
        module = self.parent
        assert isinstance(module, LateModule)
        module.is_awake = True
        with uninterrupted():
            items = list(self.session.genitems(module))
        self.config.hook.pytest_collection_modifyitems(session=self.session, config=self.config, items=items)
        return items

    def runtest(self) -> None:
        raise NotImplementedError("its tests run in its place")


class LateCollection:
    @pytest.hookimpl
    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> LateModule:
        return LateModule.from_parent(parent, path=module_path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, Placeholder):
            return None
        session, tests = item.session, item.tests()
        if not tests:  # all are deselected: no test ends what the test before kept for this file
            session._setupstate.teardown_exact(nextitem)
        place = session.items.index(item)
        for test, following in zip(tests, [*tests[1:], nextitem], strict=False):
            session.items[place] = test  # what xdist compares a report with
            item.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if session.shouldfail or session.shouldstop:
                break
        session.items[place] = item
        return True
