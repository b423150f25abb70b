#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# soak.sh - a pool under random faults, for as long as you like, with every byte checked.
#
#   tests/soak.sh MINUTES [--seed S] [--workers N] [--victims N]
#
# The workers and victims of storm.sh. Meanwhile the daemon is killed, ended by SIGTERM, or stopped for a
# while; workers and victims are stopped; series grow and others are replaced while they are read, and
# some of the writers are killed; /dev/shm is full for a moment, also while a daemon starts; connections
# flood the socket. Each minute everybody gives back what he holds, and everything is counted.
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

minutes=
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--seed | --workers | --victims | --by-hand)
		[ $# -ge 2 ] || { usage >&2; exit 2; }
		options+=("$1" "$2")
		shift 2
		;;
	-h | --help)
		usage
		exit 0
		;;
	[0-9]*)
		minutes=$1
		shift
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done
[ -n "$minutes" ] || { usage >&2; exit 2; }

storm_own_shm "${BASH_SOURCE[0]}" "$minutes" "${options[@]}"
storm_prepare "$here/.."
storm_shifting
storm_run --soak "$(awk "BEGIN { print $minutes * 60 }")" --shifting 2 \
	--shifting-records "$STORM_SHIFT_RECORDS" "${options[@]}"
