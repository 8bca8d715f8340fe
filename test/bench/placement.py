"""The section `placement` of test/bench/run: the optimizer's solvers on generated problems, beside CBC and HiGHS alone."""

import json
import subprocess
import sys

TIGHT = [("tight", 20, 150, 3, seed) for seed in range(1, 6)]
SMALL = [("devices", 20, 150, 3, 1), ("loose", 20, 150, 3, 1)]
LARGE = [(kind, 1000, 10000, 1, seed) for kind in ("loose", "full", "apps") for seed in (1, 2, 3, 7)]
LARGEST = [("devices", 1000, 10000, 3, 1), ("loose", 5000, 100000, 1, 1), ("full", 5000, 100000, 1, 1)]
DEADLINE_S, LARGE_DEADLINE_S = 5, 60
PEER_S = 20


def solved(build, case, engine, seconds, *more):
    words = [build / "placement-solve", *case, engine, seconds * 1000, *more]
    return json.loads(subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True).stdout)


def percent(answer):
    """How far the objective is from the bound. None: there is neither."""
    if not answer or "objective" not in answer:
        return None
    return 100 * max(answer["bound"] - answer["objective"], 0) / max(abs(answer["objective"]), 1)


def highs_of(root, build, case):
    sys.path.insert(0, str(root / "test"))
    import placement_highs

    highspy = placement_highs.import_highs()
    return placement_highs.solve(highspy, solved(build, case, "none", 1, "problem")["problem"], PEER_S)


def rows(table, what, ours, peers, target=None):
    reached = f"<= {target} %: {'met' if percent(ours) <= target else 'NOT MET'}" if target else ""
    table.row(f"{what}: gap", "%", percent(ours), [(name, percent(a)) for name, a in peers], target=reached)
    table.row(f"{what}: CPU time", "s", ours["cpu"], [(name, a["cpu"] if a and "cpu" in a else None) for name, a in peers])
    table.row(f"{what}: peak memory", "MB", ours["peakKb"] * 1024)


def run(root, build, table):
    table.section(f"Placement: {DEADLINE_S} s for ours, {PEER_S} s for CBC and HiGHS alone")
    for case in TIGHT + SMALL:
        what = f"{case[0]} {case[1]} x {case[2]} x {case[3]}, seed {case[4]}"
        peers = [("relaxation alone", solved(build, case, "relaxation", DEADLINE_S)),
                 ("CBC alone", solved(build, case, "cbc", PEER_S)), ("HiGHS alone", highs_of(root, build, case))]
        rows(table, what, solved(build, case, "both", DEADLINE_S), peers, 0.1)
    for case in LARGE + LARGEST:
        what = f"{case[0]} {case[1]} x {case[2]} x {case[3]}, seed {case[4]}"
        rows(table, what, solved(build, case, "both", LARGE_DEADLINE_S), [], 0.5)
