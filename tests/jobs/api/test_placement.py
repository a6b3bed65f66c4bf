"""Where a job's ranks are, and the speed of a model anywhere, over REST."""

import pytest

pytestmark = pytest.mark.django_db


def test_it_foretells_the_speed_of_a_known_model_by_place(as_viewer):
    found = as_viewer.get("/api/v1/speeds/?model=vgg16&gpus=4").json()["results"]
    assert [each["gbs"] for each in found] == [80.0, 10.0, 2.25, 0.85]
    assert [each["per_gpu"] for each in found][:1] == [205.1] and found[0]["speedup"] > found[2]["speedup"] > 1


def test_it_foretells_the_speed_of_any_other_by_what_it_weighs(as_viewer):
    found = as_viewer.get("/api/v1/speeds/?gpus=16&step_seconds=0.5&gradient_bytes=2e9").json()["results"]
    assert found[0]["step_s"] == pytest.approx(0.5 + 2 * 15 / 16 * 2e9 / 10e9 - 0.443 * 2 / 3 * 0.5, abs=1e-4)


@pytest.mark.parametrize("query", ["gpus=4", "gpus=4&model=llama", "gpus=4&step_seconds=nan&gradient_bytes=1"])
def test_it_says_what_it_does_not_know(as_viewer, query):
    answer = as_viewer.get(f"/api/v1/speeds/?{query}")
    assert answer.status_code == 422 and answer.json()["errors"]


def test_gpus_must_be_told(as_viewer):
    assert as_viewer.get("/api/v1/speeds/?model=vgg16").status_code in (400, 422)
