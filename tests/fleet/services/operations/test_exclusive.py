"""A periodic task runs in one process at a time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.services.operations.exclusive import exclusive

pytestmark = pytest.mark.django_db
NOW = timezone.now()
TERM = timedelta(seconds=10)


def test_it_lets_no_second_one_in_until_the_first_has_ended():
    with (
        exclusive("check", NOW, TERM) as first,
        exclusive("check", NOW, TERM) as second,
        exclusive("other", NOW, TERM) as other,
    ):
        assert first and not second and other
    with exclusive("check", NOW, TERM) as third:
        assert third


def test_one_that_says_that_it_goes_on_keeps_its_turn_until_another_has_taken_it():
    later = NOW + 2 * TERM
    with exclusive("check", NOW, TERM) as first:
        assert first.keep(later)
        with exclusive("check", NOW + TERM, TERM) as second:
            assert not second
        with exclusive("check", later + TERM, TERM) as third:
            assert third and not first.keep(later + TERM)


def test_it_ends_with_an_error_too():
    with pytest.raises(ZeroDivisionError), exclusive("check", NOW, TERM):
        raise ZeroDivisionError
    with exclusive("check", NOW, TERM) as again:
        assert again


@pytest.mark.parametrize("later", [TERM + timedelta(seconds=1), -timedelta(hours=1)])
def test_it_is_free_after_the_term_of_one_that_died_and_after_a_clock_was_set_back(later):
    with exclusive("check", NOW, TERM), exclusive("check", NOW + later, TERM) as taken_over:
        assert taken_over
        with exclusive("check", NOW + later, TERM) as third:
            assert not third


def test_one_that_ends_late_does_not_end_the_lease_of_its_successor():
    with exclusive("check", NOW, TERM) as first:
        late = exclusive("check", NOW + 2 * TERM, TERM)
        assert first and late.__enter__()
    with exclusive("check", NOW + 2 * TERM, TERM) as third:
        assert not third
    late.__exit__(None, None, None)
