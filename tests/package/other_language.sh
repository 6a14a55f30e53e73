#!/usr/bin/env bash
# SPDX-License-Identifier: AGPL-3.0-only
# other_language.sh ROOT COMMAND...: runs a command with the unpacked package in ROOT as if it were
# installed. `rust RUSTC SOURCE PROGRAM` as the command compiles an example and runs it as two ranks.
set -euo pipefail
usr=$1/usr
shift
library=("$usr"/lib/*/libspark_comm.so)
libdir=$(dirname "${library[0]}")
export PATH=$usr/bin:$PATH LD_LIBRARY_PATH=$libdir PYTHONPATH=$usr/lib/python3/dist-packages

if [[ $1 == rust ]]; then
  rustc=$2 source=$3 program=$4
  "$rustc" --edition 2021 -D warnings "$source" -L "$libdir" -o "$program"
  set -- spark-comm launch -n 2 -- "$program"
fi
exec "$@"
