"""The database of a test, for other processes."""

from urllib.parse import quote

from django.db import connection


def url() -> str:
    """For ``DATABASE_URL``; the test needs ``transaction=True``, or the process sees nothing of it."""
    known = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{known['NAME']}"
    user = quote(known["USER"]) + (f":{quote(known['PASSWORD'])}" if known["PASSWORD"] else "")
    return f"postgresql://{user}@{known['HOST']}:{known['PORT']}/{known['NAME']}"
