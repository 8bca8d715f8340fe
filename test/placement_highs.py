"""Solves a placement problem that placement-solve printed with HiGHS: the model of controller/optimize/README.md, written here
once more, independently of the C."""

import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def import_highs():
    done = subprocess.run([os.path.join(HERE, "python-packages"), "highs"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    sys.path.insert(0, done.stdout.strip())
    import highspy

    return highspy


class Rows:
    def __init__(self):
        self.lower, self.upper, self.start, self.index, self.value = [], [], [], [], []

    def add(self, lower, upper, entries):
        self.lower.append(lower)
        self.upper.append(upper)
        self.start.append(len(self.index))
        for column, value in entries:
            self.index.append(column)
            self.value.append(value)


def model(p, inf):
    """(gains, rows, constant): columns are z of each possible combination, then y of each setting."""
    workloads, first, resources = p["workloads"], p["firstSetting"], p["resources"]
    site_of = [i for i in range(p["sites"]) for _ in range(first[i], first[i + 1])]
    running = {tuple(pair) for pair in p["running"]}
    z, gains, rows = {}, [], Rows()
    for s in range(p["settings"]):
        for w in range(workloads):
            score = p["scores"][s * workloads + w]
            if score is not None:
                z[s, w] = len(gains)
                gains.append(score + (p["moveCost"] if (w, site_of[s]) in running else 0))
    y = [len(gains) + s for s in range(p["settings"])]
    gains += [0] * p["settings"]
    for w in range(workloads):
        rows.add(-inf, p["replicas"][w], [(c, 1) for (_, v), c in z.items() if v == w] if workloads < 20 else [])
    if workloads >= 20:  # the same, without a search of all for each
        by_workload = [[] for _ in range(workloads)]
        for (_, w), c in z.items():
            by_workload[w].append((c, 1))
        rows = Rows()
        for w in range(workloads):
            rows.add(-inf, p["replicas"][w], by_workload[w])
    for i in range(p["sites"]):
        rows.add(-inf, 1, [(y[s], 1) for s in range(first[i], first[i + 1])])
    for s in range(p["settings"]):
        here = [(w, z[s, w]) for w in range(workloads) if (s, w) in z]
        for k in range(resources):
            entries = [(c, p["requests"][w * resources + k] / 500) for w, c in here]
            rows.add(-inf, 0, [*entries, (y[s], -p["supplies"][s * resources + k] / 500)])
        for _, c in here:
            rows.add(-inf, 0, [(c, 1), (y[s], -1)])
    stay = [(c, 1) for (s, w), c in z.items() if (w, site_of[s]) in running]
    rows.add(len(running) - p["maxMoves"], inf, stay)
    return gains, rows, -p["moveCost"] * len(running)


def solve(highspy, p, seconds):
    """{objective, bound, seconds, infeasible} of HiGHS, on one thread."""
    import numpy as np

    h = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("time_limit", float(seconds)), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.5)):
        h.setOptionValue(name, value)
    gains, rows, constant = model(p, highspy.kHighsInf)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.sense_ = len(gains), len(rows.lower), highspy.ObjSense.kMaximize
    lp.col_cost_ = np.array(gains, dtype=float)
    lp.col_lower_, lp.col_upper_ = np.zeros(len(gains)), np.ones(len(gains))
    lp.row_lower_, lp.row_upper_ = np.array(rows.lower, dtype=float), np.array(rows.upper, dtype=float)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array([*rows.start, len(rows.index)], dtype=np.int32)
    lp.a_matrix_.index_ = np.array(rows.index, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(rows.value, dtype=float)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(gains)
    h.passModel(lp)
    start, cpu = time.monotonic(), time.process_time()
    h.run()
    took, used = time.monotonic() - start, time.process_time() - cpu
    infeasible = h.getModelStatus() == highspy.HighsModelStatus.kInfeasible
    info = h.getInfo()
    found = {"seconds": took, "cpu": used, "infeasible": infeasible}
    if not infeasible:
        found.update(objective=round(info.objective_function_value + constant), bound=int(info.mip_dual_bound + constant + 0.01))
    return found
