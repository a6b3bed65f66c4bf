"""A JSON column whose text is unreadable in the database, its backups and its dumps.

Keys come from ``settings.CONVOY_ENCRYPTION_KEYS``: the first encrypts, all of them decrypt, so keys can be rotated.
"""

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models


class SecretUnreadable(Exception):
    """None of the configured encryption keys fits, for example after an older backup was restored."""

    def __init__(self) -> None:
        super().__init__(
            "no key in CONVOY_ENCRYPTION_KEYS reads this secret: add the key it was written with to the end of the list, and"
            " restart; see Keys in the operations manual"
        )


@lru_cache(maxsize=4)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def cipher() -> MultiFernet:
    return _cipher(tuple(settings.CONVOY_ENCRYPTION_KEYS))


if TYPE_CHECKING:
    _Text = models.TextField[Any, Any]
else:
    _Text = models.TextField


class EncryptedJSONField(_Text):
    """Plain JSON values in Python, Fernet text in the database. Cannot be filtered on."""

    if TYPE_CHECKING:
        # What the mypy plugin takes for the type of a value.
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str:
        return cipher().encrypt(json.dumps(value, separators=(",", ":")).encode()).decode()

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        if value is None:
            return None
        try:
            return json.loads(cipher().decrypt(value.encode()))
        except InvalidToken as e:
            raise SecretUnreadable from e

    def to_python(self, value: Any) -> Any:
        return value
