# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of stoup(1) and stoupd(8) for bash: commands, options, their values, pools and series.
#
#   . stoup.bash      in a shell, or installed as bash-completion/completions/stoup
#
# Needs bash alone. tests/system/completion.py compares the lists with what the programs say.

_stoup_commands='ingest ls verify info compact rm diff cat replay export definition stat top holders log exporter warm pin unpin check bench help version'

# The options of a command; those that are followed by a value are in _stoup_values too.
_stoup_options() {
	case $1 in
	ingest)
		echo --exchange --size-scale --store --format --codec --level --block --volume --order --sort --replace \
			--threads --memory --quiet --series --one-stream --allow-partial --dataset --dbn-version --columns --map \
			--schema --time --time-format --time-zone --interval --scale --header \
			--delimiter --as --series-path --again --include --exclude --dry-run --symbols --from --to --feed-latency --max-shift --base-latency \
			--date --raw --raw-only --no-raw --symbol --hour --point --frame-length \
			--frame-time --frame-time-first --help
		;;
	ls) echo --json --gaps --help ;;
	verify) echo --quiet --repair --dry-run --help ;;
	info) echo --json --segments --help ;;
	compact) echo --codec --level --block --volume --overlaps --dry-run --threads --memory --quiet --help ;;
	rm) echo --from --to --dry-run --yes --quiet --help ;;
	diff) echo --json --quiet --help ;;
	replay) echo --speed --from --to --max-gap --format --no-header --help ;;
	cat)
		echo --from --after --to --until --at-ordinal --asof --where --first --last --merge --reverse --backward \
			--limit --follow --select --path --bars --count --format --no-header --skip-damaged --help
		;;
	export)
		echo --format --output --directory --from --to --compress --force --no-header \
			--dbn-version --quiet --help
		;;
	definition) echo --at --json --help ;;
	stat) echo --json --counters --histograms --all --watch --count --help ;;
	top)
		echo --interval --once --count --colour --color --no-colour --no-color --help
		;;
	holders | log) echo --json --help ;;
	exporter) echo --listen --allow-remote --once --series-max --no-consumers --help ;;
	warm) echo --from --to --pin --best-effort --force --help ;;
	pin) echo --from --to --list --json --help ;;
	unpin) echo --all --help ;;
	check) echo --size --backing --mlock --json --root --help ;;
	bench) echo --series --limit --json --help ;;
	stoupd)
		echo --store --pool --size --backing --consumers --cells --lease-bytes --pin-max --quota --requests \
			--request-timeout --threads --cpus --spin --reader --depth --direct --cached \
			--mlock --takeover-wait --no-watch --group --allow-user --allow-group \
			--monitor-user --monitor-group --socket-mode --auto --linger --ready-fd --log-level --quiet \
			--version --help
		;;
	esac
}

