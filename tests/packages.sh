# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh - sourced by demo.sh and test.sh: Debian packages, build directories, the build.
#
#   stoup_packages NAME...      install what is missing (root), or print the one command and fail
#   stoup_build_root SOURCE     sets STOUP_BUILD_ROOT: $STOUP_BUILD_DIR, else SOURCE/build, else a
#                               temporary directory, which stoup_build_cleanup removes
#   stoup_build SOURCE DIR [CMAKE OPTION...]    configure and build; the log is shown on failure

STOUP_BUILD_ROOT=
STOUP_BUILD_TEMPORARY=

stoup_package_installed() {
	# One line for each architecture that has it.
	dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

stoup_packages() {
	local name missing=()

	if ! command -v dpkg-query >/dev/null; then
		echo "note: no dpkg here; needed are the equivalents of: $*" >&2
		return 0
	fi
	for name in "$@"; do
		stoup_package_installed "$name" || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		echo "Debian packages are missing. Install them with:" >&2
		echo "  sudo apt-get install -y ${missing[*]}" >&2
		return 1
	fi
	echo "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q || return 1
	apt-get install -q -y --no-install-recommends "${missing[@]}" || return 1
}

# Can this user build in DIR: a directory of ours, or one that can be made?
stoup_dir_usable() {
	mkdir -p -- "$1" 2>/dev/null && [ -w "$1" ] && [ -O "$1" ]
}

stoup_build_root() {
	STOUP_BUILD_ROOT=${STOUP_BUILD_DIR:-$1/build}
	if stoup_dir_usable "$STOUP_BUILD_ROOT"; then
		STOUP_BUILD_ROOT=$(cd -- "$STOUP_BUILD_ROOT" && pwd)
		return 0
	fi
	STOUP_BUILD_ROOT=$(mktemp -d "${TMPDIR:-/tmp}/stoup-build-XXXXXX")
	STOUP_BUILD_TEMPORARY=$STOUP_BUILD_ROOT
	echo "note: ${STOUP_BUILD_DIR:-$1/build} is not ours to write; building in $STOUP_BUILD_ROOT"
}

stoup_build_cleanup() {
	[ -z "$STOUP_BUILD_TEMPORARY" ] || rm -rf -- "$STOUP_BUILD_TEMPORARY"
}

# A build directory belongs to one source tree; one of a tree that was moved is made anew.
stoup_build_stale() {
	local cache=$2/CMakeCache.txt home

	[ -e "$cache" ] || return 1
	home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
	[ "$home" != "$1" ]
}

stoup_build() {
	local source=$1 dir=$2 log=$2/build.log

	shift 2
	if stoup_build_stale "$source" "$dir"; then
		rm -rf -- "$dir"
	fi
	mkdir -p -- "$dir"
	if ! cmake -S "$source" -B "$dir" -G Ninja "$@" >"$log" 2>&1 ||
		! cmake --build "$dir" -j "$(nproc)" >>"$log" 2>&1; then
		cat -- "$log" >&2
		echo "the build in $dir failed: see above" >&2
		return 1
	fi
}
