"""A headless Chromium, driven through its own protocol."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

__all__ = ["Browser", "find_chromium"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium() -> str | None:
    """Its command, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser of its own."""

    def __init__(self, folder: Path, *, size: tuple[int, int] = (1000, 700)) -> None:
        from websocket import create_connection

        options = (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            "--remote-debugging-port=0",
            "--remote-allow-origins=*",
            f"--user-data-dir={folder}",
            f"--window-size={size[0]},{size[1]}",
            "about:blank",
        )
        self._process = subprocess.Popen(
            [find_chromium(), *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            port = self._port(folder)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                pages = [page for page in json.load(answer) if page["type"] == "page"]
            self._socket = create_connection(pages[0]["webSocketDebuggerUrl"], timeout=60)
        except BaseException:
            self._process.kill()
            raise
        self._number = itertools.count(1)
        self.errors: list[str] = []
        """What the console said of errors"""
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def _port(self, folder: Path) -> int:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            lines = (
                (folder / "DevToolsActivePort").read_text().split() if (folder / "DevToolsActivePort").exists() else []
            )
            if lines:
                return int(lines[0])
            time.sleep(0.05)
        raise RuntimeError("Chromium did not start")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call the protocol; what happens meanwhile is noted."""
        number = next(self._number)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            found = json.loads(self._socket.recv())
            if found.get("id") == number:
                assert "error" not in found, found["error"]
                return found["result"]
            self._note(found)

    def _note(self, event: dict[str, Any]) -> None:
        kind, what = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(what["exceptionDetails"])[:500])
        elif kind == "Runtime.consoleAPICalled" and what["type"] == "error":
            self.errors.append(json.dumps(what["args"])[:500])
        elif kind == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.errors.append(what["entry"]["text"])

    def open(self, address: str) -> None:
        """Go to a page."""
        self.call("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = 60.0) -> Any:
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"never true: {script}; the page says: {self.run('document.body.innerText')!r}")

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window [pixels]."""
        place = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        time.sleep(0.1)
        self.call("Input.dispatchMouseEvent", type="mousePressed", **place)
        time.sleep(0.05)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **place)

    def screenshot(self) -> bytes:
        """The window as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
