#!/usr/bin/env bash
# SPDX-License-Identifier: AGPL-3.0-only
# pkg_config.sh static|shared LIBDIR COMPILER FOLDER: compiles and runs the consumer with no other help
# than the installed spark_comm.pc.
set -euo pipefail
variant=$1 libdir=$2 compiler=$3 folder=$4

command -v pkg-config >/dev/null || { echo "pkg-config is not installed" && exit 77; }
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
options=(--cflags --libs)
[[ $variant == shared ]] || options+=(--static)
read -ra flags < <(pkg-config "${options[@]}" spark_comm)
"$compiler" -std=c++20 "$(dirname "$0")/consumer.cpp" -o "$folder/pkg_config_$variant" "${flags[@]}"
"$folder/pkg_config_$variant"
