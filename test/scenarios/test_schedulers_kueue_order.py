"""What charts/README.md says of MultiKueue's order holds in the tested version of Kueue: its own tests of the incremental dispatcher nominate
clusters as MultiKueueConfig lists them, `stepSize` at a time, and by name where the feature gate is off. Only in the run of a
release: to build Kueue's tests takes long."""

import re

from lib.kube import go_program
from lib.process import run

# Kueue's names of the cases; its lists of clusters are in reverse order, so that they differ from sorted ones.
CASES = {
    "in the list's order": "three_remotes",
    "three at a time by default": "fifteen_remotes",
    "stepSize at a time": "stepSize=2,_five_remotes",
    "then the next ones beside them": "stepSize=2,_round_expired",
    "by name without the gate": "ordering_gate_off:_three_remotes_nominated_alphabetically",
    "three at a time without the other gate": "config_gate_disabled",
}


def test_kueue_keeps_the_order_of_the_list():
    done = run(go_program("kueue-dispatcher-test"), "-test.run=^TestIncrementalDispatcherNominateWorkers$", "-test.v")
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.findall(r"^ *--- PASS: \S+?/(.*) \(", done.stdout, re.MULTILINE)
    for what, case in CASES.items():
        assert any(name.startswith(case) for name in passed), (what, passed)
