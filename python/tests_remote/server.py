"""A server that behaves as its paths say: well, or in each of the ways in which servers do not."""

from __future__ import annotations

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable, Dict, List, Optional, Tuple
from urllib.parse import urlsplit

#: Bytes at a time.
PIECE = 1 << 14


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: "Server"
    protocol_version = "HTTP/1.1"
    close_connection: bool

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        name = path.strip("/").split("/")[0].replace("-", "_")
        behaviour: Optional[Callable[[], None]] = getattr(self, f"on_{name}", None)
        try:
            if behaviour is None:
                self.says(404, b"<html>nothing here</html>")
            else:
                behaviour()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_HEAD = do_PUT = do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Tests look at what is asked, and not at a log."""

    def says(self, status: int, body: bytes = b"", headers: Optional[Dict[str, str]] = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def gives(self, tag: Optional[str], start: int = 0, until: Optional[int] = None, status: int = 200) -> None:
        """The object from `start` on; only until a byte, although all is announced, where that is said."""
        whole = self.server.body
        self.send_response(status)
        self.send_header("Content-Length", str(len(whole) - start))
        # Stores always say when, and which version it is.
        self.send_header("Last-Modified", "Wed, 14 Jan 2026 10:11:12 GMT")
        if tag is not None:
            self.send_header("ETag", tag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        self.end_headers()
        self.wfile.write(whole[start:until])
        if until is not None:
            self.wfile.flush()
            self.close_connection = True

    def asked_from(self) -> Optional[int]:
        """The first byte of the range that is asked for."""
        wanted = self.headers.get("Range")
        return int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else None

    @property
    def half(self) -> int:
        return len(self.server.body) // 2

    # What servers do.

    def on_plain(self) -> None:
        self.gives(None)

    def on_tagged(self) -> None:
        self.gives('"one"')

    def on_chunked(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        whole = self.server.body
        for at in range(0, len(whole), PIECE):
            piece = whole[at : at + PIECE]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def on_no_length(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.body)
        self.close_connection = True

    def on_resumed(self) -> None:
        """Breaks off, and gives the rest on demand; on the way it breaks off once more."""
        start = self.asked_from()
        if start is None:
            return self.gives('"one"', until=self.half)
        assert self.headers["If-Match"] == '"one"'
        later = (self.half + len(self.server.body)) // 2
        return self.gives('"one"', start, until=later if start == self.half else None, status=206)

    def on_restless(self) -> None:
        """Breaks off after every kilobyte."""
        start = self.asked_from() or 0
        self.gives('"one"', start, until=start + 1024, status=206 if start else 200)

    def on_no_ranges(self) -> None:
        self.gives('"one"', until=None if self.asked_from() else self.half)

    def on_no_tag(self) -> None:
        self.gives(None, until=self.half)

    def on_weak_tag(self) -> None:
        self.gives('W/"one"', until=self.half)

    def on_changed(self) -> None:
        """As S3 does it."""
        if self.headers.get("If-Match") == '"one"':
            return self.says(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        return self.gives('"one"', until=self.half)

    def on_changed_all_the_same(self) -> None:
        """Heeds no condition."""
        start = self.asked_from()
        if start is None:
            return self.gives('"one"', until=self.half)
        return self.gives('"two"', start, status=206)

    def on_removed(self) -> None:
        if self.asked_from() is None:
            return self.gives('"one"', until=self.half)
        return self.says(404)

    def on_forbidden(self) -> None:
        self.says(403, b"<Error><Code>SignatureDoesNotMatch</Code><StringToSign>sign-this</StringToSign></Error>")

    def on_login(self) -> None:
        self.says(401)

    def on_busy(self) -> None:
        self.says(503)

    def on_busy_once(self) -> None:
        if len(self.server.asked) == 1:
            return self.says(503)
        return self.gives(None)

    def on_endless(self) -> None:
        """A pickle that never ends: one long string after the other."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"\x80\x04](")
        while True:
            self.wfile.write(b"B" + (1 << 16).to_bytes(4, "little") + bytes(1 << 16) + b"0")

    def on_endless_error(self) -> None:
        self.send_response(404)
        self.end_headers()
        while True:
            self.wfile.write(bytes(1 << 16))

    def on_silent(self) -> None:
        time.sleep(60)

    def on_redirected(self) -> None:
        self.says(302, headers={"Location": "/plain/rank0.pickle.zst"})

    def on_to(self) -> None:
        """To wherever the query says."""
        self.says(302, headers={"Location": urlsplit(self.path).query})

    def on_loop(self) -> None:
        self.says(302, headers={"Location": "/loop"})


class Server(ThreadingHTTPServer):
    """On a port of its own, for as long as a test runs."""

    daemon_threads = True

    def __init__(self, body: bytes, certificate: Optional[Tuple[str, str]] = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = body
        #: Paths and headers, in their order.
        self.asked: List[Tuple[str, Dict[str, str]]] = []
        #: Connections, whatever was asked on them.
        self.met = 0
        self.scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"

    def verify_request(self, request: object, client_address: object) -> bool:
        self.met += 1
        return True

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever is refused by memlint goes away."""

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def __enter__(self) -> "Server":
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
