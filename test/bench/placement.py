"""The section `placement` of test/bench/run: the optimizer's solver on generated problems, beside HiGHS."""

import json
import subprocess
import sys

SMALL = [("tight", 20, 150, 3, seed) for seed in range(1, 6)] + [("devices", 20, 150, 3, 1), ("loose", 20, 150, 3, 1)]
LARGE = [(kind, 1000, 10000, 1, seed) for kind in ("loose", "full", "apps") for seed in (1, 2, 3, 7)]
LARGEST = [("devices", 1000, 10000, 3, 1), ("loose", 5000, 100000, 1, 1), ("full", 5000, 100000, 1, 1)]
DEADLINE_S = 60
PEER_S = 20
TARGET_PERCENT = 0.5


def solved(build, case):
    words = [build / "placement-solve", *case, DEADLINE_S * 1000, *(["problem"] if case in SMALL else [])]
    return json.loads(subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True).stdout)


def percent(answer):
    """How far the objective is from the bound. None: there is neither."""
    if "objective" not in answer:
        return None
    return 100 * max(answer["bound"] - answer["objective"], 0) / max(abs(answer["objective"]), 1)


def highs_of(root, problem):
    sys.path.insert(0, str(root / "test"))
    import placement_highs

    return placement_highs.solve(placement_highs.import_highs(), problem, PEER_S)


def run(root, build, table):
    table.section(f"Placement: beside {PEER_S} s of HiGHS")
    for case in SMALL + LARGE + LARGEST:
        what = f"{case[0]} {case[1]} x {case[2]} x {case[3]}, seed {case[4]}"
        ours = solved(build, case)
        peers = [("HiGHS", highs_of(root, ours["problem"]))] if case in SMALL else []
        reached = f"<= {TARGET_PERCENT} %: {'met' if percent(ours) <= TARGET_PERCENT else 'NOT MET'}"
        table.row(f"{what}: gap", "%", percent(ours), [(name, percent(a)) for name, a in peers], target=reached)
        table.row(f"{what}: CPU time", "s", ours["cpu"], [(name, a["cpu"]) for name, a in peers])
        table.row(f"{what}: peak memory", "MB", ours["peakKb"] * 1024)
