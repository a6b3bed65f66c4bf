"""The run on PostgreSQL leaves out the tests of the pure packages, and none of these can come to need a database unseen."""

import configparser
from fnmatch import fnmatch
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.bootstrap.home import ROOT
from tests.support import pure, servers


def item(nodeid: str, *fixtures: str, marks: tuple[str, ...] = ()) -> Any:
    marked = {name: pytest.mark.django_db for name in marks}
    return SimpleNamespace(nodeid=nodeid, fixturenames=list(fixtures), get_closest_marker=marked.get)


def test_its_folders_hold_tests_of_packages_that_may_import_neither_django_nor_a_client() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    contract = contracts["importlinter:contract:pure"]
    assert {"django", "redis", "channels", "celery"} <= set(contract["forbidden_modules"].split())
    for folder in pure.FOLDERS:
        package = folder.removeprefix("tests/").replace("/", ".")
        assert any(fnmatch(package, pattern) for pattern in contract["source_modules"].split()), package
        assert any((ROOT / folder).rglob("test_*.py"))


@pytest.mark.parametrize(
    "asks",
    [
        item("tests/jobs/core/test_x.py::test_1", "db", "django_db_setup"),
        item("tests/jobs/kinds/test_x.py::test_1", marks=("django_db",)),
    ],
)
def test_one_of_them_that_asks_for_the_database_fails(asks: Any) -> None:
    with pytest.raises(pytest.fail.Exception, match="move it to the tests of the services"):
        pure.pytest_runtest_setup(asks)


def test_all_others_may_ask_for_it_and_they_may_do_without() -> None:
    pure.pytest_runtest_setup(item("tests/jobs/services/test_x.py::test_1", "db", "django_db_setup"))
    pure.pytest_runtest_setup(item("tests/jobs/core/test_x.py::test_1", "tmp_path"))


def test_the_run_on_postgresql_leaves_them_out_unless_they_are_named() -> None:
    assert {f"--ignore={folder}" for folder in pure.FOLDERS} <= set(servers.paths(["-x"]))
    assert servers.paths(["-x", pure.FOLDERS[0]]) == ["-x", pure.FOLDERS[0]]


def test_nor_does_it_run_what_has_no_writers_beside_it_unless_that_is_named() -> None:
    for file in servers.WITHOUT_WRITERS:
        assert (ROOT / file).is_file() and file.startswith(servers.PACKAGES), file
        assert f"--ignore={file}" in servers.paths(["-x"])
        assert servers.paths(["-x", file]) == ["-x", file]


@pytest.mark.parametrize("file", ["tests/fleet/kubeapi/test_kubectl_exec.py", "tests/jobs/kubeapi/test_columns.py"])
def test_streams_that_write_their_audit_and_paths_into_manifests_run_there(file: str) -> None:
    assert (ROOT / file).is_file() and f"--ignore={file}" not in servers.paths(["-x"])
