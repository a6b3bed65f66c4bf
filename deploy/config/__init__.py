"""Puts the product together; the task queue with it, so that every enqueue reaches our broker and no other."""

from deploy.config.celery import app

__all__ = ["app"]
