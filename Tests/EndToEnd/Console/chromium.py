"""A headless Chromium, driven over the DevTools protocol with the standard library alone."""
import base64
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request


class Failure(Exception):
    """What the page does not do."""


CHECKS = pathlib.Path(__file__).with_name("checks.js").read_text(encoding="utf-8")


def expect(condition, problem):
    if not condition:
        raise Failure(problem)


def accessible(page, name):
    problems = page.run(CHECKS)
    expect(not problems, f"{name}: {problems}")


def perform(main):
    """Runs a script; a failure is its error output and status 1."""
    try:
        main()
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)


class WebSocket:
    """The client's side of RFC 6455, as far as the DevTools protocol needs it."""

    def __init__(self, address):
        host, _, path = address.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.socket = socket.create_connection((name, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.receive()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        if b" 101 " not in head.splitlines()[0]:
            raise Failure("Chromium refuses the WebSocket")

    def receive(self):
        part = self.socket.recv(1 << 16)
        if not part:
            raise Failure("Chromium has ended")
        return part

    def take(self, count):
        while len(self.buffer) < count:
            self.buffer += self.receive()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        length = len(data)
        if length < 126:
            head = struct.pack(">BB", 0x81, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack(">BBH", 0x81, 0xFE, length)
        else:
            head = struct.pack(">BBQ", 0x81, 0xFF, length)
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def message(self):
        whole = b""
        while True:
            first, second = self.take(2)
            length = second & 0x7F
            if length == 126:
                length, = struct.unpack(">H", self.take(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.take(8))
            data = self.take(length)
            if first & 0x0F == 8:
                raise Failure("Chromium closes the WebSocket")
            if first & 0x0F in (0, 1):
                whole += data
                if first & 0x80:
                    return whole.decode()


class Browser:
    """One page. `requests` are the URLs that it asks for, `errors` what its console and its network report."""

    def __init__(self, program, dark=False):
        self.folder = tempfile.TemporaryDirectory(prefix="fanfare-chromium-", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
             "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-port=0",
             f"--user-data-dir={self.folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = self.wait_for(self.port, "Chromium does not start", 30)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
                target = next(t for t in json.load(answer) if t["type"] == "page")
            self.socket = WebSocket(target["webSocketDebuggerUrl"])
        except BaseException:
            self.close()
            raise
        self.number = 0
        self.requests, self.errors = [], []
        self.expected = 0
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def port(self):
        path = os.path.join(self.folder.name, "DevToolsActivePort")
        try:
            with open(path, encoding="ascii") as file:
                return int(file.readline())
        except (OSError, ValueError):
            return None

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    @staticmethod
    def wait_for(condition, problem, seconds=15):
        """Returns the first true result; bounded."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if result := condition():
                return result
            time.sleep(0.1)
        raise Failure(problem)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.message())
            if message.get("id") == self.number:
                if "error" in message:
                    raise Failure(f"{method}: {message['error']['message']}")
                return message["result"]
            self.note(message.get("method"), message.get("params", {}))

    def note(self, event, values):
        if event == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append("exception: " + json.dumps(values["exceptionDetails"])[:500])
        elif event == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.errors.append("console: " + json.dumps(values["args"])[:500])
        elif event == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.errors.append("log: " + values["entry"]["text"] + " " + values["entry"].get("url", ""))

    def run(self, script):
        """The value of an expression, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise Failure(f"{script[:200]}: {json.dumps(result['exceptionDetails'])[:500]}")
        return result["result"].get("value")

    def until(self, script, problem, seconds=20):
        """Waits until an expression is true, and returns its value."""
        try:
            return self.wait_for(lambda: self.run(script), problem, seconds)
        except Failure as failure:
            raise Failure(f"{failure}; the page shows: {self.text()[:1500]}") from None

    def text(self):
        return self.run("document.body.innerText") or ""

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for(lambda: self.run("document.readyState") == "complete", f"{url} is not loaded")

    def size(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def shot(self, path, whole=True):
        options = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            box = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": box["width"], "height": min(box["height"], 4000), "scale": 1}
        data = base64.b64decode(self.call("Page.captureScreenshot", **options)["data"])
        with open(path, "wb") as file:
            file.write(data)
