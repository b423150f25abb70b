#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh - build and test everything: gcc, clang, sanitizers, format.
#
#   ./test.sh            all stages (about 16 minutes on 2 cores)
#   ./test.sh --quick    gcc alone
#
#   format  clang-format-14 leaves every source as it is
#   gcc     optimized build, all tests but the storm (tests/storm.sh, tests/soak.sh)
#   clang   -Werror, unit and layout tests
#   asan    gcc, address and undefined-behaviour sanitizers, crash hooks: unit, layout, fault, fuzz,
#           system tests
#   tsan    gcc, thread sanitizer: race tests and the unit tests of parts with threads
#
# Missing Debian packages are installed when run as root; else the one command is printed. Builds go
# to $STOUP_BUILD_DIR, else build/ here, else a temporary directory. The last line is the count.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/packages.sh
. "$here/tests/packages.sh"

quick=0
passed=0
failed=0
skipped=0

# Unit tests of the parts that start threads; the race tests are all taken.
tsan_tests='^race_|^unit_test_(reader|decode|import|lane|csv_parallel|consumer_[a-z]+)$'

# Under a sanitizer they find nothing, or the sanitizer's own limits: times, sparse files, full disks, texts, rules,
# too few descriptors. (The Python module would need a sanitized interpreter.)
asan_spared='^system_(bench_suite|far_offsets|full_disk|man_pages|python_[a-z_]+|small_machine|source_rules)$'

usage() {
	sed -n '3,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

finish() {
	stoup_build_cleanup
}

summary() {
	[ "$skipped" -eq 0 ] || echo "$skipped skipped (what they need is not on this machine)"
	echo "$passed passed, $failed failed"
}

stage() {
	echo
	echo "==== $1"
}

# Count what ctest printed into a log, by the words at the ends of its lines.
count() {
	local log=$1

	passed=$((passed + $(grep -cE '^ *[0-9]+/[0-9]+ Test .* Passed ' "$log" || true)))
	skipped=$((skipped + $(grep -cE '^ *[0-9]+/[0-9]+ Test .*\*\*\*Skipped ' "$log" || true)))
	failed=$((failed + $(grep -E '^ *[0-9]+/[0-9]+ Test .*\*\*\*' "$log" |
		grep -cvE '\*\*\*Skipped ' || true)))
}

# run_tests DIR [CTEST OPTION...]: run, show, count; fails where a test failed. One more at once than processors: some wait
# more than they work.
run_tests() {
	local dir=$1 log=$1/ctest.log status=0

	shift
	"${fixed_addresses[@]}" ctest --test-dir "$dir" --output-on-failure --no-tests=error \
		-j "$(($(nproc) + 1))" "$@" 2>&1 | tee -- "$log" || status=1
	count "$log"
	return $status
}

# The address-space randomization of newer kernels leaves no room for the sanitizers' shadow memory.
fixed_addresses=()
fix_addresses() {
	if setarch -R true 2>/dev/null; then
		fixed_addresses=(setarch -R)
	fi
}

stage_format() {
	stage "format: clang-format-14"
	if ! command -v clang-format-14 >/dev/null; then
		echo "note: clang-format-14 is not installed; the format is not checked"
		return 0
	fi
	find "$here/shm" "$here/codec" "$here/producer" "$here/consumer" "$here/bench" \
		"$here/tests" -name '*.[ch]' -print0 |
		xargs -0 clang-format-14 --dry-run --Werror || return 1
	passed=$((passed + 1))
}

stage_gcc() {
	stage "gcc: build and all tests"
	stoup_build "$here" "$STOUP_BUILD_ROOT/gcc" -DCMAKE_C_COMPILER=gcc || return 1
	run_tests "$STOUP_BUILD_ROOT/gcc" -LE '^storm$'
}

stage_clang() {
	stage "clang: build, unit and layout tests"
	stoup_build "$here" "$STOUP_BUILD_ROOT/clang" -DCMAKE_C_COMPILER=clang || return 1
	run_tests "$STOUP_BUILD_ROOT/clang" -L '^(unit|layout)$'
}

stage_asan() {
	stage "asan: address and undefined-behaviour sanitizers"
	fix_addresses
	stoup_build "$here" "$STOUP_BUILD_ROOT/asan" -DCMAKE_C_COMPILER=gcc \
		-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="-O1 -fno-sanitize-recover=undefined" \
		-DSTOUP_SANITIZE="address;undefined" -DSTOUP_HOOKS=ON || return 1
	UBSAN_OPTIONS=print_stacktrace=1 \
		run_tests "$STOUP_BUILD_ROOT/asan" -L '^(unit|layout|fault|fuzz|system)$' \
		-E "$asan_spared"
}

stage_tsan() {
	stage "tsan: thread sanitizer"
	fix_addresses
	# -Wno-tsan: gcc says that it does not model fences; the pairs with fences are model-checked.
	stoup_build "$here" "$STOUP_BUILD_ROOT/tsan" -DCMAKE_C_COMPILER=gcc \
		-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="-O1 -Wno-tsan" \
		-DSTOUP_SANITIZE=thread || return 1
	TSAN_OPTIONS=halt_on_error=1 run_tests "$STOUP_BUILD_ROOT/tsan" -R "$tsan_tests"
}

run_stage() {
	if ! "stage_$1"; then
		[ "$failed" -gt 0 ] || failed=1
		echo "stage $1 failed"
		summary
		exit 1
	fi
}

case ${1:-} in
"") ;;
--quick) quick=1 ;;
-h | --help)
	usage
	exit 0
	;;
*)
	usage >&2
	exit 2
	;;
esac

trap finish EXIT
packages=(gcc libc6-dev cmake ninja-build pkg-config liburing-dev liblz4-dev libzstd-dev
	libxxhash-dev libarchive-dev libmicrohttpd-dev libncurses-dev check python3 python3-numpy jq spin)
if [ "$quick" -eq 0 ]; then
	packages+=(clang)
fi
packages+=(python3-pyte) # a terminal to test stoup top on
# Not prometheus, without which a test is skipped: where systemd runs, installing it starts and enables a server at port 9090.
packages+=(g++ dpkg-dev file python3-cffi bindgen) # C++, packages, bindings: without them those tests are skipped
stoup_packages "${packages[@]}" || exit 1
stoup_build_root "$here"

if [ "$quick" -eq 1 ]; then
	stages=(gcc)
else
	stages=(format gcc clang asan tsan)
fi
for name in "${stages[@]}"; do
	run_stage "$name"
done
echo
summary
