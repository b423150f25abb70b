#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# query.sh - random queries of every form against a naive reference, for as long as you like.
#
#   tests/query.sh [SECONDS [SEED]]
#
# Adversarial stores are made of the seed: equal keys over the borders of segments, blocks and volumes, segments of one
# record, gaps, keys at 1 and near the end of time, orders that were kept, messages, bars, many series in one block; and
# the real files of $STOUP_DATA. All is copied out once by plain scans and compared with what was written; then ranges,
# limits, seeks, counts, lookups as of a time, merges, filters, bars and cursors that follow are compared with linear
# searches in plain integers: from a pool that holds all, from one that evicts at every step, mapped, and while daemons
# are killed. Twelve ways share the SECONDS (default 600).
#
# Exit status 1 on a difference: the query, what was found and expected, and how helper_oracle makes it again; the stores are
# kept then. The seed is printed. ctest -R system_query is the same for seconds.
# STOUP_BIN_DIR: programs that are built already. STOUP_BUILD_DIR, TMPDIR: see test.sh.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/storm/lib_storm.sh
. "$here/storm/lib_storm.sh"

if [[ "${1:-}${2:-}" == *[!0-9]* ]]; then
	sed -n '3,19s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
fi
storm_programs "$here/.."
export STOUP_BIN_DIR=$storm_bin STOUP_SOURCE_DIR=$here/..
exec python3 -B "$here/system/query.py" "${1:-600}" "${2:-$(date +%s)}"
