"""Keeps the bytes of a log: compressed, encrypted with a key of its own, in its row or in a file of the operator's folder.

The key stands in the row under the fleet's encryption keys, so that rotating those changes no file, and a log whose row is
deleted can be read no more, even from a backup of the folder.
"""

import os
import secrets
import zlib
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from fleet.models import ArchivedLog, EndedPod

_NONCE = 12
_LEVEL = 6


class LogUnreadable(Exception):
    """The file of a log is gone, or is not the one that was written."""


def pack(text: bytes) -> tuple[str, bytes]:
    """A new key, as text, and what is stored."""
    key, nonce = AESGCM.generate_key(bit_length=256), secrets.token_bytes(_NONCE)
    return b64encode(key).decode(), nonce + AESGCM(key).encrypt(nonce, zlib.compress(text, _LEVEL), None)


def unpack(key: str, stored: bytes) -> bytes:
    try:
        return zlib.decompress(AESGCM(b64decode(key)).decrypt(stored[:_NONCE], stored[_NONCE:], None))
    except (InvalidTag, ValueError, zlib.error) as e:
        raise LogUnreadable("what is stored of the log is not what was written") from e


def has_folder() -> bool:
    return bool(settings.CONVOY_LOGS_FOLDER)


def write_file(ref: UUID, number: int, stored: bytes) -> None:
    """The file is there whole or not at all. Written again, it replaces the one of a try that was broken off."""
    path = _path(ref, number)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_suffix(f".{secrets.token_hex(4)}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(stored)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read(log: ArchivedLog) -> bytes:
    """The text of the log. Raises LogUnreadable."""
    if log.data is not None:
        return unpack(log.key, bytes(log.data))
    try:
        stored = _path(log.pod.ref, log.number).read_bytes()
    except OSError as e:
        raise LogUnreadable(f"the file of the log cannot be read: {e.strerror}; see CONVOY_LOGS_FOLDER") from e
    return unpack(log.key, stored)


def delete_files(pod: EndedPod) -> None:
    """Also those of a try that was broken off. Before the rows are deleted: they are what the files are found by."""
    if not has_folder():
        return
    folder = _path(pod.ref, 0).parent
    for path in folder.glob(f"{pod.ref}.*"):
        with suppress(FileNotFoundError):
            path.unlink()


def delete_file(ref: UUID, number: int) -> None:
    if has_folder():
        _path(ref, number).unlink(missing_ok=True)


def _path(ref: UUID, number: int) -> Path:
    return Path(settings.CONVOY_LOGS_FOLDER) / ref.hex[:2] / f"{ref}.{number}"
