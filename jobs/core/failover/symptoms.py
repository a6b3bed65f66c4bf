"""Reads what ended a training process out of the end of its log: a fault of a GPU, lack of memory, data, its own exception.

A log is written by the tenant, who may write into it what he likes. Therefore a symptom is shown, and may keep the job itself
off a node, but never says that a node is at fault for other jobs, and never widens a budget (`jobs.core.failover.causes`). If
one process of a gang ends, the others lose their peer; hence what a process says of itself takes precedence over that.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from jobs.core.failover import tracebacks
from jobs.core.failover.tracebacks import Raised

_MESSAGE_CHARS = 300


class Symptom(StrEnum):
    GPU_FAULT = "GpuFault"
    """A GPU or its links are broken: an Xid of hardware, an uncorrectable ECC error, a GPU that fell off the bus."""
    NODE_CHECK = "NodeCheck"
    """The check of the gang before its start found the node faulty or slow."""
    OUT_OF_MEMORY = "OutOfMemory"
    """Memory of the pod or its node, or shared memory."""
    GPU_OUT_OF_MEMORY = "GpuOutOfMemory"
    DATA = "DataError"
    """A file is missing or broken, or its storage failed."""
    EXCEPTION = "Exception"
    """The program raised an exception that is none of the others."""
    NETWORK_FAULT = "NetworkFault"
    """The fabric reported an error. Also seen by the processes whose peer has died."""
    KILLED = "Killed"
    """SIGKILL from outside, most often because the memory of the node is used up."""
    CRASHED = "Crashed"
    """SIGSEGV, SIGABRT and the like: the process ended without an exception."""
    TERMINATED = "Terminated"
    """SIGTERM: the pod or its launcher was asked to stop."""
    EXITED = "Exited"
    """It ended with an exit code of its own, and the log does not say why."""
    PEER_LOST = "PeerLost"
    """Another process stopped answering: a collective timed out, or a connection was closed."""


@dataclass(frozen=True, slots=True)
class Finding:
    symptom: Symptom
    message: str
    rank: int | None = None
    """Global rank, if the log names it."""
    where: str = ""
    """File, line and function."""
    excerpt: tuple[str, ...] = ()

    @property
    def precedence(self) -> int:
        return _PRECEDENCE[self.symptom]

    def as_json(self) -> dict[str, Any]:
        known = {name: value for name, value in asdict(self).items() if value not in (None, "", ())}
        return {**known, "symptom": self.symptom.value, "excerpt": list(self.excerpt)}


_PRECEDENCE: Mapping[Symptom, int] = {
    Symptom.GPU_FAULT: 0,
    Symptom.NODE_CHECK: 0,
    Symptom.OUT_OF_MEMORY: 1,
    Symptom.GPU_OUT_OF_MEMORY: 1,
    Symptom.DATA: 1,
    Symptom.EXCEPTION: 1,
    Symptom.NETWORK_FAULT: 2,
    Symptom.KILLED: 3,
    Symptom.CRASHED: 3,
    Symptom.TERMINATED: 4,
    Symptom.EXITED: 5,
    Symptom.PEER_LOST: 6,
}
_HARDWARE_XIDS = frozenset({48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 110, 119, 120, 136, 140, 143, 145, 149, 150, 151})
"""By NVIDIA's catalogue those that need a reset or another GPU. The others (13, 31, 43, ...) are mostly the program's."""
_XID = re.compile(r"\bXid\b(?: \(PCI:[0-9a-fA-F:.]{1,20}\))?\s?[:=]?\s?(\d{1,3})\b")
_LINES: Sequence[tuple[Symptom, re.Pattern[str]]] = (
    (
        Symptom.GPU_FAULT,
        re.compile(
            r"uncorrectable (?:ECC|NVLink) error|CUDA_ERROR_ECC_UNCORRECTABLE|fallen off the bus|\bGPU is lost\b|"
            r"Driver/library version mismatch|all CUDA-capable devices are busy or unavailable|"
            r"Got async event\s?: (?:port error|local catastrophic error)"
        ),
    ),
    (
        Symptom.NODE_CHECK,
        re.compile(r'^\{"name":"convoy\.nodecheck",.{1,300}"verdict":"(?:faulty|slow)"'),
    ),
    (
        Symptom.OUT_OF_MEMORY,
        re.compile(
            r"[Mm]emory cgroup out of memory: Killed process|\boom-kill:|DataLoader worker \(pid.{0,40} is killed by signal: "
            r"(?:Killed|Bus error)|insufficient shared memory \(shm\)|CUDA error: out of host memory"
        ),
    ),
    (
        Symptom.NETWORK_FAULT,
        re.compile(r"NET/IB ?P? ?: ?Got completion (?:from peer|with error)|\bibv_\w{1,40} failed|No route to host"),
    ),
    (Symptom.TERMINATED, re.compile(r"got signal: 15\b|Received Signals\.SIGTERM")),
    (
        Symptom.PEER_LOST,
        re.compile(
            r"Watchdog caught collective operation timeout|ncclRemoteError|Connection (?:closed|reset) by peer|"
            r"RendezvousTimeoutError|NCCL watchdog thread terminated"
        ),
    ),
)
"""Lines that say so wherever they stand. What a traceback says is read from its last line only."""
_EXCEPTIONS: Sequence[tuple[Symptom, re.Pattern[str]]] = (
    (
        Symptom.GPU_OUT_OF_MEMORY,
        re.compile(r"OutOfMemoryError\b|(?:CUDA|HIP|NPU|MUSA|MACA) out of memory|CUDNN_STATUS_ALLOC_FAILED"),
    ),
    (
        Symptom.OUT_OF_MEMORY,
        re.compile(r"^MemoryError\b|Cannot allocate memory|can't allocate memory|\(shm\)|killed by signal: "),
    ),
    (
        Symptom.TERMINATED,
        re.compile(r"SignalException\b|^KeyboardInterrupt\b|got signal: 15\b"),
    ),
    (
        Symptom.PEER_LOST,
        re.compile(
            r"Dist(?:Backend|Network|Store)Error\b|NCCL (?:error|communicator)|Connection (?:closed|reset|refused)|"
            r"^(?:BrokenPipe|ConnectionReset|ConnectionRefused|ConnectionAborted)Error\b|Rendezvous\w{0,30}Error\b|"
            r"collective operation timeout|\bgloo\b.{0,80}(?:[Tt]imed out|closed)"
        ),
    ),
    (
        Symptom.DATA,
        re.compile(
            r"^FileNotFoundError\b|^IsADirectoryError\b|^NotADirectoryError\b|^UnicodeDecodeError\b|^EOFError\b|"
            r"\[Errno (?:5|28|107|116)\]|PytorchStreamReader failed|SafetensorError\b|BadZipFile\b|UnpicklingError\b|"
            r"ArrowInvalid\b|JSONDecodeError\b|DatasetNotFoundError\b|RepositoryNotFoundError\b|NoSuch(?:Key|Bucket)\b"
        ),
    ),
)
_LAUNCHERS = re.compile(
    r"ChildFailedError$|ProcessRaisedException$|ProcessExitedException$|^SystemExit$|CalledProcessError$"
)
"""Exceptions by which launchers pass on that a process has ended; what ended it stands elsewhere."""
_ROOT_CAUSE = "Root Cause (first observed failure)"
_FIELD = re.compile(r"\s{1,8}(rank|exitcode|traceback)\s{0,8}:\s(.{1,300})$")
_SIGNALS: Mapping[int, Symptom] = {
    -9: Symptom.KILLED,
    -7: Symptom.OUT_OF_MEMORY,
    -6: Symptom.CRASHED,
    -11: Symptom.CRASHED,
    -15: Symptom.TERMINATED,
}


def read(log: str) -> Finding | None:
    """What the end of a log says of the end of its process. None if it says nothing that is known."""
    lines = tracebacks.clean(log)
    symptoms = [*_raised(lines), *_said(lines), *_summarized(lines)]
    rank = next((rank for _, finding in symptoms if (rank := finding.rank) is not None), None)
    best = min(symptoms, key=lambda each: (each[1].precedence, each[0]), default=None)
    if best is None:
        return None
    finding = best[1]
    return finding if finding.rank is not None or rank is None else _with_rank(finding, rank, lines)


def most_telling(findings: Iterable[tuple[Any, Finding]]) -> tuple[Any, Finding] | None:
    """Of several logs, the finding that shows the cause best; of equals the first."""
    return min(findings, key=lambda each: each[1].precedence, default=None)


def _with_rank(finding: Finding, rank: int, lines: Sequence[str]) -> Finding:
    """torchrun names the rank that failed first at the end, for processes that wrote without a prefix."""
    is_named = any(_ROOT_CAUSE in line for line in lines)
    return Finding(finding.symptom, finding.message, rank, finding.where, finding.excerpt) if is_named else finding


def _raised(lines: Sequence[str]) -> Iterator[tuple[int, Finding]]:
    for raised in tracebacks.find(lines):
        if not _LAUNCHERS.search(raised.name):
            where = tracebacks.frame_of(raised.excerpt)
            yield raised.position, Finding(_symptom_of(raised), _cut(str(raised)), raised.rank, where, raised.excerpt)


def _symptom_of(raised: Raised) -> Symptom:
    text = f"{raised.name.rpartition('.')[2]}: {raised.message}"
    fault = next((symptom for symptom, pattern in _LINES[:1] if pattern.search(text)), None)
    return fault or next((symptom for symptom, pattern in _EXCEPTIONS if pattern.search(text)), Symptom.EXCEPTION)


def _said(lines: Sequence[str]) -> Iterator[tuple[int, Finding]]:
    for position, line in enumerate(lines):
        text, rank = tracebacks.without_prefix(line)
        symptom = _symptom_of_line(text)
        if symptom is not None:
            yield position, Finding(symptom, _cut(text), rank, excerpt=tracebacks.excerpt_of([text.strip()]))


def _symptom_of_line(text: str) -> Symptom | None:
    if (xid := _XID.search(text)) and int(xid[1]) in _HARDWARE_XIDS:
        return Symptom.GPU_FAULT
    return next((symptom for symptom, pattern in _LINES if pattern.search(text)), None)


def _summarized(lines: Sequence[str]) -> Iterator[tuple[int, Finding]]:
    """What torchrun writes of the process that failed first: its rank, and the signal that ended it."""
    for position, line in enumerate(lines):
        if _ROOT_CAUSE not in line:
            continue
        block = lines[position : position + 8]
        fields = {match[1]: match[2] for text in block if (match := _FIELD.match(text))}
        code, rank = _number(fields.get("exitcode", "")), _number(fields.get("rank", ""))
        symptom = _SIGNALS.get(code or 0)
        if symptom is not None:
            message = f"rank {rank} ended with signal {-(code or 0)}"
            yield (
                position,
                Finding(symptom, message, rank, excerpt=tracebacks.excerpt_of([text.strip() for text in block])),
            )
        elif rank is not None:
            message = f"rank {rank} ended with exit code {code}"
            yield position, Finding(Symptom.EXITED, message, rank)


def _number(text: str) -> int | None:
    match = re.match(r"-?\d{1,9}", text)
    return int(match[0]) if match else None


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MESSAGE_CHARS else f"{words[: _MESSAGE_CHARS - 1]}…"
