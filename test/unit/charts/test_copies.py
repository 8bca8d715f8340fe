#!/usr/bin/python3
"""The chart has copies of alerts/ and dashboards/, as Helm reads no files outside of it; `--write` makes them. Those of dashboards
are without white space: each release keeps them in a Secret, and nobody reads them."""

import json
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]
COPIES = TOP / "charts" / "dynamic-scoring-framework" / "files"
RULES = ("agent", "hub", "recording")


def copies():
    """{file: text}"""
    wanted = {COPIES / "alerts" / f"{name}.yaml": (TOP / "alerts" / f"{name}.yaml").read_text() for name in RULES}
    for file in (TOP / "dashboards").glob("*.json"):
        short = json.dumps(json.loads(file.read_text()), separators=(",", ":"), ensure_ascii=False)
        wanted[COPIES / "dashboards" / file.name] = short + "\n"
    return wanted


def main():
    wanted = copies()
    stale = [f for folder in ("alerts", "dashboards") for f in (COPIES / folder).rglob("*.*") if f not in wanted]
    changed = [f for f, text in wanted.items() if not f.exists() or f.read_text() != text]
    if "--write" not in sys.argv:
        for file in stale + changed:
            print(f"{file.relative_to(TOP)} is out of date: run {pathlib.Path(__file__).relative_to(TOP)} --write")
        return 1 if stale or changed else 0
    for file in stale:
        file.unlink()
    for file in changed:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(wanted[file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
