"""A strict reader of the text format 0.0.4. OpenMetrics is read by the reference parser, where a scenario needs
it."""

import re

TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|(?=\}))')
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


class Samples:
    """The samples of a page: a list of (name, labels, value)."""

    def __init__(self, text):
        self.list, self.types, self.helps = [], {}, {}
        assert text.endswith("\n")
        for line in text[:-1].split("\n"):
            self.take(line)

    def take(self, line):
        if line.startswith("# "):
            kind, name, rest = line[2:].split(" ", 2)
            known = {"TYPE": self.types, "HELP": self.helps}[kind]
            assert name not in known, f"a second {kind}: {line}"
            assert kind != "TYPE" or rest in TYPES, line
            known[name] = rest
            return
        sample = read_sample(line)
        assert self.family(sample[0]) in self.types, f"no TYPE before {line}"
        self.list.append(sample)

    def family(self, name):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        return base if self.types.get(base) == "histogram" else name

    def all(self, name, **labels):
        """(labels, value) of each sample of that name with these labels."""
        return [
            (have, v) for n, have, v in self.list if n == name and all(have.get(k) == x for k, x in labels.items())
        ]

    def value(self, name, **labels):
        """The value of the only such sample; None if there is none."""
        found = self.all(name, **labels)
        assert len(found) < 2, f"{len(found)} samples of {name} with {labels}"
        return found[0][1] if found else None


def read_sample(line):
    """(name, labels, value) of a line."""
    name = NAME.match(line)
    assert name, f"no name: {line}"
    at, labels = name.end(), {}
    if line[at : at + 1] == "{":
        at += 1
        while line[at] != "}":
            label = LABEL.match(line, at)
            assert label, f"a bad label at {at}: {line}"
            assert label[1] not in labels, f"a label twice: {line}"
            labels[label[1]] = re.sub(r"\\.", lambda m: ESCAPES[m[0]], label[2])
            at = label.end()
        at += 1
    assert line[at : at + 1] == " " and " " not in line[at + 1 :], f"no value, or a timestamp: {line}"
    return name[0], labels, float(line[at + 1 :])
