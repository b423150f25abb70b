# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# lib_storm.sh - sourced by storm.sh and soak.sh: programs, store, a /dev/shm of one's own, the run.
#
#   storm_own_shm SCRIPT ARGUMENT...   run SCRIPT again where /dev/shm is its own, if that can be had
#   storm_programs SOURCE              build what is not there
#   storm_prepare SOURCE               that, and make the store
#   storm_shifting                     add the series that a soak replaces
#   storm_crowd                        make the volumes that come and go until places run short
#   storm_run OPTION...                run, then verify the store; the exit status is the verdict

STORM_SERIES=6
STORM_RECORDS=60000 # of each; half of them in a volume of its own, 20000 and 40000 are inside a tie
STORM_SMALL=20
STORM_SMALL_RECORDS=300
STORM_SHIFT_RECORDS=20000
STORM_CROWD_CNT=70 # in eight stores: twice that many are more than the daemon's 1024 spare places

storm_work=
storm_bin=

storm_own_shm() {
	[ -z "${STORM_OWN_SHM:-}" ] || return 0
	export STORM_OWN_SHM=no
	if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
		# shellcheck disable=SC2016
		exec unshare -m bash -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm &&
			STORM_OWN_SHM=yes exec bash "$@"' bash "$@"
	fi
	echo "note: not root, or no mount namespaces: /dev/shm is shared with others"
}

storm_cleanup() {
	[ -z "$storm_work" ] || rm -rf -- "$storm_work"
	rm -f -- "/run/stoup/storm$$.lock"
}

# storm_ingest FROM TO OPTION...: the records FROM to TO - 1 of each large series, and small ones with 0.
storm_ingest() {
	local from=$1 to=$2 parts=() i

	shift 2
	for ((i = 0; i < STORM_SERIES; i++)); do
		parts+=("$i:$from:$to")
	done
	for ((i = STORM_SERIES; from == 0 && i < STORM_SERIES + STORM_SMALL; i++)); do
		parts+=("$i:0:$STORM_SMALL_RECORDS")
	done
	"$storm_bin/storm_data" "$storm_work/part.dbn" 0 "${parts[@]}"
	"$storm_bin/stoup" ingest --store "$storm_work/store" --quiet "$@" "$storm_work/part.dbn"
	rm -- "$storm_work/part.dbn"
}

storm_programs() {
	storm_bin=${STOUP_BIN_DIR:-}
	if [ -z "$storm_bin" ]; then
		# shellcheck source=tests/packages.sh
		. "$1/tests/packages.sh"
		stoup_build_root "$(cd -- "$1" && pwd)"
		stoup_build "$(cd -- "$1" && pwd)" "$STOUP_BUILD_ROOT/gcc" -DCMAKE_C_COMPILER=gcc
		storm_bin=$STOUP_BUILD_ROOT/gcc/bin
	fi
}

storm_prepare() {
	storm_programs "$1"
	trap storm_cleanup EXIT
	storm_work=$(mktemp -d "${TMPDIR:-/tmp}/stoup-storm-XXXXXX")
	mkdir -m 700 "$storm_work/run"
	export XDG_RUNTIME_DIR=$storm_work/run
	# Three volumes: the borders of the second lie inside a run of equal keys.
	storm_ingest 0 20000 --block 64K --codec zstd --level 1
	storm_ingest 20000 40000 --block 128K --codec lz4
	storm_ingest 40000 "$STORM_RECORDS" --block 64K --codec lz4
}

# Two series that a soak replaces again and again.
storm_shifting() {
	"$storm_bin/storm_data" "$storm_work/part.dbn" 0 "900:0:$STORM_SHIFT_RECORDS" \
		"901:0:$STORM_SHIFT_RECORDS"
	"$storm_bin/stoup" ingest --store "$storm_work/store" --quiet --block 64K "$storm_work/part.dbn"
	rm -- "$storm_work/part.dbn"
}

# Small volumes that nobody reads, and the stores into which they come; sets STORM_CROWD.
storm_crowd() {
	local i

	STORM_CROWD=$storm_work/crowd
	for ((i = 0; i < STORM_CROWD_CNT; i++)); do
		"$storm_bin/storm_data" "$storm_work/part.dbn" 0 "990:$((20 * i)):$((20 * i + 20))"
		"$storm_bin/stoup" ingest --store "$STORM_CROWD" --quiet --block 64K "$storm_work/part.dbn"
	done
	rm -- "$storm_work/part.dbn"
	for ((i = 0; i < 8; i++)); do
		mkdir "$storm_work/row$i"
	done
}

storm_run() {
	local options=(--bin "$storm_bin" --store "$storm_work/store" --pool "storm$$"
		--log "$storm_work/stoupd.log"
		--series "$STORM_SERIES" --records "$STORM_RECORDS"
		--small "$STORM_SMALL" --small-records "$STORM_SMALL_RECORDS") status=0 log

	[ "$STORM_OWN_SHM" != yes ] || options+=(--own-shm)
	log=$(dmesg 2>/dev/null | wc -l || true)
	"$storm_bin/storm" "${options[@]}" "$@" || status=$?
	[ $status -eq 0 ] || grep -v 'attach refused' -- "$storm_work/stoupd.log" | sort | uniq -c | tail -n 40
	# The kernel's log tells of faults that nobody saw otherwise; what it says of others is not ours.
	if dmesg 2>/dev/null | tail -n +$((log + 1)) | grep -E 'storm_worker|storm\[|Oops'; then
		echo "the kernel's log has something: see above"
		status=1
	fi
	"$storm_bin/stoup" verify "$storm_work/store" >"$storm_work/verify.log" 2>&1 || {
		cat -- "$storm_work/verify.log"
		echo "the store does not verify"
		status=1
	}
	[ -z "$(find "$storm_work/run" /run/stoup -name "storm$$.sock" 2>/dev/null)" ] || {
		echo "a socket file was left"
		status=1
	}
	return $status
}
