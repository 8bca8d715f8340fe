#!/usr/bin/python3
"""The chart has copies of alerts/ and dashboards/, as Helm reads no files outside of it; `--write` makes them."""

import pathlib
import shutil
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]
COPIES = TOP / "charts" / "dynamic-scoring-framework" / "files"
RULES = ("agent", "hub", "recording")


def originals():
    """{copy: original}"""
    found = {COPIES / "alerts" / f"{name}.yaml": TOP / "alerts" / f"{name}.yaml" for name in RULES}
    for file in (TOP / "dashboards").glob("*.json"):
        found[COPIES / "dashboards" / file.name] = file
    return found


def main():
    wanted = originals()
    stale = [f for f in COPIES.rglob("*.*") if f not in wanted]
    changed = [c for c, original in wanted.items() if not c.exists() or c.read_bytes() != original.read_bytes()]
    if "--write" not in sys.argv:
        for file in stale + changed:
            print(f"{file.relative_to(TOP)} is out of date: run {pathlib.Path(__file__).relative_to(TOP)} --write")
        return 1 if stale or changed else 0
    for file in stale:
        file.unlink()
    for file in changed:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wanted[file], file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
