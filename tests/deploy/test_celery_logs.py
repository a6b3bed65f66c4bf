"""What a worker and beat log is decided by `CONVOY_LOG_LEVEL`, as for every other process, and not by an option of Celery."""

import logging

import pytest
from celery.app.log import Logging

from deploy.config.celery import app


@pytest.fixture
def root(monkeypatch):
    """The root logger of a process in which Django has configured logging, and Celery has not yet."""
    monkeypatch.setattr(Logging, "_setup", False)
    logger = logging.getLogger()
    before = logger.level
    logger.setLevel(logging.INFO)
    yield logger
    logger.setLevel(before)


@pytest.mark.parametrize("option", [None, "WARNING", "DEBUG"])
def test_it_keeps_the_level_of_the_settings_whatever_celery_is_started_with(root, option):
    """Without an option Celery's own is WARNING, which hid every event that the operations guide tells to look for."""
    handlers = list(root.handlers)
    app.log.setup(loglevel=option)
    assert root.level == logging.INFO and root.handlers == handlers
