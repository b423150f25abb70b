# SPDX-License-Identifier: Apache-2.0
"""The exporter's page: what it may hold, and in a headless Chromium what it shows of a farm, of a dead daemon, of a dead exporter.

With STOUP_PICTURES=DIR it leaves pictures of the page there.
"""
import atexit
import os
import re
import signal
import subprocess
import urllib.request

import lib_browser as b
import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
PICTURES = os.environ.get("STOUP_PICTURES")
SERIES = ("ESH4", "NQH4", "CLH4")
HOSTILE = "<b>&<i>evil"

# ---- the file ------------------------------------------------------------------------------------------------------------
with open(os.path.join(SOURCE, "consumer", "exporter_page.html"), "rb") as file:
    page = file.read()
t.true(len(page) < 40_000, f"the page is small: {len(page)} bytes")
for pattern in (rb"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", rb"\bsrc\s*=|<link|@import|url\(",
                rb"https?://(?!www\.w3\.org/2000/svg)"):
    t.equal(re.findall(pattern, page), [], "nothing from elsewhere, no text as HTML")

class Exporter:
    def __init__(self, pool, port=0):
        self.process = subprocess.Popen([t.STOUP, "exporter", "--listen", f"127.0.0.1:{port}", pool], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        if not line:
            text = self.process.stderr.read()
            t.true("libmicrohttpd" in text, text)
            print("skipped: built without libmicrohttpd", flush=True)
            raise SystemExit(t.SKIP)
        self.url = line.split()[-1]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        t.equal(self.process.wait(60), 0, "the exporter's end")


store, _ = t.make_store(60_000, {name: 11 + i for i, name in enumerate(SERIES)}, block="64K")
daemon = t.Daemon(store, "2M")
exporter = Exporter(daemon.pool)
with urllib.request.urlopen(exporter.url + "/", timeout=60) as answer:
    t.equal(answer.read(), page, "the page as it is served")
    policy = answer.headers["Content-Security-Policy"]
    t.true("default-src 'none'" in policy and "connect-src 'self'" in policy, policy)
if not b.available():
    print("skipped: chromium and chromium-driver are not installed", flush=True)
    raise SystemExit(t.SKIP)

# ---- a farm ---------------------------------------------------------------------------------------------------------------
evil = os.path.join(t.temp_dir(), HOSTILE)
os.symlink(t.WORKER, evil)
plain, workers = t.WORKER, []
for i in range(8):
    t.WORKER = evil if i == 7 else plain
    workers.append(t.Worker(daemon.pool, t.name_of(SERIES[i % 3]), "--hold", i % 4, "--wait"))
counted = {worker.pid: worker.wait_scanned()[0] for worker in workers}
stat = daemon.settled()
browser = b.Browser()
atexit.register(browser.driver.kill)
browser.resize(1280, 1000)
browser.go(exporter.url + "/")
browser.until("return document.querySelector('#state').textContent === 'running' && document.querySelectorAll('#consumers tbody tr').length === 8",
              "the farm is shown")


def rows(name):
    return browser.run(f"return [...document.querySelectorAll('#{name} tbody tr')].map(tr => [...tr.children].map(td => td.textContent))")


def number(text):
    return int(text.replace(",", ""))


shown = {int(row[0]): row for row in rows("consumers")}
for c in stat["consumers"]:
    row = shown[c["pid"]]
    t.equal((row[1], number(row[3]), number(row[7]), number(row[8]), number(row[9])),
            (c["command"], c["leases"], c["hits"], c["misses"], c["records"]), "a consumer's row")
    found = counted[c["pid"]]
    t.equal((number(row[7]), number(row[8]), number(row[9])), (found["hits"], found["misses"], found["records"]), "as it counted itself")
t.equal(shown[workers[7].pid][1], HOSTILE, "a command is text")
t.equal(browser.run("return document.querySelectorAll('b b, td b, td i, img').length"), 0, "and makes no elements")
t.equal(number(browser.text("#card-leases b")), stat["counters"]["leases"], "leases")
t.true(browser.text("#card-misses").endswith(f"{stat['counters']['misses']:,} so far"), "misses")
t.equal(len(rows("holders")), len(stat["holders"]), "holders")
t.equal(browser.run("return document.querySelectorAll('#times tbody tr').length"), len(stat["histograms"]), "histograms")
t.equal(browser.run("return cells.filter(c => c.kind === 'leased').length > 0 && cells.reduce((a, c) => a + (c.part.leased || 0), 0)"),
        stat["counters"]["leased_bytes"], "leased bytes of the map")
ages = [row[5] for row in rows("consumers")]
t.equal(ages[-2:], ["-", "-"], "who holds nothing comes last")

# ---- what a reader does: sort, filter, freeze -------------------------------------------------------------------------------
browser.run("window.button = document.querySelector('[data-sort=\"leases\"]'); button.focus()")
looks = browser.run("return performance.getEntriesByType('resource').length")
browser.until(f"return performance.getEntriesByType('resource').length >= {looks + 2}", "two looks later")
t.equal(browser.run("return button.isConnected && document.activeElement === button"), True,
        "a button stays under the pointer from look to look")
browser.click('[data-sort="leases"]')
t.equal([number(row[3]) for row in rows("consumers")], sorted((c["leases"] for c in stat["consumers"]), reverse=True), "sorted")
browser.click('[data-sort="leases"]')
t.equal([number(row[3]) for row in rows("consumers")], sorted(c["leases"] for c in stat["consumers"]), "the other way")
browser.keys("#filter", "evil")
browser.until("return document.querySelectorAll('#consumers tbody tr').length === 1", "filtered")
t.equal(browser.text("#consumer-count"), "1 of 8", "how many of how many")
browser.run("document.querySelector('#filter').value = ''; document.querySelector('#filter').dispatchEvent(new Event('input'))")
browser.click('[data-sort="oldest_lease_ns"]')
for width, height, name in ((1280, 1000, "wide"), (390, 844, "narrow")):
    for dark in (False, True):
        browser.resize(width, height, dark)
        browser.until(f"return innerWidth === {width} && document.documentElement.scrollWidth <= innerWidth", f"{width} wide: nothing beyond")
        if PICTURES:
            browser.run("return 0")
            browser.picture(os.path.join(PICTURES, f"page-{name}-{'dark' if dark else 'light'}.png"))
browser.resize(1280, 1000)
browser.click("#freeze")
workers[7].kill()
t.until(lambda: len(daemon.stat()["consumers"]) == 7, "one has gone")
looks = browser.run("return performance.getEntriesByType('resource').length")
browser.until(f"return performance.getEntriesByType('resource').length >= {looks + 2}", "two looks later")
t.equal(len(rows("consumers")), 8, "frozen: as it was")
browser.click("#freeze")
browser.until("return document.querySelectorAll('#consumers tbody tr').length === 7", "it goes on")

# ---- deaths ---------------------------------------------------------------------------------------------------------------
daemon.process.send_signal(signal.SIGSTOP)
browser.until("return document.querySelector('#state').textContent === 'suspended' && "
              "document.querySelector('#problem').textContent.includes('kill -CONT')", "a stopped daemon, and the cure")
daemon.process.send_signal(signal.SIGCONT)
browser.until("return document.querySelector('#state').textContent === 'running' && document.querySelector('#problem').hidden", "it goes on")
daemon.kill()
browser.until("return document.querySelector('#state').textContent === 'dead' && "
              "document.querySelector('#problem').textContent.includes('start it again')", "a killed daemon, and the cure")
if PICTURES:
    browser.picture(os.path.join(PICTURES, "page-dead.png"))
t.equal(browser.errors(), [], "nothing on the console")
port = exporter.url.rsplit(":", 1)[1]
exporter.end()
browser.until("return document.querySelector('#problem').textContent.includes('does not answer')", "a dead exporter")
exporter = Exporter(daemon.pool, port)
browser.until("return document.querySelector('#problem').textContent.includes('start it again')", "the exporter is back")
t.equal(browser.run("return performance.getEntriesByType('resource').filter(e => new URL(e.name).origin !== location.origin).length"), 0,
        "requests to elsewhere")
browser.close()
exporter.end()
for worker in workers[:7]:
    worker.kill()
