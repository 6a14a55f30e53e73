#!/usr/bin/env bash
# SPDX-License-Identifier: AGPL-3.0-only
# make_package.sh SOURCE BUILD FOLDER OPTION...: configures, builds and packs the Debian package, and
# unpacks it into FOLDER, where the other tests find what a user would have installed.
set -euo pipefail
source=$1 build=$2 folder=$3
shift 3

for tool in dpkg-deb dpkg-shlibdeps help2man; do
  command -v "$tool" >/dev/null || { echo "$tool is not installed" && exit 77; }
done
cmake -S "$source" -B "$build" -G Ninja -DBUILD_SHARED_LIBS=ON -DCMAKE_INSTALL_PREFIX=/usr \
  -DSPARK_COMM_BUILD_TESTS=OFF -DSPARK_COMM_BUILD_EXAMPLES=OFF "$@"
cmake --build "$build"
rm -rf "$build"/*.deb "$folder"
(cd "$build" && cpack -G DEB)
dpkg-deb -x "$build"/*.deb "$folder"
