#!/usr/bin/python3
"""Checks exporter/num/num_pow10.c: recomputes every entry with exact integers. `--print` writes the file's text."""

import os
import sys

FIRST, LAST = -342, 324
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../exporter/num/num_pow10.c")

HEAD = """/* Written by test/unit/num/test_num_table.py --print, which also checks it. */
#include "exporter/num/num_pow10.h"

/* clang-format off */
const uint64_t num_pow10[NUM_POW10_LAST - NUM_POW10_FIRST + 1][2] = {
"""


def entry(q):
    """The 128 leading bits of 10^q: cut off, or rounded up where num_pow10.h says so."""
    if q >= 0:
        over, under = 10**q, 1
    else:
        over, under = 1, 10**-q
    shift = 128 - (over.bit_length() - under.bit_length())
    for s in (shift - 1, shift, shift + 1):
        bits = (over << s) // under if s >= 0 else over // (under << -s)
        if bits.bit_length() == 128:
            break
    assert bits.bit_length() == 128
    return bits + 1 if -27 <= q < 0 else bits


def text():
    cells = []
    for q in range(FIRST, LAST + 1):
        bits = entry(q)
        cells.append(f"{{0x{bits >> 64:016x}, 0x{bits & (1 << 64) - 1:016x}}},")
    lines = ["    " + " ".join(cells[i : i + 2]) + "\n" for i in range(0, len(cells), 2)]
    return HEAD + "".join(lines) + "};\n"


def main():
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text())
        return 0
    with open(SOURCE, encoding="ascii") as f:
        have = f.read()
    if have != text():
        print("num_pow10.c is not what exact integers give")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
