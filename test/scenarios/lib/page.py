"""A page of the documents as a test: its shell commands run in order, and print what the page says."""

import json
import pathlib
import re
import subprocess

from lib.wait import LONG, eventually

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
AGE = re.compile(r"\b\d+[smhd](\d+[smhd])?\b")


def steps(page):
    """[(the last heading before it, commands, what it prints: (language, text) or None)]"""
    text = pathlib.Path(page).read_text()
    found = []
    for match in BLOCK.finditer(text):
        language, body = match.groups()
        if language == "sh":
            heading = re.findall(r"^#+ (.*)$", text[: match.start()], re.M)[-1]
            found.append((heading, body, None))
        elif language in ("json", "text"):
            heading, commands, printed = found.pop()
            assert printed is None, f"two outputs after {commands}"
            found.append((heading, commands, (language, body)))
    return found


def comparable(language, text):
    """Without what differs from time to time: samples and ages."""
    if language == "json":
        return without_samples(json.loads(text))
    return [AGE.sub("AGE", line).split() for line in text.strip().splitlines()]


def without_samples(value):
    if isinstance(value, dict):
        return {k: "sample" if k == "value" and isinstance(v, list) else without_samples(v) for k, v in value.items()}
    return [without_samples(v) for v in value] if isinstance(value, list) else value


class Shell:
    """Runs commands one after the other, as in one terminal: variables and functions stay."""

    def __init__(self, folder, env, state):
        self.folder, self.env, self.state = folder, env, pathlib.Path(state)
        self.state.write_text("")

    def run(self, commands):
        text = f"set -euo pipefail -a\n. {self.state}\n{commands}\n{{ export -p; declare -f; }} >{self.state}\n"
        words = ["bash", "-c", text]
        done = subprocess.run(words, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=LONG, check=False)
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    def expect(self, commands, language, text):
        """Runs them until they print this."""

        def check():
            printed = self.run(commands)
            assert comparable(language, printed) == comparable(language, text), f"{commands}prints:\n{printed}"

        eventually(check, LONG, every=0.5)
