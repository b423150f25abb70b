#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# storm.sh - kill consumers and daemons by the thousand, under workers that check every byte.
#
#   tests/storm.sh [--consumer-kills N] [--daemon-kills N] [--workers N] [--victims N] [--seed S]
#                  (10000)              (500)              (8)           (4)           (random)
#
# Eight workers scan series whose records carry a running number and a check of their own bytes: whole,
# in ranges, two at a time, holding spans on and looking at them again. Meanwhile short-lived consumers
# are killed at any instant, and the daemon is killed and started anew, also while it starts. At ten
# checkpoints, and at the end, everything is counted: leases, bytes of the pool, descriptors, mappings,
# names, processes. The last table says how long a dead consumer's leases outlive it, and how long a
# waiting worker waits for its next record after a new pool was announced.
#
# Exit status 1 on any violation. The same seed makes the same choices; the kernel's timing remains.
# As root it runs in a /dev/shm of its own (64 MiB), so that bytes left there are exact.
# STOUP_BIN_DIR: programs that are built already. STOUP_BUILD_DIR, TMPDIR: see test.sh.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/storm/lib_storm.sh
. "$here/storm/lib_storm.sh"

usage() {
	sed -n '3,20s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

options=()
while [ $# -gt 0 ]; do
	case $1 in
	--consumer-kills | --daemon-kills | --workers | --victims | --by-hand | --daemon-nice | --seed)
		[ $# -ge 2 ] || { usage >&2; exit 2; }
		options+=("$1" "$2")
		shift 2
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done

storm_own_shm "${BASH_SOURCE[0]}" "${options[@]}"
storm_prepare "$here/.."
storm_run "${options[@]}"
