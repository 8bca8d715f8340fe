"""The rule files of alerts/, with durations that a test can wait for.

Windows, `for`, offsets and numbers of seconds are divided by FASTER. Two things stay longer: a window, of SHORTEST, since
on a busy machine some scrapes fail or are late, and the age of a watch, since API servers send a bookmark every minute.
"""

import pathlib
import re

import yaml

from lib.process import ROOT

FASTER, SHORTEST = 30, 10
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION = re.compile(r"(\d+)([smhd])")
WINDOW = re.compile(r"\[(\w+)(?::(\w+))?\]")  # of a range selector or a subquery
OFFSET = re.compile(r"(?<=\boffset )\w+")
COMMAND = re.compile(r"kubectl (?:(?!; |, |\. |\.$).)+")  # in a text
NUMBER = re.compile(r"(?<![\w.\[])(?<!<= bool )\d{2,}(?![\w.\]%])")  # at least 60: seconds


def seconds(text):
    return sum(int(n) * SECONDS[unit] for n, unit in DURATION.findall(text)) / FASTER


def shorter_window(match):
    step = f":{max(round(seconds(match[2])), 1)}s" if match[2] else ""
    return f"[{max(round(seconds(match[1])), SHORTEST)}s{step}]"


def shortened_expr(expr):
    expr = NUMBER.sub(lambda m: str(int(m[0]) / FASTER if int(m[0]) >= 60 else m[0]), expr)
    expr = OFFSET.sub(lambda m: f"{round(seconds(m[0]))}s", expr)
    return WINDOW.sub(shorter_window, expr)


def shortened(rule):
    delay = {"for": f"{round(seconds(rule['for']))}s"} if "for" in rule else {}
    return {**rule, "expr": shortened_expr(rule["expr"]), **delay}


def all_groups():
    """[(file, group)] of all rule files."""
    files = sorted((ROOT / "alerts").glob("*.yaml"))
    found = [(f, yaml.safe_load(f.read_text())) for f in files]
    return [(f, group) for f, content in found for group in content.get("groups", ())]


def alerts():
    """{name: rule}"""
    return {rule["alert"]: rule for _, group in all_groups() for rule in group["rules"] if "alert" in rule}


def write_shortened(folder):
    """Returns the path for Prometheus' rule_files."""
    groups = [
        {"name": f"{file.stem}-{group['name']}", "interval": "1s", "rules": [shortened(r) for r in group["rules"]]}
        for file, group in all_groups()
    ]
    path = pathlib.Path(folder) / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups}))
    return str(path)


def first_command(text):
    """The first kubectl command in an alert's description."""
    found = COMMAND.search(text)
    return found and found[0]


def filled_in(description, labels):
    """A description as templates of alerts fill it in, as far as commands go."""
    text = re.sub(r'\{\{ or \$labels\.(\w+) "([^"]*)" \}\}', lambda m: labels.get(m[1], m[2]), description)
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels.get(m[1], m[1]), text)
