#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# packages_root.sh - the Debian packages in a fresh Debian: made, installed by apt, used, removed.
#
#   tests/packages_root.sh [BUILD]       as root; BUILD: a build of this tree (default: one is made)
#
# debootstrap makes a root of the suite of this machine, without recommended packages; apt brings what the
# packages depend on, and a compiler, pkg-config and cmake for the programs. Takes some minutes and the network.
# STOUP_MIRROR is the archive (default: that of this machine's first source).
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/packages.sh
. "$here/tests/packages.sh"

if [ "$(id -u)" -ne 0 ]; then
	echo "needs root: debootstrap and chroot" >&2
	exit 2
fi
stoup_packages debootstrap dpkg-dev file cmake ninja-build pkg-config g++ python3 git || exit 1

work=$(mktemp -d "${TMPDIR:-/tmp}/stoup-packages-XXXXXX")
root=$work/root

finish() {
	local point

	for point in dev/shm dev proc run; do
		! mountpoint -q "$root/$point" || umount "$root/$point"
	done
	rm -rf --one-file-system -- "$work"
}
trap finish EXIT

build=${1:-}
if [ -z "$build" ]; then
	build=$work/build
	stoup_build "$here" "$build" -DSTOUP_BENCH=OFF
fi
echo "== packages"
STOUP_BIN_DIR=$build/bin STOUP_LIB_DIR=$build/lib STOUP_SOURCE_DIR=$here STOUP_BUILD_DIR=$build \
	python3 -B "$here/tests/install/packages.py" --keep "$work/use"

# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016
mirror=${STOUP_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" \
	'Created-By: Packages' | head -1)}
echo "== debootstrap $suite from $mirror"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
	tail -20 "$work/debootstrap.log"
	exit 1
}
# The same way to the archive.
apt-config dump Acquire::http >"$root/etc/apt/apt.conf.d/00way"
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
mount --bind /dev "$root/dev"
mount -t tmpfs none "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t tmpfs none "$root/run"
cp -r "$work/use" "$root/use"
cp "$here/tests/install/lib_package_use.sh" "$root/use.sh"
unset TMPDIR # a directory outside of the root
echo "== a compiler for the programs"
chroot "$root" sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
	--no-install-recommends gcc g++ libc6-dev pkg-config cmake ninja-build man-db' >"$work/apt.log" 2>&1 || {
	tail -20 "$work/apt.log"
	exit 1
}
echo "== installed, used, removed"
chroot "$root" bash /use.sh /use apt
