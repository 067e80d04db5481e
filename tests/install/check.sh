#!/usr/bin/env bash
# check.sh SOURCES BUILD COMPILER: installs BUILD into a fresh folder, moves that elsewhere, and builds and runs a
# project that has nothing but it, by find_package and by pkg-config. The same project also includes the sources.
set -euo pipefail
sources=$1 build=$2 compiler=$3
outside=$sources/tests/install/outside
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/moved

fail() {
  echo "$*" >&2
  exit 1
}

echo "==> install"
cmake --install "$build" --prefix "$folder/installed" > /dev/null
mv "$folder/installed" "$prefix"
library=$(find "$prefix" -name libtreering.so)
shown=$(nm --dynamic --defined-only --demangle "$library" | cut -d' ' -f3-)
grep -q '^treering::Communicator::all_reduce(' <<< "$shown" || fail "The library does not show its API."
! grep -E '^(fmt|spdlog|boost)::|^treering::(Guard|Crew|fold)' <<< "$shown" ||
  fail "The library shows what is its own."

echo "==> the command"
"$prefix/bin/treering" perf all_reduce --threads -b 1K -e 1K -n 1 -w 0

echo "==> find_package"
cmake -S "$outside" -B "$folder/found" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix"
cmake --build "$folder/found"
"$folder/found/outside"

echo "==> pkg-config"
libraries=$(dirname "$library")
flags=$(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --cflags --libs treering)
# shellcheck disable=SC2086  # flags are several words
"$compiler" -std=c++20 "$outside/main.cpp" $flags -Wl,-rpath,"$libraries" -o "$folder/outside"
"$folder/outside"

echo "==> add_subdirectory: no tests, no command, none of our options"
cmake -S "$outside" -B "$folder/included" -DCMAKE_CXX_COMPILER="$compiler" -DTREERING_SOURCES="$sources" \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON > /dev/null
[[ ! -e $folder/included/treering/tests && ! -e $folder/included/treering/perf ]] || fail "Tests or command are there."
grep '"command".*outside/main\.cpp' "$folder/included/compile_commands.json" > "$folder/line"
! grep -E -- '-W|-ffp' "$folder/line" || fail "The project inherits our options."
