#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill_store.sh - kill the writers of a store at random moments, while a daemon serves it.
#
#   tests/kill_store.sh N [SEED [COMMAND...]]
#
# N deaths of each command: ingest, replace (ingest --replace), compact, rm, repair (verify --repair). After each
# one the store verifies and holds exactly what it held before, or what it would hold after; who scans sees what it saw
# when it began; the daemon serves one of the two; and the next writer takes away what was left. Repair goes file by
# file: what is left undone is done when it is given again.
#
# Exit status 1 on any violation. The seed is printed; the same one makes the same choices, the kernel's timing remains.
# STOUP_BIN_DIR: programs that are built already. STOUP_BUILD_DIR, TMPDIR: see test.sh.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/storm/lib_storm.sh
. "$here/storm/lib_storm.sh"

if [ $# -lt 1 ] || [[ "$1${2:-}" == *[!0-9]* ]]; then
	sed -n '3,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
fi
storm_programs "$here/.."
export STOUP_BIN_DIR=$storm_bin STOUP_SOURCE_DIR=$here/..
exec python3 -B "$here/system/kill_store.py" "$@"
