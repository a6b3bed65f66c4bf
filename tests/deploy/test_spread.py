"""Tests are spread over processes by whole files, the longest first, however many processes are asked for."""

import pytest

from deploy.bootstrap.testing import ORDER, processes, spread


@pytest.mark.parametrize("argv", [[], ["--postgres"], ["tests/jobs", "-k", "gang"]])
def test_it_takes_as_many_processes_as_suit_the_machine(argv: list[str]) -> None:
    assert spread(argv) == ["-n", str(processes()), *ORDER]


@pytest.mark.parametrize("argv", [["--postgres", "-n", "4"], ["-n4"], ["-n", "auto"]])
def test_it_keeps_the_order_with_another_number_of_them(argv: list[str]) -> None:
    assert spread(argv) == [*ORDER]


@pytest.mark.parametrize("argv", [["-n", "0"], ["-n0", "tests/jobs"]])
def test_one_process_alone_takes_tests_in_their_own_order(argv: list[str]) -> None:
    assert spread(argv) == []
