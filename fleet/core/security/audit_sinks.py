"""Where the operator wants the audit's lines handed on to; read from the environment by the composition root."""

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where lines are handed on to; empty: nowhere."""

    file: str = ""
    syslog: str = ""
    """udp://HOST:PORT, tcp://HOST:PORT or the path of a local socket."""
    webhook: str = ""
    webhook_token: str = ""

    def faults(self) -> list[str]:
        """One sentence for each value that makes no sense."""
        faults = []
        if self.syslog and urlsplit(self.syslog).scheme not in ("udp", "tcp") and not self.syslog.startswith("/"):
            faults.append(f"CONVOY_AUDIT_SYSLOG={self.syslog!r} is neither udp://HOST:PORT, tcp://HOST:PORT nor a path")
        if self.webhook and urlsplit(self.webhook).scheme not in ("http", "https"):
            faults.append(f"CONVOY_AUDIT_WEBHOOK={self.webhook!r} is no http or https address")
        return faults
