"""A real training script, three processes that talk over sockets, submitted, followed and read through the real doors."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from fleet.services.authorization import access
from jobs.api.inspect import logs
from tests.support.isolation import needs_isolation
from tests.support.web import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
TRAIN = Path(__file__).parents[2] / "deploy" / "demo" / "train.yaml"


@pytest.fixture
def door(world):
    """(URL, token) of the web process."""
    user = get_user_model().objects.create_superuser("admin", password="a long password")
    with served() as port:
        yield f"http://127.0.0.1:{port}", access.mint(user, "test", life=None, now=timezone.now())[1]


def convoy(door, *words: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "CONVOY_URL": door[0], "CONVOY_TOKEN": door[1]}
    command = [sys.executable, "-m", "frontend.cli.main", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)


@needs_isolation
def test_it_trains_a_real_model_and_the_command_line_follows_its_log(world, door):
    world.member("north", 4, time_scale=1.0)
    world.apply(POLICY)
    assert convoy(door, "apply", "-f", str(TRAIN)).returncode == 0
    followed = convoy(door, "logs", "-f", "train")
    assert "rank 0: learned" in followed.stdout, followed
    world.expect("train", "Succeeded", on="north")


def test_it_lets_go_of_a_log_whose_reader_went_away(world, door):
    world.member("north", 4, time_scale=1.0)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    path = f"{door[0]}/api/v1/jobs/{world.expect('llama', 'Running').uid}/logs/?follow=true"
    world.until(lambda: not logs.following.total(), "the readers of earlier tests are gone")
    with httpx.stream("GET", path, headers={"Authorization": f"Bearer {door[1]}"}) as answer:
        lines = answer.iter_lines()
        assert next(lines)
        assert logs.following.total() == 1
    world.until(lambda: not logs.following.total(), "the place is free again")
