#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# python_sigint.sh - SIGINT at random moments into Python programs that scan, keep arrays, merge, fork.
#
#   tests/python_sigint.sh SECONDS [SEED]
#
# The short version, ten seconds, is one of the system tests (system/python_sigint.py, which says what is checked).
# Exit status 1 on any violation; the report names the seed. 77: no NumPy.
# STOUP_BIN_DIR, STOUP_LIB_DIR: programs and library that are built already. STOUP_BUILD_DIR, TMPDIR: see test.sh.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/packages.sh
. "$here/packages.sh"

usage() {
	sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
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

if [ -z "${STOUP_BIN_DIR:-}" ] || [ -z "${STOUP_LIB_DIR:-}" ]; then
	trap stoup_build_cleanup EXIT
	stoup_build_root "$here/.."
	stoup_build "$here/.." "$STOUP_BUILD_ROOT/gcc" -DCMAKE_C_COMPILER=gcc
	export STOUP_BIN_DIR=$STOUP_BUILD_ROOT/gcc/bin STOUP_LIB_DIR=$STOUP_BUILD_ROOT/gcc/lib
fi
export STOUP_SOURCE_DIR=$here/..
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" -B "$here/system/python_sigint.py" "$@"
