"""What one caller may take of a process, as the operator sets it."""

import math
from dataclasses import dataclass, replace

from fleet.core.operator_settings import setting


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the first two an address may have more than one caller whose credentials are not checked yet: several may share it."""

    per_s: float = setting(
        500.0,
        "CONVOY_REQUESTS_PER_S",
        "requests a second of one user, bursts of four times that; twice as many of one address with unchecked credentials",
        least=0.1,
    )
    at_once: int = setting(
        8,
        "CONVOY_REQUESTS_AT_ONCE",
        "requests of one user answered at once, half as many again of one address with unchecked credentials; 64 more wait",
        least=1,
        most=1000,
    )
    watches: int = setting(
        200, "CONVOY_WATCHES", "watches of one caller at the Kubernetes-style door", least=1, most=1000
    )
    all_watches: int = setting(
        1000, "CONVOY_ALL_WATCHES", "watches of all callers at the Kubernetes-style door", least=1, most=100_000
    )
    streams: int = setting(
        100,
        "CONVOY_POD_STREAMS",
        "exec, attach and port-forward of one user that are open at once; as many followed logs beside them",
        least=1,
        most=10_000,
    )
    all_streams: int = setting(
        400,
        "CONVOY_ALL_POD_STREAMS",
        "exec, attach and port-forward of all users that are open at once; as many followed logs beside them",
        least=1,
        most=100_000,
    )
    sign_ins_per_minute: int = setting(
        20, "CONVOY_SIGN_INS_PER_MINUTE", "attempts to sign in a minute from one address", least=1, most=10_000
    )
    sockets: int = setting(16, "CONVOY_SOCKETS_PER_USER", "websockets of one user at once", least=1, most=1000)
    processes: int = setting(
        1,
        "CONVOY_DOOR_PROCESSES",
        "web processes, and kube processes, that share their callers: each allows its part of the limits of one caller",
        least=1,
        most=1000,
    )
    hashing: int = 2
    """Passwords checked at once: each check is a second of work by design."""
    waiting: int = 64
    seats: int = 16
    """Requests of all callers answered at once: as many as a process has threads for them."""
    reserved: int = 4
    """Of these seats only a caller that has none takes one."""
    body: int = 8 * 1024 * 1024
    bodies: int = 128 * 1024 * 1024
    """Bytes of bodies kept until they are complete: of one address a quarter."""
    url: int = 32 * 1024
    headers: int = 64 * 1024

    @property
    def part(self) -> "Limits":
        """What this process allows, so that all together allow no more than one alone; one of each at least."""
        return replace(
            self,
            per_s=self.per_s / self.processes,
            at_once=math.ceil(self.at_once / self.processes),
            watches=math.ceil(self.watches / self.processes),
            streams=math.ceil(self.streams / self.processes),
            processes=1,
        )
