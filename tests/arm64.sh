#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# arm64.sh - cross-build for arm64, run the tests under user-mode emulation, read the instructions.
#
#   tests/arm64.sh              all of it (about 7 minutes on 2 cores)
#   tests/arm64.sh --libstoup   libstoup and its tests alone, as where the core's libraries cannot be had
#
#   build   with Debian's cross compiler (tests/arm64.cmake), warnings as errors
#   tests   unit, layout, race and fault tests, on a processor with atomic instructions of its own, those of
#           the lease protocol also on one without; ingest, stoupd and stoup cat from end to end; system
#           tests (tests/arm64_run.py)
#   orders  for each tag of docs/memory-model.md: is the instruction there that its order demands, and does
#           the check see each order that is weakened in a copy (tests/arm64_orders.py)
#
# Emulation on another processor shows no reordering: what a weak memory order does is argued in
# docs/memory-model.md. On an arm64 machine ./test.sh does more.
#
# Missing Debian packages are installed when run as root; else the one command is printed. The core's libraries
# for arm64 are downloaded by apt with lists and a state of its own, and unpacked in the build directory: the
# packages of this machine stay as they are. STOUP_ARM64_ROOT: a directory that has them already.
# STOUP_BUILD_DIR: see test.sh. Exit status 0: all that ran passed; what did not is named. The last line is
# the count.
set -euo pipefail
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/packages.sh
. "$here/tests/packages.sh"

libraries=(liburing liblz4 libzstd libxxhash libarchive) # as pkg-config knows them; Debian adds -dev
passed=0
failed=0
skipped=0

usage() {
	sed -n '3,25s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

stage() {
	echo
	echo "==== $1"
}

skip() {
	echo "skipped: $1"
	skipped=$((skipped + 1))
}

# check TEXT COMMAND...: one check, told when it fails.
check() {
	local text=$1

	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		echo "FAILED: $text"
		failed=$((failed + 1))
	fi
}

emulator() {
	command -v qemu-aarch64-static || command -v qemu-aarch64
}

# ---- libraries ---------------------------------------------------------------------------------

# apt-get for arm64 with everything of its own but the sources and their keys.
apt_arm64() {
	local own=$work/apt

	apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" \
		-o Dir::State="$own/state" -o Dir::State::status="$own/status" -o Dir::Cache="$own/cache" \
		-o Dir::Log="$own/log" -o Debug::NoLocking=1 -o APT::Get::List-Cleanup=0 -q "$@"
}

# unpack NAME...: packages and all that they need, but libc's headers, which the cross compiler has.
unpack() {
	local deb

	rm -rf -- "$work/apt/cache/archives"
	mkdir -p -- "$work/apt/cache/archives/partial"
	apt_arm64 install -y --download-only --no-install-recommends "$@" >>"$work/apt.log" 2>&1 || return 1
	rm -rf -- "$work/root.part"
	mkdir -- "$work/root.part"
	for deb in "$work"/apt/cache/archives/*.deb; do
		case ${deb##*/} in
		libc6-dev_* | libc-dev-bin_* | linux-libc-dev_* | libcrypt-dev_*) ;;
		*) dpkg -x "$deb" "$work/root.part" || return 1 ;;
		esac
	done
	rm -rf -- "$work/root"
	mv -- "$work/root.part" "$work/root"
}

has_library() {
	[ -e "$root/usr/lib/aarch64-linux-gnu/pkgconfig/$1.pc" ]
}

has_all() {
	local name

	for name in "${libraries[@]}" check; do
		has_library "$name" || return 1
	done
}

# Sets root: a directory with the core's libraries and Check for arm64, or with less.
prepare_root() {
	root=${STOUP_ARM64_ROOT:-$work/root}
	if [ -n "${STOUP_ARM64_ROOT:-}" ] || has_all; then
		echo "libraries for arm64: $root"
		return 0
	fi
	mkdir -p -- "$work/apt/state/lists/partial" "$work/apt/cache" "$work/apt/log" "$work/root"
	: >"$work/apt/status"
	: >"$work/apt.log"
	if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
		echo "note: no apt here: set STOUP_ARM64_ROOT to a directory with ${libraries[*]} and check for arm64"
		return 0
	fi
	# A source without arm64 is none of ours: what counts is whether the packages are found.
	apt_arm64 update >>"$work/apt.log" 2>&1 || true
	if unpack "${libraries[@]/%/-dev}" check; then
		echo "libraries for arm64: downloaded, unpacked in $root"
	else
		sed -n 's/^E: /note: apt for arm64: /p' "$work/apt.log"
		unpack check || true
	fi
}

