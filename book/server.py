"""Serve the built book on 127.0.0.1, compressed as a public server would, and find a browser."""

import contextlib
import functools
import gzip
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_BROWSER = "No Chromium or Chrome on PATH. On Debian or Ubuntu: apt install chromium"
TEXT = {".html", ".js", ".css", ".svg", ".json", ".txt", ".xml"}


class GzipHandler(http.server.SimpleHTTPRequestHandler):
    """Answer with compressed text files and the book's own 404 page, without a log."""

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Send one file."""
        path, status = Path(self.translate_path(self.path)), 200
        if path.is_dir():
            path = path / "index.html"
        if not path.is_file():
            path, status = Path(self.directory) / "404.html", 404
        body = path.read_bytes()
        self.send_response(status)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix in TEXT:
            body = gzip.compress(body, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serve(folder: Path = HTML) -> Iterator[str]:
    """Yield the address of a folder while it is served."""
    handler = functools.partial(GzipHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


def find_browser() -> str | None:
    """Give the path of a browser that can run without a screen."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)