# What an option of a command is followed by: words, or <store> <file> <pool> <user> <group>, or <any> for a
# value that nobody can guess; nothing for an option without a value.
_stoup_values() {
	case $1:$2 in
	ingest:--format)
		echo auto dbn csv jsonl npy bi5 itch50 frames binance-trades binance-aggtrades \
			binance-klines binance-bookticker tardis-trades tardis-liquidations tardis-l2 \
			tardis-quotes tardis-book tardis-derivative lobster lobster-book databento-csv truefx \
			histdata histdata-bars fxcm-bars bars quotes
		;;
	ingest:--frame-length) echo u8 u16be u16le u32be u32le u64be u64le ;;
	ingest:--to) echo event64 ;;
	ingest:--as) echo document text ;;
	ingest:--codec | compact:--codec) echo default fast small none lz4 lz4hc zstd ;;
	ingest:--order) echo refuse sort keep ;;
	ingest:--header) echo yes no auto ;;
	ingest:--time-format) echo auto iso epoch s ms us ns ;;
	ingest:--delimiter) echo tab ;;
	ingest:--schema)
		echo mbo trades mbp-1 tbbo mbp-10 bbo-1s bbo-1m ohlcv-1s ohlcv-1m ohlcv-1h ohlcv-1d \
			ohlcv-eod status imbalance definition-v1 definition-v2 definition statistics-v1 \
			statistics cmbp-1 tcbbo cbbo-1s cbbo-1m error-v1 error symbol-mapping-v1 \
			symbol-mapping system-v1 system event64 tick bar \
			itch-mbo itch-trade '<file>'
		;;
	compact:--overlaps) echo refuse merge dedup ;;
	replay:--format) echo csv jsonl json ;;
	replay:--speed) echo 1 10 100 max ;;
	cat:--format) echo csv jsonl json lines npy npz ;;
	export:--format) echo csv jsonl lines dbn npy npz ;;
	export:--compress) echo zstd none ;;
	*:--dbn-version) echo 1 2 3 ;;
	export:--output | export:--directory | check:--root) echo '<file>' ;;
	check:--backing | stoupd:--backing) echo posix memfd hugetlb ;;
	stoupd:--reader) echo auto io_uring pread ;;
	stoupd:--direct) echo auto on off ;;
	stoupd:--log-level) echo error warning info debug ;;
	stoupd:--cached) echo auto off ;;
	*:--store) echo '<store>' ;;
	stoupd:--allow-user | stoupd:--monitor-user) echo '<user>' ;;
	stoupd:--group | stoupd:--allow-group | stoupd:--monitor-group) echo '<group>' ;;
	check:--size) echo '<any>' ;;
	exporter:--listen | exporter:--series-max) echo '<any>' ;;
	bench:--series) echo '<series>' ;;
	compact:--level | compact:--block | compact:--volume | compact:--threads | compact:--memory | \
		rm:--from | rm:--to | warm:--from | warm:--to | pin:--from | pin:--to) echo '<any>' ;;
	ingest:--exchange | ingest:--size-scale) echo '<any>' ;;
	ingest:--level | ingest:--block | ingest:--volume | ingest:--threads | ingest:--memory | \
		ingest:--symbols | ingest:--include | ingest:--exclude | ingest:--series-path | ingest:--from | ingest:--series | ingest:--columns | ingest:--map | ingest:--time | \
		ingest:--time-zone | ingest:--interval | ingest:--scale | ingest:--feed-latency | \
		ingest:--max-shift | ingest:--base-latency | ingest:--dataset | ingest:--date | ingest:--symbol | \
		ingest:--hour | ingest:--point | ingest:--frame-time | ingest:--frame-time-first | \
		export:--from | export:--to | definition:--at | replay:--from | replay:--to | replay:--max-gap | cat:--from | cat:--after | cat:--to | cat:--until | \
		cat:--at-ordinal | cat:--asof | cat:--first | cat:--last | \
		cat:--limit | cat:--where | cat:--select | cat:--path | cat:--bars | stat:--count | top:--interval | top:--count | bench:--limit | stoupd:--pool | stoupd:--size | stoupd:--consumers | \
		stoupd:--cells | stoupd:--lease-bytes | stoupd:--pin-max | stoupd:--quota | stoupd:--requests | \
		stoupd:--request-timeout | stoupd:--threads | stoupd:--cpus | stoupd:--spin | \
		stoupd:--depth | stoupd:--takeover-wait | stoupd:--socket-mode | stoupd:--linger | \
		stoupd:--ready-fd)
		echo '<any>'
		;;
	esac
}

# Names of the pools whose daemon left its socket where this user's programs look for them.
_stoup_pools() {
	local dir socket name

	for dir in "${XDG_RUNTIME_DIR:-/tmp/stoup-$UID}${XDG_RUNTIME_DIR:+/stoup}" /run/stoup; do
		for socket in "$dir"/*.sock; do
			name=${socket##*/}
			[ -S "$socket" ] && [[ $name != auto-* ]] && echo "${name%.sock}"
		done
	done
}

