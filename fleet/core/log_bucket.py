"""Where in S3 the logs of ended pods are kept, as the operator's settings say it."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fleet.core.request_signature import Credentials


@dataclass(frozen=True, slots=True)
class LogBucket:
    url: str = ""
    """Of the folder: https://HOST/BUCKET/PREFIX, or https://BUCKET.HOST/PREFIX; empty: logs are kept elsewhere."""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    region: str = "us-east-1"

    @property
    def credentials(self) -> Credentials:
        return Credentials(self.access_key, self.secret_key, self.region)

    def address(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}"

    def faults(self) -> list[str]:
        """One sentence for each value that makes no sense. None repeats a value that may hold a secret."""
        if not self.url:
            return []
        faults = []
        url = urlsplit(self.url)
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
            faults.append(
                "CONVOY_LOGS_S3 is no address such as https://s3.example.com/BUCKET/PREFIX: without user, query or fragment"
            )
        missing = [name for name in ("access_key", "secret_key", "region") if not getattr(self, name)]
        faults += [f"CONVOY_LOGS_S3 is set and CONVOY_LOGS_S3_{name.upper()} is not: set it" for name in missing]
        return faults
