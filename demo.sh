#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh - what stoup is for, measured: many workers over the same data, from one decoded copy and
# from a copy of their own each.
#
#   ./demo.sh                          a simulated market: 10 M MBO records of 8 symbols
#   ./demo.sh FILE...                  your own DBN files
#   ./demo.sh FILE... -- OPTION...     your own files of any kind, with options for `stoup ingest`
#
#   file --ingest--> store --> stoupd --> pool --> 1 worker, then 8 workers   (stoup)
#     +--------------------------------------------> 8 workers, each decodes  (private, DBN only)
#
# Every worker sums price and size (where there are such fields), counts records, and checks every
# byte; all must agree, in every mode, or the exit status is 1. Memory is the sum of PSS (each
# shared page counted once, divided among those who share it) of all workers and the daemon, read
# while all of them are alive.
#
# STOUP_DEMO_RECORDS=10M  STOUP_DEMO_WORKERS=8  STOUP_BUILD_DIR=build  TMPDIR=/tmp
# Missing Debian packages are installed when run as root; else the one command is printed.
set -euo pipefail
shopt -s extglob
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/packages.sh
. "$here/tests/packages.sh"

records=${STOUP_DEMO_RECORDS:-10M}
workers=${STOUP_DEMO_WORKERS:-8}
pool=demo-$$
pool_len=0
backing=posix
work=
daemon=
bin=
files=()
ingest_options=()
expected=
mismatch=0

usage() {
	sed -n '3,20s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

fail() {
	echo "demo.sh: $*" >&2
	exit 1
}

# ---- the daemon ----------------------------------------------------------------------------------

daemon_start() {
	local line=

	rm -f -- "$work/ready"
	mkfifo -- "$work/ready"
	"$bin/stoupd" --store "$work/store" --pool "$pool" --size "$1" --backing "$backing" \
		--quiet --ready-fd 3 3>"$work/ready" 2>>"$work/stoupd.log" &
	daemon=$!
	read -r line <"$work/ready" || true
	if [ "$line" != ready ]; then
		cat -- "$work/stoupd.log" >&2
		fail "the daemon did not start: ${line:-see above}"
	fi
}

daemon_stop() {
	local i

	[ -n "$daemon" ] || return 0
	kill -TERM "$daemon" 2>/dev/null || true
	for ((i = 0; i < 50; i++)); do
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$daemon" 2>/dev/null || true
	wait "$daemon" 2>/dev/null || true
	daemon=
}

# stat_sum NAME: sum of all values of a name in the pool's statistics.
stat_sum() {
	"$bin/stoup" stat --json "$pool" | grep -o "\"$1\": [0-9]*" |
		awk '{ sum += $2 } END { printf "%.0f\n", sum }'
}

cleanup() {
	daemon_stop
	stoup_build_cleanup
	[ -z "$work" ] || rm -rf -- "$work"
}

# ---- memory of this machine ----------------------------------------------------------------------

# Bytes that processes may still take: of the machine and of the control group.
memory_available() {
	local machine group used

	machine=$(awk '/^MemAvailable:/ { printf "%.0f\n", $2 * 1024 }' /proc/meminfo)
	group=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
	used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null || echo 0)
	if [ "$group" != max ] && [ $((group - used)) -lt "$machine" ]; then
		machine=$((group - used))
	fi
	echo "$machine"
}

# A pool that holds all of the data, if the machine has room; in /dev/shm if that has.
choose_pool() {
	local wanted=$(($1 + $1 / 16 + (32 << 20))) available shm

	available=$(memory_available)
	shm=$(df -B1 --output=avail /dev/shm 2>/dev/null | tail -n 1)
	pool_len=$wanted
	if [ "$pool_len" -gt $((available / 2)) ]; then
		pool_len=$((available / 2))
		echo "note: the pool gets $((pool_len >> 20)) MiB, half of the memory that is free;" \
			"all data would need $((wanted >> 20)) MiB"
	fi
	if [ "${shm:-0}" -lt $((pool_len + (16 << 20))) ]; then
		backing=memfd
		echo "note: /dev/shm has $((${shm:-0} >> 20)) MiB, so the pool is a memfd"
	fi
}