# Names of the series of a store, or of the store that a pool serves where its path is absolute.
_stoup_series() {
	local store=$1 program=${COMP_WORDS[0]:-stoup}

	if [ ! -d "$store" ]; then
		store=$("$program" stat --json "$store" 2>/dev/null |
			sed -n 's/.*"store": "\(\/[^"]*\)".*/\1/p')
		[ -d "$store" ] || return 0
	fi
	"$program" ls "$store" 2>/dev/null | sed -n '2,$s/  .*//p'
}

# Complete the word at the cursor from words that may hold blanks and the marks of _stoup_values.
_stoup_reply() {
	local word=$1 one

	shift
	for one in "$@"; do
		case $one in
		'<any>') ;;
		'<store>')
			compopt -o filenames 2>/dev/null
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$word")
			;;
		'<file>')
			compopt -o filenames 2>/dev/null
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
			;;
		'<pool>')
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(_stoup_pools)" -- "$word")
			;;
		'<user>') mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -u -- "$word") ;;
		'<group>') mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -g -- "$word") ;;
		*)
			[[ $one == "$word"* ]] && COMPREPLY+=("$one")
			;;
		esac
	done
}

# _stoup_words COMMAND FIRST WORD: the option or argument at the cursor, given the words from FIRST on.
_stoup_words() {
	local command=$1 first=$2 word=$3 previous=${COMP_WORDS[COMP_CWORD - 1]} i options values
	local arguments=() series=()

	read -r -a values <<<"$(_stoup_values "$command" "$previous")"
	for ((i = first; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -* ]]; then
			[ -z "$(_stoup_values "$command" "${COMP_WORDS[i]}")" ] || ((i++))
		else
			arguments+=("${COMP_WORDS[i]}")
		fi
	done
	if [ "${values[*]}" = '<series>' ]; then
		mapfile -t series < <(_stoup_series "${arguments[0]:-.}")
		_stoup_reply "$word" "${series[@]}"
	elif [ ${#values[@]} -gt 0 ]; then
		_stoup_reply "$word" "${values[@]}"
	elif [[ $word == -* ]]; then
		read -r -a options <<<"$(_stoup_options "$command")"
		_stoup_reply "$word" "${options[@]}"
	else
		case $command:${#arguments[@]} in
		ingest:* | verify:*) _stoup_reply "$word" '<file>' ;;
		info:0) _stoup_reply "$word" '<file>' ;;
		ls:0 | compact:0 | rm:0 | diff:0 | diff:1) _stoup_reply "$word" '<store>' ;;
		ls:1 | cat:[1-9]* | replay:[1-9]* | warm:[1-9]* | pin:[1-9]* | unpin:[1-9]* | definition:1 | info:1 | holders:1 | compact:1 | diff:2 | rm:* | export:[1-9]*)
			mapfile -t series < <(_stoup_series "${arguments[0]}")
			_stoup_reply "$word" "${series[@]}"
			;;
		exporter:*) _stoup_reply "$word" '<pool>' ;;
		cat:0 | replay:0 | warm:0 | pin:0 | unpin:0 | export:0 | definition:0 | stat:0 | top:0 | holders:0 | log:0 | check:0 | bench:0) _stoup_reply "$word" '<pool>' '<store>' ;;
		esac
	fi
}

_stoup() {
	local word=${COMP_WORDS[COMP_CWORD]} commands

	COMPREPLY=()
	read -r -a commands <<<"$_stoup_commands"
	if [ "$COMP_CWORD" -eq 1 ]; then
		_stoup_reply "$word" "${commands[@]}" --help --version
	elif [ "${COMP_WORDS[1]}" = help ]; then
		[ "$COMP_CWORD" -gt 2 ] || _stoup_reply "$word" "${commands[@]:0:${#commands[@]}-2}"
	else
		_stoup_words "${COMP_WORDS[1]}" 2 "$word"
	fi
}

_stoupd() {
	COMPREPLY=()
	_stoup_words stoupd 1 "${COMP_WORDS[COMP_CWORD]}"
}

complete -F _stoup stoup
complete -F _stoupd stoupd
