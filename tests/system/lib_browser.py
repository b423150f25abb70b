# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests of pages, by chromedriver's HTTP; the standard library is enough."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request

import lib_stoup as t

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def available():
    return all(shutil.which(name) for name in ("chromium", "chromedriver"))


class Browser:
    """One window. A script's `return` comes back as what JSON makes of it."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory(prefix="stoup-browser-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       env=dict(os.environ, HOME=self.home.name))
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
                break
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], "binary": shutil.which("chromium")}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}, session="")
        self.session = made["sessionId"]

    def call(self, method, path, body=None, session=None):
        prefix = f"/session/{self.session}" if session is None else session
        request = urllib.request.Request(self.base + prefix + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def go(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def text(self, selector):
        return self.run("const e = document.querySelector(arguments[0]); return e && e.textContent", selector)

    def click(self, selector):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{found[ELEMENT]}/click", {})

    def keys(self, selector, text):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{found[ELEMENT]}/value", {"text": text})

    def resize(self, width, height, dark=False):
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}})

    def until(self, script, what, seconds=120):
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                t.fail(f"{what}: {self.run('return document.body.innerText')}")
            time.sleep(0.1)

    def errors(self):
        return [line["message"] for line in self.call("POST", "/se/log", {"type": "browser"}) if line["level"] == "SEVERE"]

    def picture(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.home.cleanup()
