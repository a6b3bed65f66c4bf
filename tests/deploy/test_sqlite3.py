"""The product's SQLite: what SQLite itself would turn away at once waits for its turn."""

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest
from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler

Open = Callable[[], BaseDatabaseWrapper]
WRITE = "INSERT INTO seen VALUES (1)"


@pytest.fixture
def another(tmp_path: Path, transactional_db: None, request: pytest.FixtureRequest) -> Iterator[Open]:
    """One more connection to the same file; none of them tries twice."""
    options = {"transaction_mode": "IMMEDIATE", "timeout": 0, "init_command": "PRAGMA journal_mode=WAL"}
    settings: dict[str, object] = {
        "ENGINE": "deploy.config.sqlite3",
        "NAME": str(tmp_path / "file.sqlite3"),
        "OPTIONS": options,
    }
    settings |= {"TURN_TIMEOUT_S": getattr(request, "param", 20)}
    made: list[BaseDatabaseWrapper] = []

    def connect() -> BaseDatabaseWrapper:
        made.append(ConnectionHandler({"default": settings})["default"])
        made[-1].inc_thread_sharing()
        return made[-1]

    connect().cursor().execute("CREATE TABLE seen (number)")
    yield connect
    for connection in made:
        connection.close()


def begin(connection: BaseDatabaseWrapper) -> None:
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)


def end(connection: BaseDatabaseWrapper) -> None:
    connection.commit()
    connection.set_autocommit(True)


def count(connection: BaseDatabaseWrapper) -> int:
    return int(connection.cursor().execute("SELECT count(*) FROM seen").fetchone()[0])


def alone(connection: BaseDatabaseWrapper) -> None:
    connection.cursor().execute(WRITE)


def whole(connection: BaseDatabaseWrapper) -> None:
    begin(connection)
    connection.cursor().execute(WRITE)
    end(connection)


@pytest.mark.parametrize("write", [alone, whole])
def test_a_writer_waits_until_the_one_before_has_committed(
    another: Open, write: Callable[[BaseDatabaseWrapper], None]
) -> None:
    first, second, began = another(), another(), Event()
    with ThreadPoolExecutor(1) as pool:
        begin(first)
        pool.submit(began.set)
        later: Future[None] = pool.submit(write, second)
        assert began.wait(60) and count(first) == 0 and not later.done()
        end(first)
        later.result(60)
    assert count(first) == 1


def test_the_turn_ends_with_what_fails_and_with_who_leaves(another: Open) -> None:
    first, second, third = another(), another(), another()
    begin(first)
    first.rollback()
    begin(second)
    second.close()
    with pytest.raises(DatabaseError):
        third.cursor().execute("INSERT INTO nowhere VALUES (1)")
    first.set_autocommit(True)
    alone(first)
    assert count(third) == 1


def test_who_only_reads_waits_for_nobody(another: Open) -> None:
    first, second = another(), another()
    begin(first)
    assert count(second) == 0
    end(first)


@pytest.mark.parametrize("another", [0.1], indirect=True)
@pytest.mark.parametrize("write", [alone, whole])
def test_a_writer_gives_up_when_the_one_before_never_ends_and_goes_on_once_it_does(
    another: Open, write: Callable[[BaseDatabaseWrapper], None]
) -> None:
    first, second = another(), another()
    begin(first)
    for _ in range(3):
        with pytest.raises(OperationalError, match="locked: another process has been writing for more than 0.1 s"):
            write(second)
        second.set_autocommit(True)
    end(first)
    write(second)
    assert count(first) == 1
    write(first)
    assert count(second) == 2


def test_a_thread_that_ends_without_closing_its_connection_leaves_no_file_open(
    tmp_path: Path, transactional_db: None
) -> None:
    settings: dict[str, object] = {"ENGINE": "deploy.config.sqlite3", "NAME": str(tmp_path / "file.sqlite3")}

    def left_open() -> None:
        ConnectionHandler({"default": settings})["default"].cursor().execute("CREATE TABLE IF NOT EXISTS seen (number)")
        opened.extend(files_below(tmp_path))

    opened = []
    thread = Thread(target=left_open)
    thread.start()
    thread.join()
    gc.collect()
    assert opened and files_below(tmp_path) == []


def files_below(folder: Path) -> list[str]:
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    names = [os.readlink(link) for link in links if os.path.lexists(link)]
    return [name for name in names if str(folder) in name]
