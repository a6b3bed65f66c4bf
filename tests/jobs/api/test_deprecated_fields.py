"""Fields that were renamed answer under both names for one release, and the contract marks the former ones."""

import json
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.services.scheduling import loop
from tests.jobs.api.explaining import explained, submitted
from tests.support.books import a_cluster

FORMER = {
    "ClusterExplained": {
        "short": "missing",
        "never": "never_fits",
        "term": "affinity_term",
        "parts": "score_parts",
        "held": "holds",
    },
    "Explanation": {"never": "never_fits"},
    "Short": {"short": "missing"},
}


@pytest.mark.django_db
def test_it_answers_under_the_former_names_too(as_admin):
    a_cluster("north", gpus=4)
    a_cluster("south", gpus=16)
    fits, waits = submitted("llama", gpus=2), submitted("whisper", gpus=40)
    loop.run(timezone.now)
    for job in (fits, waits):
        explanation = explained(as_admin, job)
        assert explanation["never_fits"] is explanation["never"]
        for cluster in explanation["clusters"]:
            assert all(cluster[new] == cluster[old] for old, new in FORMER["ClusterExplained"].items())
    reason = as_admin.get(f"/api/v1/jobs/{waits.uid}/").json()["reason"]
    assert reason["clusters"] and all(each["missing"] == each["short"] != {} for each in reason["clusters"])


@pytest.mark.parametrize("name", FORMER)
def test_it_marks_the_former_names_as_deprecated(name):
    fields = json.loads(Path("docs/openapi.json").read_text())["components"]["schemas"][name]["properties"]
    assert {field for field, schema in fields.items() if schema.get("deprecated")} == FORMER[name].keys()
    assert set(FORMER[name].values()) <= fields.keys()
