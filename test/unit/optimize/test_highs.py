#!/usr/bin/python3
"""Compares solve() with HiGHS, another solver, whose program is written here independently: the same best objective for small
problems with all options, and for larger ones where both prove theirs."""

import json
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "test"))
import placement_highs  # noqa: E402

SMALL = 120
LARGER = [("tight", 4, 20, 2), ("devices", 6, 40, 3), ("loose", 8, 60, 1)]


def solved(kind, sites, workloads, settings, seed):
    program = os.environ.get("DS_PLACEMENT_SOLVE", TOP / "build/placement-solve")
    words = [program, kind, sites, workloads, settings, seed, 30000, "problem"]
    return json.loads(subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True).stdout)


def wrong_with(ours, highs):
    if "error" in ours:
        return ours["error"]
    if ours["infeasible"] != highs["infeasible"]:
        return f"infeasible: {ours['infeasible']}, HiGHS: {highs['infeasible']}"
    if highs["infeasible"]:
        return None
    if ours["bound"] < highs["objective"]:
        return f"bound {ours['bound']} is below HiGHS' objective {highs['objective']}"
    # On a slow machine the deadline may come before a larger problem's proof.
    proven = all(answer["bound"] <= answer["objective"] for answer in (ours, highs))
    if ours["objective"] != highs["objective"] and (proven or ours["problem"]["workloads"] < 10):
        return f"objective {ours['objective']} (bound {ours['bound']}), HiGHS: {highs['objective']}"
    return None


def main():
    highspy = placement_highs.import_highs()
    failed = n_infeasible = 0
    cases = [("small", 0, 0, 0, seed) for seed in range(1, SMALL + 1)] + [(*kind, seed) for kind in LARGER for seed in (1, 2)]
    for case in cases:
        ours = solved(*case)
        highs = placement_highs.solve(highspy, ours["problem"], 60)
        n_infeasible += highs["infeasible"]
        wrong = wrong_with(ours, highs)
        if wrong:
            failed += 1
            print(f"{case}: {wrong}")
    print(f"{len(cases)} problems, {n_infeasible} infeasible, {failed} differ from HiGHS")
    return failed > 0 or n_infeasible in (0, len(cases))


if __name__ == "__main__":
    sys.exit(main())
