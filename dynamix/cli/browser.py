"""A headless Chromium for tests, spoken to over its debugging protocol: values of expressions, console messages and requests.

    with Browser(folder) as browser:
        browser.open("http://127.0.0.1:7041/")
        browser.wait("document.querySelectorAll('polyline').length > 3")
"""
import base64
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import time
import urllib.request

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-port=0"]
PATIENCE_S = 60


class Browser:
    def __init__(self, folder, *flags):
        self.profile = pathlib.Path(folder) / "profile"
        self.log = open(pathlib.Path(folder) / "browser.log", "w+")
        self.process = subprocess.Popen(["chromium", *FLAGS, f"--user-data-dir={self.profile}", *flags, "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=self.log)
        port = self._port()
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S))
        self.socket = self._connect([page for page in pages if page["type"] == "page"][0]["webSocketDebuggerUrl"])
        self.received, self.number = b"", 0
        self.console, self.requests = [], []
        for domain in ("Runtime", "Network", "Page", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)
        self.log.close()

    def _port(self):
        file = self.profile / "DevToolsActivePort"
        end = time.monotonic() + PATIENCE_S
        while not (file.exists() and file.read_text().strip()):
            assert self.process.poll() is None and time.monotonic() < end, "no browser"
            time.sleep(0.05)
        return int(file.read_text().split()[0])

    @staticmethod
    def _connect(url):
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        assert b" 101 " in head, head
        return connection

    def _take(self, count):
        while len(self.received) < count:
            part = self.socket.recv(1 << 16)
            assert part, "the browser is gone"
            self.received += part
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def _message(self):
        text = b""
        while True:
            first, length = self._take(2)
            if length == 126:
                length, = struct.unpack(">H", self._take(2))
            elif length == 127:
                length, = struct.unpack(">Q", self._take(8))
            text += self._take(length)
            if first & 0x80:
                return json.loads(text)

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.console.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def call(self, method, **params):
        self.number += 1
        text = json.dumps({"id": self.number, "method": method, "params": params}).encode()
        size = struct.pack(">BB", 0x81, 0x80 | len(text)) if len(text) < 126 else struct.pack(">BBH", 0x81, 0xFE, len(text))
        self.socket.sendall(size + b"\0\0\0\0" + text)  # a mask of zeros
        while True:
            message = self._message()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result)
        return result["result"].get("value")

    def wait(self, expression):
        """The expression's value, once it is true."""
        end = time.monotonic() + PATIENCE_S
        while not (value := self.value(expression)):
            assert time.monotonic() < end, f"never: {expression}; console: {self.console}"
            time.sleep(0.1)
        return value

    def resize(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
