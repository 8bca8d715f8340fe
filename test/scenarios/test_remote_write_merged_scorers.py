"""Scorers that write_relabel_configs do not tell apart, so that their scores share series, are named in the log."""

import pytest
from lib import remote

DROPPED = {"regex": "ds_score_name", "action": "labeldrop"}
RULES = {
    "dropped": ([DROPPED], True),
    "dropped behind a rule that keeps some series": (
        [{"source_labels": ["ds_node"], "regex": "n00001", "action": "keep"}, DROPPED], True),
    "of one name": ([{"regex": "cpu|memory", "source_labels": ["ds_score_name"], "target_label": "ds_score_name", "replacement": "all"}], True),
    "under another label": ([{"source_labels": ["ds_score_name"], "target_label": "score"}, DROPPED], False),
    "of one name, and another label": (
        [{"source_labels": ["ds_score_name"], "regex": "(.).*", "target_label": "first"}, DROPPED], False),
}  # fmt: skip


@pytest.mark.parametrize("rules, merged", RULES.values(), ids=RULES)
def test_both_are_named(tmp_path, rules, merged):
    with remote.Receiver() as receiver, remote.Scoring(cpu=remote.counted(3), memory=remote.counted(3)) as scoring:
        with remote.Agent(tmp_path, scoring, [remote.endpoint(receiver, write_relabel_configs=rules)]) as agent:
            remote.wait_for("both rounds", lambda: all(len(scoring.served.get(s, [])) > 1 for s in ("cpu", "memory")), alive=agent.alive)
            agent.drained()
            series = {dict(labels).get("ds_node") for labels in receiver.stream()}
    warnings = [line for line in agent.log().splitlines() if "do not tell two scorers apart" in line]
    assert series and len(warnings) == merged, warnings
    if merged:
        assert "cpu" in warnings[0] and "memory" in warnings[0]
