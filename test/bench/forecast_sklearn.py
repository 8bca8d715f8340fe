#!/usr/bin/python3
"""What a scorer in Python spends on a request: reads it, fits scikit-learn's LinearRegression on 10 lags of each series, and
predicts 10 steps, one by one. Prints milliseconds of CPU for each step; the forecasts of the first SERIES series are scaled up.

usage: forecast_sklearn.py FILE"""

import json
import math
import pathlib
import subprocess
import sys
import time

SERIES, LAGS, HORIZON = 400, 10, 10

found = subprocess.run([pathlib.Path(__file__).parents[1] / "python-packages", "sklearn"], stdout=subprocess.PIPE, text=True,
                       check=False)
if found.returncode:
    sys.exit(found.returncode)
sys.path.insert(0, found.stdout.strip())
import numpy as np  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402


def score(series):
    v = np.array([float(value) for _, value in series["values"]])
    rows = np.array([v[i:i + LAGS] for i in range(len(v) - LAGS)])
    model = LinearRegression().fit(rows, v[LAGS:])
    window, predicted = list(v[-LAGS:]), []
    for _ in range(HORIZON):
        predicted.append(model.predict([window])[0])
        window = [*window[1:], predicted[-1]]
    return 100 / (1 + math.exp(min(700, -20 * (max(predicted) - 1))))


body = pathlib.Path(sys.argv[1]).read_bytes()
start = time.process_time()
data = json.loads(body)["data"]
read = time.process_time()
results = [{"metric": s["metric"], "score": score(s)} for s in data[:SERIES]]
json.dumps({"results": results})
spent = (time.process_time() - read) * len(data) / SERIES
print(f"read_ms {(read - start) * 1e3}\nforecast_ms {(read - start + spent) * 1e3}")
