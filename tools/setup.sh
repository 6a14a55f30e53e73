# SPDX-License-Identifier: AGPL-3.0-only
# Sourced by ./run, ./test and tools/tidy: installs what is missing and builds. Quick and without
# network when there is nothing to do. Everything it says goes to stderr.

# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# install_packages GROUP...: the packages of these groups, from tools/debian-packages.txt.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: taking the packages of tools/debian-packages.txt as given"
    return
  fi
  local wanted installed missing sudo=()
  wanted=$(awk -v groups=" $* " '/^[^#]/ && index(groups, " " $1 " ") {print $2}' \
    "$root/tools/debian-packages.txt" | sort)
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u)
  mapfile -t missing < <(comm -23 <(echo "$wanted") <(echo "$installed"))
  ((${#missing[@]} > 0)) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "neither root nor sudo; missing packages: ${missing[*]}"
    sudo=(sudo)
  fi
  say "installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# build PRESET [TARGET...]: configures the first time, then builds; without a target, everything.
build() {
  local preset=$1 targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  fi
  if [[ ! -f $root/build/$preset/build.ninja ]]; then
    say "configuring build/$preset"
    (cd "$root" && cmake --preset "$preset" >&2)
  fi
  say "building build/$preset"
  cmake --build "$root/build/$preset" "${targets[@]}" >&2
}
