#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh - run the fuzzers of tests/fuzz with libFuzzer, AddressSanitizer and UBSan (clang).
#
#   tests/fuzz.sh SECONDS [NAME...]    each fuzzer, or those named (page, csv, ...), for SECONDS
#   tests/fuzz.sh --list               their names
#   tests/fuzz.sh --merge [NAME...]    bring what was found in $STOUP_FUZZ_DIR into tests/fuzz/corpus,
#                                      as few inputs as give the same coverage
#
# They start from tests/fuzz/corpus/NAME and what an earlier run left in $STOUP_FUZZ_DIR/NAME, and write
# new inputs there, never into the tree; without STOUP_FUZZ_DIR into a temporary directory that is removed
# when nothing was found. A finding is a crash, a broken claim of the target, a leak, an input of more than
# five minutes (a loaded machine alone may take one), or memory beyond 1 GiB. Exit status 0: none; 1: a
# line names the input, and BUILD/tests/fuzz/fuzz_NAME INPUT shows it again.
#
# Debian packages: clang, libclang-rt-14-dev. Builds go where test.sh has its own.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/packages.sh
. "$here/tests/packages.sh"

usage() {
	sed -n '3,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

all_names() {
	local source

	for source in "$here"/tests/fuzz/fuzz_*.c; do
		source=${source##*/fuzz_}
		echo "${source%.c}"
	done
}

# What a killed process of the daemon's fuzzers leaves: a name in shared memory, a directory.
sweep() {
	rm -f -- "/dev/shm/stoup.$(id -u).fuzz-$1".*
	rm -rf -- /tmp/stoup-fuzz-"$1"-??????
}

# The last value of a field ("cov:", "corp:") in libFuzzer's lines of progress.
progress() {
	sed -n "s/^#[0-9].* $1 \([^ ]*\).*/\1/p" "$2" | tail -n 1
}

build() {
	stoup_packages clang libclang-rt-14-dev libc6-dev cmake ninja-build pkg-config liburing-dev \
		liblz4-dev libzstd-dev libxxhash-dev libarchive-dev check python3 || exit 1
	stoup_build_root "$here"
	bin=$STOUP_BUILD_ROOT/fuzz/tests/fuzz
	echo "building the fuzzers in $STOUP_BUILD_ROOT/fuzz"
	stoup_build "$here" "$STOUP_BUILD_ROOT/fuzz" -DCMAKE_C_COMPILER=clang \
		-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="-O1 -fno-sanitize-recover=undefined" \
		-DSTOUP_SANITIZE="address;undefined" -DSTOUP_FUZZ=ON -DSTOUP_BENCH=OFF || exit 1
	# The address-space randomization of newer kernels leaves no room for the shadow memory.
	fixed=()
	if setarch -R true 2>/dev/null; then
		fixed=(setarch -R)
	fi
}

run_one() {
	local name=$1 seconds=$2 log=$work/$1.log status=0 runs found

	mkdir -p -- "$work/$name"
	rm -f -- "$work/$name"-{crash,leak,timeout,oom,slow-unit}-*
	"${fixed[@]}" "$bin/fuzz_$name" -max_total_time="$seconds" -rss_limit_mb=1024 \
		-malloc_limit_mb=256 -timeout=300 -max_len=16384 -print_final_stats=1 \
		-artifact_prefix="$work/$name-" "$work/$name" "$here/tests/fuzz/corpus/$name" \
		>"$log" 2>&1 </dev/null &
	wait $! || status=$?
	sweep $!
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	found=$(find "$work" -maxdepth 1 -name "$name-*-*" -not -name "$name-slow-unit-*" | sort)
	[ -z "$found" ] || status=1
	printf '%-10s %12s %7s %8s %16s %8s\n' "$name" "${runs:-?}" "$(progress cov: "$log")" \
		"$(progress ft: "$log")" "$(progress corp: "$log")" "$([ "$status" -eq 0 ] && echo 0 || echo 1)"
	[ "$status" -ne 0 ] || return 0
	echo "FOUND by fuzz_$name (exit $status): ${found:-no input was written}; its output: $log"
	grep -m 1 -E 'violated:|SUMMARY:|runtime error:' "$log" || true
	return 1
}

merge_one() {
	local name=$1 corpus=$here/tests/fuzz/corpus/$1 out known

	out=$(mktemp -d "$work/merge-XXXXXX")
	# Edges alone, not how often: enough for what is replayed as a test.
	"${fixed[@]}" "$bin/fuzz_$name" -merge=1 -use_counters=0 -timeout=300 "$out" "$corpus" \
		"$work/$name" >"$work/$name.merge.log" 2>&1 </dev/null &
	wait $! || { cat -- "$work/$name.merge.log" >&2; exit 1; }
	sweep $!
	# Seeds and findings stay: their names say what they are for.
	find "$corpus" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
	known=$(find "$corpus" -type f -exec sha1sum {} + | cut -d ' ' -f 1)
	find "$out" -type f | while read -r input; do
		[[ $known == *"${input##*/}"* ]] || cp -- "$input" "$corpus/"
	done
	rm -rf -- "$out"
	echo "$name: $(find "$corpus" -type f | wc -l) inputs, $(du -sb "$corpus" | cut -f1) bytes"
}

mode=run
case ${1:-} in
--list)
	all_names
	exit 0
	;;
--merge)
	mode=merge
	;;
-h | --help)
	usage
	exit 0
	;;
*)
	if ! [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
		usage >&2
		exit 2
	fi
	;;
esac
seconds=$1
shift
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(all_names)
for name in "${names[@]}"; do
	if [ ! -e "$here/tests/fuzz/fuzz_$name.c" ]; then
		echo "there is no fuzzer '$name': $(all_names | tr '\n' ' ')" >&2
		exit 2
	fi
done
if [ "$mode" = merge ] && [ -z "${STOUP_FUZZ_DIR:-}" ]; then
	echo "--merge wants STOUP_FUZZ_DIR: where an earlier run left what it found" >&2
	exit 2
fi

trap stoup_build_cleanup EXIT
build
work=${STOUP_FUZZ_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/stoup-fuzzed-XXXXXX")}
mkdir -p -- "$work"
work=$(cd -- "$work" && pwd)
failed=0
if [ "$mode" = merge ]; then
	for name in "${names[@]}"; do
		merge_one "$name"
	done
	exit 0
fi
printf '%-10s %12s %7s %8s %16s %8s\n' fuzzer runs edges features corpus findings
for name in "${names[@]}"; do
	run_one "$name" "$seconds" || failed=1
done
if [ "$failed" -eq 0 ] && [ -z "${STOUP_FUZZ_DIR:-}" ]; then
	rm -rf -- "$work"
elif [ "$failed" -ne 0 ]; then
	# The build that reproduces it stays.
	STOUP_BUILD_TEMPORARY=
fi
exit $failed
