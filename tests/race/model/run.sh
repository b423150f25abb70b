#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - check the models of the lease protocol with Spin, and that every seeded fault is found.
#
#   ./run.sh                      all runs of the table below; 77 when spin or a C compiler is absent
#   ./run.sh lease -DF_NO_RELOAD  one run, and the steps that lead to its error
#
# One line per run: model, fault, expected, found, states, seconds, options. A run without a fault is
# "ok" only if the whole state space was searched without an error and every statement of the model was
# executed somewhere in it: what is never executed proves nothing. A fault "fails" by a violated assertion, an
# invalid end state or a cycle without progress.
#
# Two runs at a time, each within 1 GiB (the largest takes 0.3). Compiling takes longer than most of the
# searches: hence -O1 for whole state spaces and -O0 for faults, and states are stored uncompressed.
set -euo pipefail
export LC_ALL=C # a point in EPOCHREALTIME

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cc=${CC:-cc}
jobs_cap=2
work=

# model  fault or -  options
table() {
	cat <<-'END'
	lease     -
	lease     -                 -DCLAIM -DCELLS=1 -DNODEATH
	lease     -                 -DCLAIM -DCELLS=1 -DBUFFERS=1
	lease     -                 -DREACHED -DBUFFERS=1
	lease     -                 -DPSO -DBYTES -DBUFFERS=1
	lease     F_NO_RELOAD
	lease     F_PLAIN_ACQUIRE
	lease     F_INDEX_ONLY
	lease     F_MOVE
	lease     F_NO_EVICT_FENCE
	lease     F_SCAN_FIRST
	lease     F_DROP_AT_KILL
	lease     F_HIGH_LATE       -DREACHED
	lease     F_PLAIN_PUBLISH   -DPSO -DBYTES -DBUFFERS=1
	handover  -                 -DPSO -DBUFFERED
	handover  -                 -DPSO -DBUFFERED -DBUFFERS=2 -DBLOCKS=3 -DNODEATH
	handover  -                 -DPSO -DBUFFERED -DBUFFERS=2 -DBLOCKS=3 -DCONSUMERS=1 -DSLOTS=2
	handover  F_GRANT_STORE
	handover  F_DONE_FIRST
	handover  F_NO_ACK
	handover  F_SLOT_REUSE
	handover  F_NO_ATTACH_NO
	handover  F_RELAXED_POST    -DPSO -DBUFFERED
	wake      -                 -DPSO
	wake      -                 -DPSO -DROUNDS=1 -DDEATH
	wake      -                 -DPSO -DROUNDS=1 -DNP
	wake      -                 -DPSO -DBUFFERS=2 -DBLOCKS=3 -DHOLDING -DOTHER_ROUNDS=1
	wake      F_PLAIN_POST
	wake      F_PLAIN_RELEASE
	wake      F_GIVE_UP
	wake      F_NO_LAST_LOOK
	wake      F_NO_LAST_SCAN
	wake      F_NO_FLAG_FENCE
	wake      F_DRAIN
	wake      F_WAKE_BY_LOAD
	END
}

# build DIR MODEL OPTIMIZATION OPTION...: DIR/pan, which checks the model.
build() {
	local dir=$1 model=$2 level=$3 kind=-DSAFETY
	shift 3

	case " $* " in
	*" -DNP "*) kind=-DNP ;;
	esac
	cp -- "$here/$model.pml" "$here/store_buffer.inc" "$dir"
	cd -- "$dir"
	spin -a "$@" "$model.pml" >spin.out 2>&1 &&
		"$cc" "$level" -w "$kind" -DMEMLIM=1024 -o pan pan.c >cc.out 2>&1
}

# search DIR OPTION...: DIR/pan.out. Depth and hash table are sized by what is to be seen: clearing memory
# would be a good part of a short run.
search() {
	local dir=$1 size="-m1000000 -w20"
	shift

	case " $* " in
	*" -DF_"*) size="-m200000 -w17" ;;
	*" -DNP "*) size="-l -m100000 -w20" ;;
	esac
	cd -- "$dir"
	# shellcheck disable=SC2086 # the sizes are words
	./pan $size >pan.out 2>&1
}

# found DIR: one word for what the search came to.
found() {
	local out=$1/pan.out

	if ! [ -s "$out" ]; then
		echo unbuilt
	elif grep -qE 'invalid array index|pan: (out of|reached -DMEMLIM)|max search depth too small' "$out"; then
		echo incomplete
	elif grep -qE '^pan:[0-9]+: (assertion violated|invalid end state|non-progress cycle)' "$out"; then
		echo fails
	elif ! grep -q 'errors: 0$' "$out"; then
		echo incomplete
	elif grep -E '^	[a-z_]+\.(pml|inc):[0-9]+, state' "$out" | grep -qv '"-end-"'; then
		echo unreached
	else
		echo ok
	fi
}

# check NUMBER MODEL FAULT OPTION...: one line, and a file where it is as expected.
check() {
	local number=$1 dir=$work/$1 model=$2 fault=$3 expected=ok level=-O1 what states
	local begin=$EPOCHREALTIME
	shift 3

	if [ "$fault" != - ]; then
		expected=fails
		level=-O0
		set -- "-D$fault" "$@"
	fi
	mkdir -- "$dir"
	: >"$dir/pan.out"
	if (build "$dir" "$model" "$level" "$@"); then
		(search "$dir" "$@") || true # its verdict is in its output
	fi
	what=$(found "$dir")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/pan.out" | head -n 1)
	[ "$fault" = - ] || shift
	printf '%-9s %-17s %-8s %-8s %8s %5d.%d  %s\n' "$model" "$fault" "$expected" "$what" "${states:--}" \
		$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000000)) \
		$(((${EPOCHREALTIME/./} - ${begin/./}) / 100000 % 10)) "$*"
	if [ "$what" = "$expected" ]; then
		: >"$work/fine.$number"
	else
		tail -n 60 "$dir"/*.out
	fi
	rm -rf -- "$dir"
}

# The steps that lead to the error of one run.
explain() {
	local model=$1
	shift

	(build "$work" "$model" -O1 "$@") || {
		cat "$work"/*.out
		return 1
	}
	(search "$work" "$@") || true
	cat "$work/pan.out"
	if [ -e "$work/$model.pml.trail" ]; then
		cd -- "$work"
		spin -t -p -g -l "$@" "$model.pml"
	fi
}

all() {
	local number=0 model fault options begin=$EPOCHREALTIME

	printf '%-9s %-17s %-8s %-8s %8s %7s  %s\n' model fault expected found states seconds options
	while read -r model fault options; do
		number=$((number + 1))
		while [ "$(jobs -pr | wc -l)" -ge "$jobs_cap" ]; do
			wait -n || true
		done
		# shellcheck disable=SC2086 # the options are words
		check "$number" "$model" "$fault" $options &
	done < <(table)
	wait
	set -- "$work"/fine.*
	[ -e "$1" ] || set --
	echo "$number runs, $((number - $#)) not as expected," \
		"$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000000)) s"
	[ $# -eq "$number" ]
}

for tool in spin "$cc"; do
	if ! command -v "$tool" >/dev/null; then
		echo "$tool is not installed: the models are not checked (Debian: apt install spin gcc)"
		exit 77
	fi
done
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
if [ $# -gt 0 ]; then
	explain "$@"
else
	all
fi
