# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of workers and of the daemon: nothing leaks, errors are clear, a new daemon just starts."""
import signal

import lib_stoup as t

store, totals = t.make_store(60_000)
name = t.name_of("AAA")
daemon = t.Daemon(store, "16M")

# A killed worker's leases fall away.
worker = t.Worker(daemon.pool, name, "--hold", 20, "--wait")
worker.wait_scanned()
t.until(lambda: daemon.counter("leases") >= 20, "leases are counted")
holders = t.run([t.STOUP, "holders", daemon.pool]).stdout
t.true(str(worker.pid) in holders, f"holder is named: {holders}")
worker.kill()
t.until(lambda: daemon.counter("leases") == 0, "leases of a dead worker are gone")
t.equal(daemon.counter("deaths"), 1, "deaths")

# Many killed in the middle of a scan: the rest is right.
for _ in range(5):
    victims = [t.Worker(daemon.pool, name, "--pause", 30000, "--passes", 1000) for _ in range(4)]
    t.until(lambda: daemon.counter("consumers") >= 4, "victims are attached")
    for victim in victims:
        victim.kill()
t.until(lambda: daemon.counter("consumers") == 0, "all are gone")
t.until(lambda: daemon.counter("leases") == 0, "no lease is left")
(found,) = t.Worker(daemon.pool, name).finish()
totals["AAA"].check(found, "after the killings")

# A stopped worker keeps its leases.
worker = t.Worker(daemon.pool, name, "--hold", 5, "--wait")
worker.wait_scanned()
worker.process.send_signal(signal.SIGSTOP)
t.until(lambda: daemon.counter("leases") >= 5, "a stopped holder holds")
t.time.sleep(0.5)
t.equal(daemon.settled()["counters"]["leases"], 5, "a stopped holder is never robbed")
worker.process.send_signal(signal.SIGCONT)
t.true(worker.finish()[0]["held_unchanged"], "its bytes are unchanged")

# The daemon is killed under a worker: a clear error; what is held stays readable.
worker = t.Worker(daemon.pool, name, "--hold", 8, "--pause", 40000, "--mark", 5, "--wait", "--end-with-daemon")
t.equal(worker.line(), "mark\n", "the worker holds")
daemon.kill()
worker.step()
(result,) = worker.wait_scanned()
t.true(result["rc"] < 0 and "daemon" in result["text"], f"the reason is said: {result}")
t.true(worker.finish(expect=None)[0]["held_unchanged"], "held spans outlive the daemon")
dead = t.run([t.STOUP, "stat", daemon.pool]).stdout
t.true("dead" in dead, f"stat says so: {dead[:200]}")
refused = t.run([t.WORKER, daemon.pool, name], expect=1)
t.true("dead" in refused.stdout, f"attach says so: {refused.stdout}")

# A new daemon of the same name starts without any cleaning by hand.
again = t.Daemon(store, "16M", pool=daemon.pool)
(found,) = t.Worker(again.pool, name).finish()
totals["AAA"].check(found, "after the restart")
t.equal(again.stop(), 0, "exit status")
t.equal(t.shm_names(again.pool), [], "names left")
