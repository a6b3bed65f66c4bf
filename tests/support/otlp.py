"""A collector that receives OTLP over HTTP and keeps the spans, as a real one would see them."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """The spans received so far, and where to send them."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.spans: list[Span] = []
        self.services: set[str] = set()

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource_spans in request.resource_spans:
            attributes = {entry.key: entry.value.string_value for entry in resource_spans.resource.attributes}
            self.services.add(attributes["service.name"])
            for scope_spans in resource_spans.scope_spans:
                self.spans += scope_spans.spans

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


def attributes(span: Span) -> dict[str, str | int]:
    return {
        entry.key: entry.value.string_value if entry.value.HasField("string_value") else entry.value.int_value
        for entry in span.attributes
    }


@contextmanager
def collector() -> Iterator[Collector]:
    found = Collector()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"collector": found}))
    found.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


class _Handler(BaseHTTPRequestHandler):
    collector: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/v1/traces":
            self.collector.take(body)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are checked by their spans."""
