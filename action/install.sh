#!/usr/bin/env bash
# Gets memlint's binary: the one that is there already, or that of this version's release. Where neither is to be had it says under
# which name what cargo builds is cached.
#
# In: BINARY (a memlint that is there, or empty), GITHUB_ACTION_PATH, RUNNER_TEMP, RUNNER_OS, RUNNER_ARCH, GITHUB_TOKEN for `gh`.
# Out, to GITHUB_OUTPUT: `binary`, the path of memlint; `key`, where it has to be built first.
set -euo pipefail
cd "$GITHUB_ACTION_PATH"
tell() { printf '%s\n' "$1" >> "$GITHUB_OUTPUT"; }

if [ -n "${BINARY:-}" ]; then
  tell "binary=$BINARY"
  exit
fi

value() { sed -n "s/^$1 = \"\(.*\)\"$/\1/p" Cargo.toml | head -n 1; }
version="$(value version)"
repository="$(value repository)"
folder="$RUNNER_TEMP/memlint"
name=memlint
case "$RUNNER_OS-$RUNNER_ARCH" in
  Linux-X64) platform=manylinux*x86_64 ;;
  Linux-ARM64) platform=manylinux*aarch64 ;;
  macOS-ARM64) platform=macosx*arm64 ;;
  Windows-X64) platform=win_amd64 name=memlint.exe ;;
  *) platform= ;;
esac

# The wheel is a zip that holds the binary. It comes from the repository that this action comes from, so that it is trusted no more than that.
if [ -n "$platform" ] && command -v gh > /dev/null &&
  gh release download "v$version" --repo "${repository#https://github.com/}" --pattern "torch_memlint-*-$platform.whl" \
    --dir "$folder/wheel" --clobber; then
  unzip -q -o -j "$folder"/wheel/*.whl "*.data/scripts/$name" -d "$folder/bin"
  chmod +x "$folder/bin/$name"
  tell "binary=$folder/bin/$name"
else
  echo "There is no release v$version for $RUNNER_OS-$RUNNER_ARCH: memlint is built, or taken from the cache."
  sources="$(find Cargo.toml Cargo.lock build.rs src rules page/page.html python standin -type f | LC_ALL=C sort | xargs cat | git hash-object --stdin)"
  tell "key=memlint-$RUNNER_OS-$RUNNER_ARCH-$sources"
  tell "binary=$folder/bin/$name"
fi