# ---- one row of the table ------------------------------------------------------------------------

# measure LABEL DRIVER-ARGUMENT...: run, check the sums, print the row. Decodes per block come from
# $decodes where it is set, else from the daemon's counters.
measure() {
	local label=$1 line blocks_before=0 sums wall cpu pss daemon_pss count rate

	shift
	[ -z "$daemon" ] || blocks_before=$(stat_sum loads)
	line=$("$bin/stoup-demo-driver" "$@") || fail "$label: the run failed"
	sums=${line#* records=}
	expected=${expected:-$sums}
	if [ "$sums" != "$expected" ]; then
		echo "demo.sh: $label: records=$sums" >&2
		echo "demo.sh: the others: records=$expected" >&2
		mismatch=1
	fi
	read -r wall cpu pss daemon_pss count _ <<<"${line//+([a-z_])=/}"
	if [ -n "$daemon" ]; then
		decodes=$(awk -v n="$(($(stat_sum loads) - blocks_before))" -v of="$blocks" \
			'BEGIN { printf "%.2f", n / of }')
	fi
	rate=$(awk -v n="$count" -v w="$running" -v t="$wall" \
		'BEGIN { printf "%.1f", n * w / t * 1e3 }')
	last_rate=$rate
	last_mib=$(awk -v m="$pss" -v d="$daemon_pss" 'BEGIN { printf "%.0f", (m + d) / 1024 }')
	awk -v l="$label" -v wall="$wall" -v cpu="$cpu" -v m="$pss" -v d="$daemon_pss" \
		-v rate="$rate" -v decodes="$decodes" 'BEGIN {
			printf "%-34s %8.2f %8.2f %10.1f %12.1f %11s\n", l, wall / 1e9, cpu / 1e9,
				(m + d) / 1024, rate, decodes }'
}

measure_shared() {
	running=$2
	measure "$1" --daemon "$daemon" "$2" "$bin/stoup-demo-shared" "$pool"
}

# measure_private LABEL MODE WORKERS
measure_private() {
	running=$3
	decodes=$3.00
	measure "$1" "$3" "$bin/stoup-demo-private" "$2" "${files[@]}"
}

# ---- stages --------------------------------------------------------------------------------------

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help)
			usage
			exit 0
			;;
		--)
			shift
			ingest_options=("$@")
			return 0
			;;
		-*)
			usage >&2
			exit 2
			;;
		*)
			[ -r "$1" ] || fail "$1: no such file, or not readable"
			files+=("$(realpath -- "$1")")
			;;
		esac
		shift
	done
}

build() {
	echo "building in $STOUP_BUILD_ROOT/release"
	stoup_build "$here" "$STOUP_BUILD_ROOT/release" -DSTOUP_TESTS=OFF \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo
	bin=$STOUP_BUILD_ROOT/release/bin
}

make_data() {
	if [ ${#files[@]} -eq 0 ]; then
		files=("$work/market.dbn.zst")
		echo "simulating $records records of 8 symbols"
		"$bin/stoup-sim" --records "$records" --symbols 8 --seed 1 --threads "$(nproc)" \
			--out "${files[0]}"
	fi
	echo "ingesting"
	"$bin/stoup" ingest --store "$work/store" "${ingest_options[@]}" "${files[@]}"
}

# Can the private workers read all files? They know DBN only.
all_dbn() {
	local file

	for file in "${files[@]}"; do
		case $file in
		*.dbn | *.dbn.zst) ;;
		*) return 1 ;;
		esac
	done
}

legend() {
	cat <<-'EOF'
		wall         until the last worker has ended its pass
		CPU          of all workers and the daemon
		PSS          memory of all of them, a shared page counted once
		M records/s  of all workers together
		decodes/blk  how often a block of the data was decoded
		stoup        all read the one decoded copy in the pool
		resident     each worker decodes a copy of its own and keeps it, as programs with random
		             access or several passes do
		streaming    each worker decodes as it goes and keeps nothing

	EOF
}

