#!/usr/bin/python3
"""Compares forecasts with scikit-learn's LinearRegression on lag features, on 200 generated series and one that a Prometheus
recorded. `--table` prints the errors of forecasts of what follows.

Both solve the same least squares, so that forecasts differ by rounding only: by less than TOLERANCE of the series' range, or of
the forecast where that leaves the range. Where a series of 20 or 21 values leaves the fit undetermined or nearly so, forecasts
may explode, and rounding with them: there 1e-5."""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
TOP = HERE.parents[2]
LAGS = HORIZON = 10
TOLERANCE, TOLERANCE_OF_SHORT = 1e-8, 1e-5
LENGTHS = (20, 21, 26, 30, 45, 61, 61, 121, 121, 200)


def import_packages():
    done = subprocess.run([TOP / "test/python-packages", "sklearn"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads cost more than they bring here
    sys.path.insert(0, done.stdout.strip())


import_packages()
import numpy as np  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402


def autoregressive(n, rng):
    v = np.zeros(n + 50)
    for i in range(2, n + 50):
        v[i] = 0.2 + 1.2 * v[i - 1] - 0.5 * v[i - 2] + 0.1 * rng.standard_normal()
    return v[50:]


def kinds(n, rng):
    """A series of each kind; steps of 30 s where that matters."""
    t, noise = np.arange(n), rng.standard_normal(n)
    load = 2.0 * ((t + rng.integers(0, 30)) % 30 < 10)
    wave = 1 + np.sin(2 * np.pi * (t / 288 + rng.random()))
    return {
        "CPU load, 5 min on, 10 min off": load + 0.05 * np.abs(noise),
        "the same without noise": load,
        "daily wave at 5 min": wave + 0.05 * noise,
        "the same, without noise": wave,
        "wave of 12 steps": 3 + np.sin(2 * np.pi * t / 12 + rng.random()) + 0.1 * noise,
        "ramp": 0.5 + 0.02 * t + 0.05 * noise,
        "ramp without noise": 0.5 + 0.25 * t,
        "noise": np.abs(noise),
        "spikes": 0.1 * rng.random(n) + 5 * (rng.random(n) < 0.05),
        "random walk": 10 + np.cumsum(0.1 * noise),
        "step": np.where(t < n // 2, 1.0, 3.0) + 0.02 * noise,
        "constant": np.full(n, rng.random()),
        "nearly constant": 1e3 + 1e-3 * noise,
        "growth by 5 %": 1.05**t,
        "growth by 5 % and noise": 1.05**t * (1 + 0.05 * noise),
        "whole numbers": rng.integers(0, 5, n).astype(float),
        "bytes": np.round(2e9 + 1e6 * t + 3e7 * noise),
        "tiny": 1e-9 * np.abs(noise),
        "autoregressive": autoregressive(n, rng),
        "mostly zero": np.where(rng.random(n) < 0.1, rng.random(n), 0.0),
    }


def recorded():
    """A series that Prometheus recorded: its answer to query_range, as it came."""
    [series] = json.loads((HERE / "recorded.json").read_text())["data"]["result"]
    return np.array([float(v) for _, v in series["values"]])


def forecasts(rows):
    text = "".join(" ".join(repr(float(x)) for x in v) + "\n" for v in rows)
    run = subprocess.run([os.environ["DS_FORECAST_SERIES"]], input=text, stdout=subprocess.PIPE, text=True, check=True)
    found = [np.array(line.split(), dtype=float) for line in run.stdout.splitlines()]
    assert len(found) == len(rows)
    return found


def sklearn_forecast(v):
    x = np.lib.stride_tricks.sliding_window_view(v, LAGS)[:-1]
    model = LinearRegression().fit(x, v[LAGS:])
    values = list(v)
    for _ in range(HORIZON):
        values.append(model.predict([values[-LAGS:]])[0])
    return np.array(values[len(v):])


def compare():
    rng = np.random.default_rng(13)
    series = [(f"{kind}, {n} values", v) for n in LENGTHS for kind, v in kinds(n, rng).items()]
    series.append(("recorded", recorded()))
    failed, worst = 0, 0
    for (name, v), ours in zip(series, forecasts([v for _, v in series])):
        want = sklearn_forecast(v)
        # Differences below the spacing of doubles at the values' size say nothing.
        size = max(np.ptp(v), np.abs(want - v.mean()).max(), 1e-6 * np.abs(v).max())
        error = np.abs(ours - want).max() / size
        limit = TOLERANCE if len(v) > 21 else TOLERANCE_OF_SHORT
        worst = max(worst, error if len(v) > 21 else 0)
        if not error <= limit:
            failed += 1
            print(f"{name}: differs by {error:.1e}, more than {limit}\n  ours {ours}\n  want {want}")
    print(f"{len(series)} series, {failed} differ; largest difference with more than 21 values: {worst:.1e}")
    return failed


def error(found, rows, n):
    """The median, over all rows, of the root mean square errors on the values after the first n."""
    return np.sqrt(np.median([np.mean((f - v[n:n + HORIZON])**2) for f, v in zip(found, rows)]))


def table(n=121, times=100):
    rng, rows = np.random.default_rng(7), {}
    for _ in range(times):
        for kind, v in kinds(n + HORIZON, rng).items():
            rows.setdefault(kind, []).append(v)
    v = recorded()
    rows["recorded"] = [v[i:i + 101] for i in range(len(v) - 100)]
    print("| series | last value | autoregression |\n|---|---|---|")
    for kind, some in rows.items():
        known = len(some[0]) - HORIZON
        last = [np.full(HORIZON, v[known - 1]) for v in some]
        errors = [error(found, some, known) for found in (last, forecasts([v[:known] for v in some]))]
        cells = [f"{e:.2g}" if e > 1e-9 * np.abs(some[0]).max() else "0" for e in errors]
        print(f"| {kind} | " + " | ".join(cells) + " |")


def main():
    if sys.argv[1:] == ["--table"]:
        table()
        return 0
    return 1 if compare() else 0


if __name__ == "__main__":
    sys.exit(main())
