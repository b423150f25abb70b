#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - measure all rows of docs/benchmarks.md, and write it.
#
#   bench/run.sh                    all rows, at most 15 minutes on 2 cores: bench/results/benchmarks.json,
#                                   docs/benchmarks.md and its plots
#   bench/run.sh --out DIR          the same into DIR
#   bench/run.sh --quick --out DIR  a smoke run of half a minute: small data, few samples
#   bench/run.sh --rows B1,B4 --out DIR   these rows only
#   bench/run.sh --document         no measuring: the document from bench/results/benchmarks.json
#   --bin DIR                       programs that are built already; else they are built, optimised
#
# Real market data is taken from $STOUP_DATA where that is set; without it those data sets are left
# out. Let nothing else run meanwhile. Missing Debian packages are installed when run as root; else
# the one command is printed. Builds go to $STOUP_BUILD_DIR, else build/ here.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/packages.sh
. "$here/tests/packages.sh"

quick=()
rows=()
out=
bin=
document=0
work=

usage() {
	sed -n '3,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

fail() {
	echo "run.sh: $*" >&2
	exit 2
}

cleanup() {
	stoup_build_cleanup
	[ -z "$work" ] || rm -rf -- "$work"
}

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--quick) quick=(--quick) ;;
		--document) document=1 ;;
		--out | --bin | --rows)
			[ $# -ge 2 ] || fail "$1 needs a value"
			case $1 in
			--out) out=$2 ;;
			--bin) bin=$2 ;;
			--rows) rows=(--rows "$2") ;;
			esac
			shift
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
		shift
	done
	if [ -z "$out" ] && [ ${#quick[@]} -gt 0 ]; then
		fail "--quick needs --out DIR: its numbers are not for docs/benchmarks.md"
	fi
	if [ -z "$out" ] && [ ${#rows[@]} -gt 0 ]; then
		fail "--rows needs --out DIR: docs/benchmarks.md has all rows"
	fi
}

places() {
	doc=$out/benchmarks.md
	if [ -z "$out" ]; then
		out=$here/bench/results
		doc=$here/docs/benchmarks.md
	fi
}

build() {
	stoup_packages gcc libc6-dev cmake ninja-build pkg-config liburing-dev liblz4-dev \
		libzstd-dev libxxhash-dev libarchive-dev liblmdb-dev librocksdb-dev \
		libjansson-dev g++ libsimdjson-dev gnuplot-nox \
		python3 || exit 1
	stoup_build_root "$here"
	echo "building in $STOUP_BUILD_ROOT/release"
	stoup_build "$here" "$STOUP_BUILD_ROOT/release" -DSTOUP_TESTS=OFF \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo
	bin=$STOUP_BUILD_ROOT/release/bin
}

parse "$@"
places
if [ "$document" -eq 1 ]; then
	exec python3 -B "$here/bench/suite.py" --document "$out/benchmarks.json" --doc "$doc"
fi
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
[ -n "$bin" ] || build
work=$(mktemp -d "${TMPDIR:-/tmp}/stoup-bench-XXXXXX")
# The daemons of a run have their sockets to themselves.
export XDG_RUNTIME_DIR=$work/run
mkdir -m 0700 -- "$XDG_RUNTIME_DIR"
export STOUPD=$bin/stoupd
python3 -B "$here/bench/suite.py" --bin "$bin" --out "$out" --work "$work" --doc "$doc" \
	"${quick[@]}" "${rows[@]}"