# ---- stages --------------------------------------------------------------------------------------

# Decide what can be built: all, or libstoup alone; sets build and options.
decide() {
	local name absent=()

	build=$work/all
	options=(-DCMAKE_TOOLCHAIN_FILE="$here/tests/arm64.cmake" -DSTOUP_ARM64_ROOT="$root")
	for name in "${libraries[@]}"; do
		has_library "$name" || absent+=("$name")
	done
	if [ ${#absent[@]} -gt 0 ]; then
		skip "stoupd, stoup and the tests of their parts: absent for arm64: ${absent[*]} (see $work/apt.log)"
	elif [ "$libstoup" -eq 1 ]; then
		skip "stoupd, stoup and the tests of their parts: --libstoup"
	fi
	if [ ${#absent[@]} -gt 0 ] || [ "$libstoup" -eq 1 ]; then
		build=$work/libstoup
		options+=(-DSTOUP_DAEMON=OFF)
	fi
	if ! has_library check; then
		options+=(-DSTOUP_TESTS=OFF)
	fi
	loader=$root
	[ -e "$root/lib/ld-linux-aarch64.so.1" ] || loader=/usr/aarch64-linux-gnu
	options+=(-DSTOUP_ARM64_EMULATOR="$(emulator);-L;$loader")
}

needs_libc_only() {
	local needed

	needed=$(aarch64-linux-gnu-readelf -d "$build/lib/libstoup.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	! grep -vxE 'libc\.so\.6|ld-linux-aarch64\.so\.1' <<<"$needed"
}

is_arm64() {
	aarch64-linux-gnu-readelf -h "$1" | grep -q 'Machine: *AArch64'
}

stage_build() {
	stage "build: $(aarch64-linux-gnu-gcc --version | head -n 1)"
	if ! stoup_build "$here" "$build" "${options[@]}"; then
		check "the build" false
		return 1
	fi
	check "libstoup.so is of arm64" is_arm64 "$build/lib/libstoup.so"
	check "libstoup.so needs libc only" needs_libc_only
}

# Add what a script counted in the last line of its log: "NAME: N passed, N failed, N skipped".
add_counts() {
	local log=$1 status=$2 name=$3 line

	line=$(tail -n 1 -- "$log")
	if [[ $line =~ ^$name:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
		if [ "$status" -ne 0 ] && [ "${BASH_REMATCH[2]}" -eq 0 ]; then
			check "$name: exit status $status" false
		fi
	else
		check "$name: ended without a count, exit status $status" false
	fi
}

stage_tests() {
	local status=0

	stage "tests: under $("$(emulator)" --version | head -n 1)"
	if ! has_library check; then
		skip "all tests: Check for arm64 is absent (see $work/apt.log)"
		return 0
	fi
	aarch64-linux-gnu-gcc -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "$here/tests/arm64_probe.c" \
		-o "$work/probe"
	python3 -B "$here/tests/arm64_run.py" --build "$build" --probe "$work/probe" --emulator "$(emulator)" \
		--root "$loader" --work "$work/run" 2>&1 | tee -- "$work/run.log" || status=1
	add_counts "$work/run.log" $status emulation
}

stage_orders() {
	local status=0

	stage "orders: the instructions behind docs/memory-model.md"
	python3 -B "$here/tests/arm64_orders.py" --build "$build" --include "$root/usr/include" 2>&1 |
		tee -- "$work/orders.log" || status=1
	add_counts "$work/orders.log" $status orders
}

libstoup=0
case ${1:-} in
"") ;;
--libstoup) libstoup=1 ;;
-h | --help)
	usage
	exit 0
	;;
*)
	usage >&2
	exit 2
	;;
esac
if [ "$(uname -m)" = aarch64 ]; then
	echo "this machine is arm64: ./test.sh runs all tests on it, tests/arm64_orders.py reads the instructions" >&2
	exit 2
fi

packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross cmake ninja-build pkg-config python3)
emulator >/dev/null || packages+=(qemu-user-static)
stoup_packages "${packages[@]}" || exit 1
trap stoup_build_cleanup EXIT
stoup_build_root "$here"
work=$STOUP_BUILD_ROOT/arm64
mkdir -p -- "$work"

stage "libraries"
prepare_root
decide
if stage_build; then
	stage_tests
	stage_orders
fi
echo
[ "$skipped" -eq 0 ] || echo "$skipped skipped: each is named above, with the reason"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
