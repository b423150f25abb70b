#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# installed.sh - what `cmake --install` puts down can be used: by pkg-config, by find_package, and as
# programs; libstoup.so needs libc only and exports what libstoup.map lists.
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d "${TMPDIR:-/tmp}/stoup-test-XXXXXX")
trap 'rm -rf -- "$work"' EXIT
prefix=$work/prefix

fail() {
	echo "FAILED: $*"
	exit 1
}

command -v pkg-config >/dev/null && command -v cmake >/dev/null || exit 77
if grep -qE '^STOUP_SANITIZE:[A-Z]+=.' "$STOUP_BUILD_DIR/CMakeCache.txt"; then
	echo "a sanitized library needs the sanitizer's: not checked here"
	exit 77
fi
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$STOUP_BUILD_DIR/CMakeCache.txt")

cmake --install "$STOUP_BUILD_DIR" --prefix "$prefix" >"$work/install.log" ||
	fail "cmake --install: $(cat "$work/install.log")"
library=$(find "$prefix" -name libstoup.so)
[ -n "$library" ] || fail "no libstoup.so was installed"

# ---- the library ---------------------------------------------------------------------------------

readelf -d "$library" >"$work/dynamic"
grep -q 'SONAME.*\[libstoup\.so\.1\]' "$work/dynamic" || fail "the SONAME is not libstoup.so.1"
others=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$work/dynamic" |
	grep -vE '^(libc\.so\.|ld-linux)' || true)
[ -z "$others" ] || fail "libstoup.so needs more than libc: $others"

nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	sort >"$work/exports"
sed -n 's/^\t\(stoup_[a-z_0-9]*\);$/\1/p' "$STOUP_SOURCE_DIR/consumer/libstoup.map" |
	sort >"$work/listed"
diff -u "$work/listed" "$work/exports" ||
	fail "the exports (+) are not what libstoup.map lists (-)"
# Every export is declared in an installed header, and every STOUP_API function is exported.
while read -r name; do
	grep -qE "\\b$name\\(" "$prefix"/include/*.h || fail "$name is in no installed header"
done <"$work/exports"
grep -hoE '^STOUP_API [^(]*' "$prefix/include/stoup.h" | grep -oE 'stoup_[a-z_0-9]+$' |
	sort >"$work/declared"
missing=$(comm -23 "$work/declared" "$work/exports")
[ -z "$missing" ] || fail "declared but not exported: $missing"

# ---- a program of a user -------------------------------------------------------------------------

mkdir "$work/user"
cat >"$work/user/main.c" <<'EOF'
#include <stdio.h>
#include <stoup.h>

int main(void)
{
	struct stoup_error err;
	struct stoup *st;

	printf("%s %u\n", stoup_version(), stoup_type_len(STOUP_TYPE_I64));
	return stoup_attach("no-such-pool", NULL, &st, &err) < 0 ? 0 : 1;
}
EOF
cp "$work/user/main.c" "$work/user/main.cc"
cat >"$work/user/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(stoup 0.1 REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared stoup::stoup)
add_executable(static main.c)
target_link_libraries(static stoup::stoup_static)
EOF

PKG_CONFIG_PATH=$(dirname -- "$library")/pkgconfig
export PKG_CONFIG_PATH
read -r -a flags <<<"$(pkg-config --cflags --libs stoup)"
"$compiler" -std=c17 -Wall -Wextra -Werror "$work/user/main.c" -o "$work/user/by-pkg-config" \
	"${flags[@]}" || fail "a program does not build with pkg-config's flags"
text=$(LD_LIBRARY_PATH=$(dirname -- "$library") "$work/user/by-pkg-config") ||
	fail "the program built with pkg-config failed"
[ "$text" = "$(pkg-config --modversion stoup) 8" ] || fail "it printed: $text"

# The generator of this build: where Ninja is, make may be absent.
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$STOUP_BUILD_DIR/CMakeCache.txt")
if ! cmake -G "$generator" -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$prefix" \
	-DCMAKE_C_COMPILER="$compiler" >"$work/user/log" 2>&1 ||
	! cmake --build "$work/user/build" >>"$work/user/log" 2>&1; then
	fail "find_package(stoup): $(cat "$work/user/log")"
fi
for kind in shared static; do
	"$work/user/build/$kind" >/dev/null || fail "the $kind program failed"
done

# The headers are C++ too.
if command -v c++ >/dev/null; then
	read -r -a cflags <<<"$(pkg-config --cflags stoup)"
	c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only "${cflags[@]}" "$work/user/main.cc" ||
		fail "the headers are not valid C++"
fi

# ---- programs and pages --------------------------------------------------------------------------

for program in stoup stoupd; do
	"$prefix/bin/$program" --help >/dev/null || fail "$program --help failed"
done
for page in "$STOUP_SOURCE_DIR"/docs/man/*.[1-8]; do
	[ -e "$page" ] || continue
	name=$(basename -- "$page")
	[ -e "$prefix/share/man/man${name##*.}/$name" ] || fail "$name was not installed"
done
