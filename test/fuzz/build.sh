#!/bin/bash
# Builds the fuzz targets as OSS-Fuzz wants them: programs that run wherever $OUT is put, each with its seeds in a .zip.
#
#     test/fuzz/build.sh [fuzz_WHAT...]     (default: all)
#
# $CC, $CXX, $CFLAGS, $CXXFLAGS, $LIB_FUZZING_ENGINE, $WORK and $OUT are those of OSS-Fuzz; without them it uses clang's libFuzzer
# with AddressSanitizer and UBSan, and build/fuzz. The packages are those of `test/install build`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=all"
export CC=${CC:-clang} WORK=${WORK:-$root/build/fuzz} OUT=${OUT:-$root/build/fuzz/out}
export CXX=${CXX:-${CC/clang/clang++}}

# Libraries are taken from $OUT, those that other libraries need too: hence DT_RPATH.
cmake -S "$root" -B "$WORK" -G Ninja -DTESTS=ON -DFUZZING="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" \
    -DCMAKE_C_FLAGS="${CFLAGS--fsanitize=fuzzer-no-link $sanitizers}" -DCMAKE_CXX_FLAGS="${CXXFLAGS-$sanitizers}" \
    -DCMAKE_BUILD_RPATH="\$ORIGIN/lib" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build "$WORK" --target "${@:-fuzzers}"

mkdir -p "$OUT/lib"
for source in "$root"/test/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    [[ -e $WORK/test/$target ]] || continue
    cp "$WORK/test/$target" "$OUT"
    # All but glibc's, which come with the system.
    ldd "$WORK/test/$target" | awk '$3 ~ "^/" && $1 !~ /^lib(c|m|dl|rt|pthread|resolv)\.so/ { print $3 }' |
        xargs cp -uLt "$OUT/lib"
    (cd "$root/test/fuzz/corpus/${target#fuzz_}" && python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" ./*)
done
