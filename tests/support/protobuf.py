"""Messages of protobuf as clients of Kubernetes write them, put together by hand."""

from fleet.kube.requests import protobuf


def field(number: int, content: bytes | int) -> bytes:
    """Texts and messages are below 128 bytes here, numbers below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def enveloped(api_version: str, kind: str, message: bytes) -> bytes:
    head = field(1, api_version.encode()) + field(2, kind.encode())
    return protobuf.MAGIC + field(1, head) + field(2, message)
