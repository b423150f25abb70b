#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# storm_forks.sh - forks, threads, holds and snapshots under random faults, with every byte checked.
#
#   tests/storm_forks.sh SECONDS [SEED]
#
# Each worker scans in two threads that share an attachment, holds spans and looks at them again, takes newer
# snapshots, attaches anew, and forks in the middle of it: its children hold what it held and read on, or are
# killed, some before they come for their leases. Meanwhile the faults of soak.sh, and crowds of volumes that
# come and go, so that places run short and who has an old snapshot is cut off. Each call must keep its time.
#
# Exit status 1 on any violation; the report ends with the seed. As root it runs in a /dev/shm of its own
# (64 MiB); otherwise that is not filled.
# STOUP_BIN_DIR: programs that are built already. STOUP_BUILD_DIR, TMPDIR: see test.sh.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/storm/lib_storm.sh
. "$here/storm/lib_storm.sh"

usage() {
	sed -n '3,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
esac
if [ $# -lt 1 ] || [ $# -gt 2 ] || [[ "$*" == *[!0-9\ ]* ]]; then
	usage >&2
	exit 2
fi

storm_own_shm "${BASH_SOURCE[0]}" "$@"
storm_prepare "$here/.."
storm_shifting
storm_crowd
storm_run --soak "$1" --shifting 2 --shifting-records "$STORM_SHIFT_RECORDS" --forks --crowd "$STORM_CROWD" \
	--workers 4 --victims 2 ${2:+--seed "$2"}
