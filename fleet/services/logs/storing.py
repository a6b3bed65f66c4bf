"""Keeps the bytes of a log, compressed and encrypted with a key of its own: in its row, a folder, or a bucket.

The key stands in the row under the fleet's encryption keys, so that rotating those changes no file, and a log whose row is
deleted can be read no more, even from a backup of the folder. Where a bucket and a folder are set, the bucket is written to and
both are read, so that logs which were kept before the bucket was set stay readable.
"""

import os
import secrets
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from fleet.models import ArchivedLog, EndedPod
from fleet.services.logs import bucket
from fleet.services.logs.bucket import BucketFailed

_NONCE = 12
_LEVEL = 6


class LogUnreadable(Exception):
    """The file of a log is gone, or is not the one that was written."""


class StoreFailed(Exception):
    """What keeps the logs does not answer, or refuses; it may do so later."""


def pack(text: bytes) -> tuple[str, bytes]:
    """A new key, as text, and what is stored."""
    key, nonce = AESGCM.generate_key(bit_length=256), secrets.token_bytes(_NONCE)
    return b64encode(key).decode(), nonce + AESGCM(key).encrypt(nonce, zlib.compress(text, _LEVEL), None)


def unpack(key: str, stored: bytes) -> bytes:
    try:
        return zlib.decompress(AESGCM(b64decode(key)).decrypt(stored[:_NONCE], stored[_NONCE:], None))
    except (InvalidTag, ValueError, zlib.error) as e:
        raise LogUnreadable("what is stored of the log is not what was written") from e


def is_outside() -> bool:
    """Whether logs are kept outside the database."""
    return bool(settings.CONVOY_LOGS_S3.url or settings.CONVOY_LOGS_FOLDER)


def write(ref: UUID, number: int, stored: bytes) -> None:
    """It is there whole or not at all. Written again, it replaces that of a try that was broken off. Raises StoreFailed."""
    try:
        if settings.CONVOY_LOGS_S3.url:
            bucket.write(settings.CONVOY_LOGS_S3, _name(ref, number), stored)
        else:
            _write_file(_path(ref, number), stored)
    except BucketFailed as e:
        raise StoreFailed(str(e)) from e
    except OSError as e:
        raise StoreFailed(f"the file cannot be written: {e.strerror}; see CONVOY_LOGS_FOLDER") from e


def _write_file(path: Path, stored: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_suffix(f".{secrets.token_hex(4)}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(stored)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read(log: ArchivedLog) -> bytes:
    """The text of the log. Raises LogUnreadable, or StoreFailed where trying again may help."""
    if log.data is not None:
        return unpack(log.key, bytes(log.data))
    stored = None
    if settings.CONVOY_LOGS_S3.url:
        try:
            stored = bucket.read(settings.CONVOY_LOGS_S3, _name(log.pod.ref, log.number))
        except BucketFailed as e:
            raise StoreFailed(str(e)) from e
    if stored is None:
        stored = _read_file(log)
    return unpack(log.key, stored)


def _read_file(log: ArchivedLog) -> bytes:
    if not settings.CONVOY_LOGS_FOLDER:
        raise LogUnreadable("it is not where logs are kept now; see CONVOY_LOGS_S3 and CONVOY_LOGS_FOLDER")
    try:
        return _path(log.pod.ref, log.number).read_bytes()
    except OSError as e:
        raise LogUnreadable(f"the file of the log cannot be read: {e.strerror}; see CONVOY_LOGS_FOLDER") from e


def delete_all(pod: EndedPod, numbers: Iterable[int]) -> None:
    """Also those of a try that was broken off. Before the rows are deleted: they are what the files are found by.

    ``numbers`` are those that the pod's logs may have: a bucket is not searched. Raises StoreFailed.
    """
    for number in numbers if settings.CONVOY_LOGS_S3.url else ():
        _delete_object(pod.ref, number)
    if settings.CONVOY_LOGS_FOLDER:
        for path in _path(pod.ref, 0).parent.glob(f"{pod.ref}.*"):
            path.unlink(missing_ok=True)


def delete(ref: UUID, number: int) -> None:
    """Raises StoreFailed."""
    if settings.CONVOY_LOGS_S3.url:
        _delete_object(ref, number)
    if settings.CONVOY_LOGS_FOLDER:
        _path(ref, number).unlink(missing_ok=True)


def _delete_object(ref: UUID, number: int) -> None:
    try:
        bucket.delete(settings.CONVOY_LOGS_S3, _name(ref, number))
    except BucketFailed as e:
        raise StoreFailed(str(e)) from e


def _path(ref: UUID, number: int) -> Path:
    return Path(settings.CONVOY_LOGS_FOLDER) / _name(ref, number)


def _name(ref: UUID, number: int) -> str:
    return f"{ref.hex[:2]}/{ref}.{number}"
