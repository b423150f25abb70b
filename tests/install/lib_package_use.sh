#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lib_package_use.sh - install the Debian packages of a folder, use them, remove them, look for what is left.
#
#   lib_package_use.sh DIR dpkg|apt
#
# Run as root inside a root directory that may be thrown away. DIR has the packages, sum.c, sum.cc, in.dbn and
# `expected`, what the sums must print. With apt their dependencies come from the archive.
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
unset PKG_CONFIG_PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH STOUPD XDG_RUNTIME_DIR PYTHONPATH PYTHONDONTWRITEBYTECODE TMPDIR
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

dir=$1
method=$2
daemon=

fail() {
	echo "FAILED: $*"
	exit 1
}

stop_daemon() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
}
trap stop_daemon EXIT

cd "$dir"
mapfile -t names < <(for deb in ./*.deb; do dpkg-deb -f "$deb" Package; done)

# ---- install -------------------------------------------------------------------------------------
for name in "${names[@]}"; do
	! dpkg-query -W "$name" >/dev/null 2>&1 || fail "$name is installed here already"
done
if [ "$method" = apt ]; then
	apt-get install -q -y --no-install-recommends ./*.deb >install.log 2>&1 || fail "$(tail -30 install.log)"
else
	dpkg -i ./*.deb >install.log 2>&1 || fail "dpkg -i: $(cat install.log)"
fi
for name in "${names[@]}"; do
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$name")" = installed ] || fail "$name is not installed"
	said=$(dpkg -V "$name")
	[ -z "$said" ] || fail "dpkg -V $name: $said"
	dpkg -L "$name"
done | sort -u >listed
ldconfig -p | grep -q 'libstoup\.so\.1 ' || fail "the loader does not know libstoup.so.1"

# ---- use: a store, a daemon, programs by pkg-config alone and by find_package ---------------------------
stoup --version
stoup ingest --quiet --store ticks in.dbn || fail "stoup ingest"
stoup verify --quiet ticks || fail "stoup verify"
mkfifo ready
stoupd --store ticks --pool packages --quiet --ready-fd 9 9>ready &
daemon=$!
read -r -t 60 said <ready || said=nothing
[ "$said" = ready ] || fail "stoupd said: $said"

sum() {
	[ "$("$@" packages XTST.TEST/AAA/mbo)" = "$(cat expected)" ] || fail "$1: another sum of the pool"
	[ "$("$@" "$PWD/ticks/" XTST.TEST/AAA/mbo)" = "$(cat expected)" ] || fail "$1: another sum of the store"
}
read -r -a flags <<<"$(pkg-config --cflags --libs stoup)"
gcc -O2 -Wall -Wextra -Werror sum.c -o c "${flags[@]}" || fail "the C program"
sum ./c
g++ -std=c++20 -O2 -Wall -Wextra -Werror sum.cc -o cc "${flags[@]}" || fail "the C++ program"
sum ./cc
if command -v cmake >/dev/null; then
	cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(stoup 0.1 REQUIRED)
add_executable(c sum.c)
add_executable(cxx sum.cc)
target_link_libraries(c stoup::stoup)
target_link_libraries(cxx stoup::stoup_static)
END
	generator=()
	! command -v ninja >/dev/null || generator=(-G Ninja)
	if ! cmake "${generator[@]}" -S . -B build >cmake.log 2>&1 ||
		! cmake --build build >>cmake.log 2>&1; then
		fail "find_package: $(cat cmake.log)"
	fi
	sum build/c
	sum build/cxx
else
	fail "cmake is absent"
fi
if dpkg-query -W python3-stoup >/dev/null 2>&1; then
	/usr/bin/python3 -W error -c '
import stoup
print(stoup.__file__)' >python.log 2>&1 || fail "import stoup: $(cat python.log)"
	grep -qx /usr/lib/python3/dist-packages/stoup.py python.log || fail "python: $(cat python.log)"
	ls /usr/lib/python3/dist-packages/__pycache__/stoup.*.pyc >/dev/null || fail "stoup.py is not compiled"
fi
stoup stat packages | grep -q running || fail "stoup stat"
if command -v man >/dev/null; then
	for page in stoup.1 stoupd.8 stoup.3 stoup_next.3; do
		# A system without manual pages (dpkg's path-exclude) has none of ours.
		[ ! -e "/usr/share/man/man${page##*.}" ] || ! grep -q "/$page" listed ||
			[ -n "$(man -w "${page##*.}" "${page%.*}" 2>/dev/null)" ] || fail "man finds no $page"
	done
fi
bash --norc -c '. /usr/share/bash-completion/completions/stoup && complete -p stoup >/dev/null' ||
	fail "the completion of bash"
kill -TERM "$daemon"
wait "$daemon" || fail "stoupd ended with $?"
daemon=

# ---- remove: nothing may be left ----------------------------------------------------------------------------
for _ in $(seq 600); do # the automatic daemon of the store ends two seconds after its last consumer
	[ -n "$(ls /dev/shm)" ] || break
	sleep 0.1
done
dpkg -P "${names[@]}" >remove.log 2>&1 || fail "dpkg -P: $(cat remove.log)"
while read -r path; do
	case $path in
	*stoup*) if [ -e "$path" ] || [ -L "$path" ]; then fail "$path is left"; fi ;;
	*) [ ! -e "$path" ] || [ -d "$path" ] || fail "$path is left" ;; # directories, which others may have
	esac
done <listed
left=$(find / -xdev \( -path "$dir" -o -path /proc -o -path /sys -o -path /tmp -o \
	-path "${STOUP_SOURCE_DIR:-$dir}" -o -path "${STOUP_BUILD_DIR:-$dir}" \) -prune -o \
	-newer in.dbn -name '*stoup*' -print | grep -vE '^/(run|var/(log|cache/apt|lib/apt))/' || true)
[ -z "$left" ] || fail "left behind: $left"
! ldconfig -p | grep -q libstoup || fail "the loader still knows libstoup"
shm=$(ls /dev/shm)
[ -z "$shm" ] || fail "left in /dev/shm: $shm"
echo "installed, used and removed: ${names[*]}"
