"""Who may see the page, and what may come in from it.

The library that serves the page, viser, has no say in either: who reaches its port is let in, and what comes in may,
among other things, open a tunnel to the internet. So each request passes `Gate` before viser sees it, and each message
`is_wanted`. Both reach into viser's own parts, whose versions are bounded in pyproject; should one be missing,
the page does not open.
"""

from __future__ import annotations

import contextlib
import errno
import http
import io
import os
import secrets
import socket
from collections.abc import Iterator
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ...errors import OptionsError, message

__all__ = ["LOOPBACK", "Gate", "guarded_server", "is_wanted"]

PORTS = 1000
"""Tried from the one that is asked for"""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "tumble_token"
WANTED = ("ViewerCameraMessage", "SceneNodeClickMessage", "ScenePointerMessage", "GuiUpdateMessage")
"""Where a browser looks from, what is clicked, and what its controls are set to."""


class Gate:
    """Lets a request in if it is for this machine by name (no page of another site can reach it, whatever name it gives
    itself), or if it has the token where the page is open to other machines."""

    def __init__(self, token: str | None) -> None:
        self.token = token

    def refuses(self, path: str, headers: Any) -> bool:
        """Whether a request with these headers stays outside."""
        host = headers.get("Host", "")
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return True
        if self.token is None:
            return urlsplit(f"//{host}").hostname not in LOOPBACK
        return not any(
            secrets.compare_digest(given.encode(), self.token.encode()) for given in self._given(path, headers)
        )

    def _given(self, path: str, headers: Any) -> list[str]:
        """Tokens in the address and in the cookie."""
        given = parse_qs(urlsplit(path).query).get("token", [])
        with contextlib.suppress(CookieError):
            cookie = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
            given += [cookie.value] if cookie is not None else []
        return given

    def stamp(self, response: Any) -> None:
        """The page's own connection has no address line: it brings the token as a cookie."""
        if response is not None and self.token is not None:
            response.headers["Set-Cookie"] = f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        if response is not None:
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["X-Frame-Options"] = "DENY"


def is_wanted(found: Any) -> bool:
    """Whether a message from a browser is one that the page has a use for."""
    name = type(found).__name__
    return name in WANTED and (name != "GuiUpdateMessage" or set(found.updates) <= {"value"})


def guarded_server(host: str, port: int, gate: Gate, label: str) -> Any:
    """A running `viser.ViserServer` behind the gate."""
    try:
        import viser
        import websockets.asyncio.server as sockets
    except ImportError:
        remedy = "Install it with pip install 'tumble[view]'."
        raise OptionsError(message("view", "needs viser", "no such package", remedy)) from None
    listening = _listening(host, port)
    with _serving_behind(gate, sockets, listening) as used, contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=listening.getsockname()[1], label=label, verbose=False)
    inner: Any = getattr(server, "_websock_server", None)
    if not used or not hasattr(inner, "_handle_incoming_message") or not hasattr(inner, "on_client_connect"):
        server.stop()
        remedy = "Install a version that pyproject.toml names."
        raise OptionsError(message("view", "needs a viser that can be guarded", viser.__version__, remedy))
    _filter(inner)
    inner.on_client_connect(_filter)
    return server


def _listening(host: str, port: int) -> socket.socket:
    """A socket at the port, or at the next that is free: viser would try for ever where there is none."""
    remedy = "Leave --host out, or give an address of this machine, or 0.0.0.0 for all of them."
    try:
        if not host.strip():
            raise OSError(errno.EADDRNOTAVAIL, "empty")
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise OptionsError(message("view.host", "must be an address of this machine", repr(host), remedy)) from None
    for number in range(port, min(port + PORTS, 65536)):
        found = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name == "posix":  # a port may be used again at once; elsewhere this would share it
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((where[0], number, *where[2:]))
            found.listen(100)
            return found
        except OSError as cause:
            found.close()
            if cause.errno == errno.EACCES:
                words = "Give one above 1023."
                raise OptionsError(message("view.port", "must be allowed to this user", number, words)) from None
            if cause.errno != errno.EADDRINUSE:
                rule = "must be an address of this machine"
                raise OptionsError(message("view.host", rule, repr(host), remedy)) from None
    words = "Give another --port, or 0 for any that is free."
    raise OptionsError(message("view.port", f"{port} and the ports after it must not all be taken", port, words))


@contextlib.contextmanager
def _serving_behind(gate: Gate, sockets: Any, listening: socket.socket) -> Iterator[list[bool]]:
    """While viser starts, it is given a socket that listens, and requests are made to ask the gate first."""
    serve, used = sockets.serve, []

    def guarded(handler: Any, *place: Any, process_request: Any = None, **options: Any) -> Any:
        used.append(True)

        def ask(connection: Any, request: Any) -> Any:
            if gate.refuses(request.path, request.headers):
                return connection.respond(http.HTTPStatus.FORBIDDEN, "Give the address that tumble printed.\n")
            response = process_request(connection, request) if process_request is not None else None
            gate.stamp(response)
            return response

        return serve(handler, sock=listening, process_request=ask, **options)

    sockets.serve = guarded
    try:
        yield used
    finally:
        sockets.serve = serve


def _filter(connection: Any) -> None:
    """Drop what the page has no use for."""
    handle = connection._handle_incoming_message

    async def handle_wanted(client: Any, found: Any) -> None:
        if is_wanted(found):
            await handle(client, found)

    connection._handle_incoming_message = handle_wanted
