"""A job whose pods or Services could have no name in any member is refused when it is submitted, with the limit."""

import pytest

from fleet.errors import InvalidInput
from jobs.models import Job
from tests.support import books
from tests.support.world import pytorch_job


@pytest.mark.django_db
def test_it_is_refused_at_submission_and_nothing_is_stored() -> None:
    with pytest.raises(InvalidInput, match="metadata.name has 60 letters and may have at most 54"):
        books.apply(pytorch_job("a" * 60))
    assert not Job.objects.exists()