# What the table says, in words; for DBN data, which the private workers could read too.
conclusion() {
	if [ "$raw_len" -lt $((64 << 20)) ]; then
		echo "note: these data are small ($((raw_len >> 20)) MiB): the pool's fixed slack of" \
			"32 MiB outweighs them, or weighs about as much"
	fi
	[ -n "$private_rate" ] || return 0
	awk -v w="$workers" -v p="$private_workers" -v a="$shared_rate" -v f="$filled_rate" \
		-v b="$private_rate" -v am="$shared_mib" -v bm="$private_mib" 'BEGIN {
			copies = p == w ? "resident private copies" : p " resident private copies"
			printf "%d workers with stoup: %.1f x as fast as %s, in %d instead of %d MiB\n" \
				"(%.1f x once the pool is filled);\n", w, a / b, copies, am, bm, f / b
			printf "streaming saves the memory but decodes everything %d times on each " \
				"pass.\n", w }'
}

run_shared() {
	local raw

	daemon_start 16M
	raw=$(stat_sum raw_bytes)
	blocks=$(stat_sum blocks)
	daemon_stop
	[ "$blocks" -gt 0 ] || fail "the files hold no records"
	raw_len=$raw
	choose_pool "$raw"
	echo
	echo "$(((raw + 1023) >> 10)) KiB in $blocks blocks, a pool of $((pool_len >> 20)) MiB," \
		"$(nproc) cores"
	echo
	legend
	printf "%-34s %8s %8s %10s %12s %11s\n" "" "wall s" "CPU s" "PSS MiB" "M records/s" \
		"decodes/blk"
	daemon_start "$pool_len"
	measure_shared "stoup, 1 worker, pool empty" 1
	daemon_stop
	daemon_start "$pool_len"
	measure_shared "stoup, $workers workers, pool empty" "$workers"
	shared_rate=$last_rate
	measure_shared "stoup, $workers workers, pool filled" "$workers"
	filled_rate=$last_rate
	shared_mib=$last_mib
	daemon_stop
}

run_private() {
	local fits

	if ! all_dbn; then
		echo "note: the private workers read DBN files only; they are left out"
		return 0
	fi
	# A worker holds all records decoded; beside them about a tenth for its buffers.
	fits=$(($(memory_available) * 7 / 10 / (raw_len + raw_len / 10 + (8 << 20))))
	[ "$fits" -lt "$workers" ] || fits=$workers
	if [ "$fits" -gt 0 ]; then
		measure_private "private, $fits workers, resident" --resident "$fits"
		private_workers=$fits
		private_rate=$last_rate
		private_mib=$last_mib
	fi
	if [ "$fits" -lt "$workers" ]; then
		echo "note: memory for $fits resident copies only"
	fi
	measure_private "private, $workers workers, streaming" --stream "$workers"
}

main() {
	parse "$@"
	stoup_packages gcc libc6-dev cmake ninja-build pkg-config liburing-dev liblz4-dev \
		libzstd-dev libxxhash-dev libarchive-dev || exit 1
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	stoup_build_root "$here"
	work=$(mktemp -d "${TMPDIR:-/tmp}/stoup-demo-XXXXXX")
	# The demo's daemon has its socket to itself, also where the user has no runtime directory.
	export XDG_RUNTIME_DIR=$work/run
	mkdir -m 0700 -- "$XDG_RUNTIME_DIR"
	build
	make_data
	run_shared
	run_private
	echo
	conclusion
	echo "every worker's sums: records=$expected"
	if [ "$mismatch" -ne 0 ]; then
		echo "the sums do not agree: see above. (A file that maps one instrument to several" \
			"symbols is stored under each of them, so stoup then counts its records more" \
			"often than the private workers.)" >&2
		exit 1
	fi
	echo "all agree"
}

blocks=0
raw_len=0
running=0
decodes=
last_rate=
last_mib=
shared_rate=
shared_mib=
filled_rate=
private_workers=
private_rate=
private_mib=
main "$@"
