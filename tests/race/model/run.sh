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
# searches: hence no optimization, clang where there is one (half the time of gcc), and states are stored
# uncompressed.
set -euo pipefail
export LC_ALL=C # a point in EPOCHREALTIME

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cc=${CC:-$(command -v clang || echo cc)}
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
	wake      -                 -DPSO -DCLAIM -DROUNDS=1 -DDEATH
	wake      -                 -DPSO -DCLAIM -DROUNDS=1 -DNP
	wake      F_NO_DRAIN_LOOK   -DCLAIM -DROUNDS=1 -DDEATH
	wake      F_NO_LAST_SCAN    -DCLAIM
	restart   -                 -DPOS=1
	restart   -                 -DTHREADS=2
	restart   -                 -DTHREADS=2 -DBUFFERS=2
	restart   -                 -DTHREADS=2 -DPOS=1 -DLIVES=3
	restart   F_NO_LOOK         -DTHREADS=2
	restart   F_UNMAP_EARLY     -DTHREADS=2
	restart   F_UNMAP_WAITER    -DTHREADS=2
	restart   F_WORD_JOIN       -DTHREADS=2
	restart   F_SESSION_LATE    -DTHREADS=2
	restart   F_TWO_LOADS       -DTHREADS=2
	restart   F_IN_PLACE        -DTHREADS=2
	restart   F_ADVANCE         -DTHREADS=2
	restart   F_REPLAY          -DTHREADS=2
	fork      -
	fork      -                 -DBUFFERS=1 -DCHILDREN=2
	fork      F_NO_GENERATION   -DBUFFERS=1
	fork      F_PARENT_COPIES   -DBUFFERS=1
	fork      F_COPY_IN_PASS    -DBUFFERS=1
	fork      F_UNSCANNED       -DBUFFERS=1
	fork      F_CHILD_TRUSTS    -DBUFFERS=1
	fork      F_KEEP_REST       -DBUFFERS=1
	fork      F_TICKET_TWICE    -DBUFFERS=1 -DCHILDREN=2
	fork      F_EXPIRE_USED     -DBUFFERS=1
	END
}

# property MODEL OPTION...: what a run without a fault shows.
property() {
	case " $* " in
	" lease "*" -DBYTES "*) echo "bytes under a lease are of its block" ;;
	" lease "*) echo "no use of recycled bytes" ;;
	" handover "*) echo "granted once or not at all; each request is answered" ;;
	" wake "*" -DNP "*) echo "every request ends" ;;
	" wake "*" -DCLAIM "*) echo "no lost wake-up and no leak while buffers drain" ;;
	" wake "*) echo "no lost wake-up" ;;
	" restart "*) echo "leases outlive the daemon; every request ends; nothing lost, twice or left" ;;
	" fork "*) echo "copied leases name no recycled bytes; no copy is left" ;;
	esac
}

# build DIR MODEL OPTION...: DIR/pan, which checks the model.
build() {
	local dir=$1 model=$2 kind=-DSAFETY
	shift 2

	case " $* " in
	*" -DNP "*) kind=-DNP ;;
	esac
	cd -- "$dir"
	ln -s -- "$here/$model.pml" "$here/store_buffer.inc" .
	spin -a "$@" "$model.pml" >spin.out 2>&1 &&
		"$cc" -O0 -w "$kind" -DMEMLIM=1024 -o pan pan.c >cc.out 2>&1
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

# found FILE: what the search came to, as one word in `what`, and the number of states in `states`. No other
# program is called: starting one costs as much as many a search.
found() {
	local out='' line

	[ ! -e "$1" ] || out=$(<"$1")
	states=-
	if [[ $out =~ ([0-9.e+]+)' states, stored' ]]; then
		states=${BASH_REMATCH[1]}
	fi
	case $out in
	"") what=unbuilt ;;
	*"invalid array index"* | *"pan: out of"* | *"pan: reached -DMEMLIM"* | *"max search depth too small"*)
		what=incomplete
		;;
	*pan:[0-9]*": assertion violated"* | *pan:[0-9]*": invalid end state"* | \
		*pan:[0-9]*": non-progress cycle"*)
		what=fails
		;;
	*"errors: 0"$'\n'*) what=ok ;;
	*) what=incomplete ;;
	esac
	[ "$what" = ok ] || return 0
	while IFS= read -r line; do
		if [[ $line =~ ^$'\t'[a-z_]+\.(pml|inc):[0-9]+', state' && $line != *'"-end-"'* ]]; then
			what=unreached
		fi
	done <<<"$out"
}

# check NUMBER MODEL FAULT OPTION...: one line, and a file where it is as expected.
check() {
	local number=$1 dir=$work/$1 model=$2 fault=$3 expected=ok what states text=
	local begin=$EPOCHREALTIME
	shift 3

	if [ "$fault" != - ]; then
		expected=fails
		set -- "-D$fault" "$@"
	fi
	mkdir -- "$dir"
	if (build "$dir" "$model" "$@"); then
		(search "$dir" "$@") || true # its verdict is in its output
	fi
	found "$dir/pan.out"
	[ "$fault" = - ] || shift
	[ "$fault" != - ] || text=$(property "$model" "$@")
	printf '%-9s %-17s %-8s %-8s %8s %5d.%d  %s%s\n' "$model" "$fault" "$expected" "$what" "$states" \
		$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000000)) \
		$(((${EPOCHREALTIME/./} - ${begin/./}) / 100000 % 10)) "$*" "${text:+${1:+  }[$text]}"
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

	(build "$work" "$model" "$@") || {
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
