# SPDX-License-Identifier: Apache-2.0
"""An exporter that runs, and a strict reader of what it says."""
import http.client
import re
import signal
import subprocess

import lib_stoup as t

SAMPLE = re.compile(r'([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (-?[0-9.e+-]+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
TYPES = {"gauge", "counter", "histogram"}
OPEN = "application/openmetrics-text"


def unescape(text):
    return re.sub(r'\\(.)', lambda m: "\n" if m.group(1) == "n" else m.group(1), text)


class Metrics:
    """families: {name: (type, unit, help)}; value(name, **labels); samples: {(name, labels): text}."""

    def __init__(self, text, open_metrics=False):
        t.true(text.endswith("\n"), "the last line has an end")
        lines = text[:-1].split("\n")
        self.families, self.samples, current = {}, {}, None
        if open_metrics:
            t.equal(lines.pop(), "# EOF", "the end")
        for line in lines:
            if line.startswith("# "):
                _, word, name, rest = line.split(" ", 3)
                if word == "HELP":
                    t.true(name not in self.families, f"{name} is declared once")
                    current = name
                    self.families[name] = [None, "", rest]
                t.equal(name, current, f"{line} is of the family")
                t.true(word in ("HELP", "TYPE") or (word == "UNIT" and open_metrics), line)
                if word != "HELP":
                    self.families[name][word == "UNIT"] = rest
                t.true(word != "UNIT" or name.endswith("_" + rest), line)
                continue
            found = SAMPLE.match(line)
            t.true(found, f"a sample: {line!r}")
            name, labels, value = found.groups()
            kind = self.families[current][0]
            ends = {"gauge": [""], "histogram": ["_bucket", "_sum", "_count"],
                    "counter": ["_total" if open_metrics else ""]}[kind]
            t.true(name in [current + end for end in ends], f"{line} stands in the family {current}")
            t.true(kind != "counter" or name.endswith("_total"), line)
            pairs = LABEL.findall(labels or "")
            t.equal(LABEL.sub("", labels or ""), "", f"the labels of {line!r}")
            key = (name, frozenset((label, unescape(text)) for label, text in pairs))
            t.equal(len(dict(key[1])), len(pairs), f"each label once: {line!r}")
            t.true(key not in self.samples, f"a sample twice: {line!r}")
            self.samples[key] = value
        for name, (kind, _, text) in self.families.items():
            t.true(kind in TYPES and text, f"{name} is {kind}: {text}")

    def text(self, name, **labels):
        return self.samples.get((name, frozenset((k, str(v)) for k, v in labels.items())))

    def value(self, name, **labels):
        text = self.text(name, **labels)
        return None if text is None else float(text) if "." in text or "e" in text else int(text)

    def all(self, name, **labels):
        """[(labels, value)] of those with these labels."""
        wanted = {(k, str(v)) for k, v in labels.items()}
        return [(dict(found), float(value)) for (n, found), value in self.samples.items() if n == name and wanted <= found]

    def state(self, pool):
        return [found["state"] for found, value in self.all("stoup_pool_state", pool=pool) if value == 1]


class Exporter:
    pool = ""  # none of its own

    def __init__(self, *argv, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([t.STOUP, "exporter", "--listen", listen, *argv], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on http://(.+):(\d+)\n", line)
        t.true(found, f"it says where it listens: {line!r} {'' if line else self.process.stderr.read()}")
        self.host, self.port = found.group(1).strip("[]"), int(found.group(2))
        t._daemons.append(self)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def request(self, method, path, headers={}, body=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        found = response.status, response.headers, response.read()
        connection.close()
        return found

    def get(self, path, accept="text/plain"):
        status, headers, body = self.request("GET", path, {"Accept": accept})
        t.equal(status, 200, path)
        return headers, body.decode()

    def metrics(self, open_metrics=True):
        headers, text = self.get("/metrics", OPEN + "; version=1.0.0" if open_metrics else "text/plain")
        t.equal(headers["Content-Type"], OPEN + "; version=1.0.0; charset=utf-8" if open_metrics else
                "text/plain; version=0.0.4; charset=utf-8", "the type")
        return Metrics(text, open_metrics)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        t.equal(self.process.wait(60), 0, "SIGTERM ends it in order")
        return self.process.stderr.read()


def built_with_http():
    """1, or what it says without libmicrohttpd is right."""
    probe = subprocess.Popen([t.STOUP, "exporter", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    line = probe.stdout.readline()
    probe.terminate()
    error = probe.stderr.read()
    probe.wait()
    t.true(line or ("libmicrohttpd-dev" in error and probe.returncode == 1), f"it names the package: {error}")
    return line != ""
