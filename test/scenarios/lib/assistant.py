"""An assistant without a model: it knows a server's list of tools and nothing else.

It chooses the tool whose name, title, description and arguments share most words with what is asked, rare words counting
more. A required argument that it was not told is taken from the answer of the tool that declares a member of that name;
of a list, the element whose words fit best. What words alone cannot lead to, a model has to guess, too."""

import math
import re

STOP = set("a an and are as be by can do for from get has have i in is it its me my of on or please that the them then there "
           "this to was what which who with you your".split())


def words(text):
    """The first letters of each word, so that "optimize" and "optimization" are one. CamelCase counts as one word and as
    several."""
    found = re.findall(r"[A-Za-z]+", text)
    found += [part for word in found for part in re.findall(r"[A-Z]?[a-z]+", word) if part != word]
    return {word.lower()[:6] for word in found if word.lower() not in STOP}


def described(schema):
    """All descriptions in a schema, and the names of its members."""
    if isinstance(schema, list):
        return " ".join(map(described, schema))
    if not isinstance(schema, dict):
        return ""
    own = [schema["description"]] if isinstance(schema.get("description"), str) else []
    own += list(schema["properties"]) if isinstance(schema.get("properties"), dict) else []
    return " ".join(own + [described(value) for value in schema.values()])


class Assistant:
    def __init__(self, optimizer, tools=None):
        self.optimizer = optimizer
        self.tools = {tool["name"]: tool for tool in tools or optimizer.tools()}
        self.transcript = []  # (tool, arguments), in order

    def rank(self, prompt):
        """Names of tools, the best first."""
        asked = words(prompt)
        texts = {name: words(name.replace("_", " ") + " " + t["title"] + " " + t["description"]) for name, t in self.tools.items()}
        common = {w: sum(w in text for text in texts.values()) for w in asked}

        def score(name):
            tool, total = self.tools[name], 0.0
            for word in asked:
                rare = math.log(1 + len(texts) / (common[word] or len(texts)))
                total += rare * 4 * (word in words(name.replace("_", " ")))
                total += rare * 3 * (word in words(tool["title"]))
                total += rare * (word in words(tool["description"]))
                total += rare * 0.5 * (word in words(described(tool["inputSchema"])))
            return total

        return sorted(self.tools, key=lambda name: (-score(name), list(self.tools).index(name)))

    def use(self, name, arguments):
        self.transcript.append((name, arguments))
        result = self.optimizer.use(name, **arguments)
        assert not result["isError"], result["content"]
        return result["structuredContent"]

    def ask(self, prompt):
        """What the chosen tool answers."""
        name = self.rank(prompt)[0]
        schema = self.tools[name]["inputSchema"]
        arguments = {member: self.find(prompt, member, schema["properties"][member]) for member in self.needed(schema)}
        return self.use(name, arguments)

    def needed(self, schema):
        return schema.get("required", [])

    def find(self, prompt, member, schema):
        """The value of an argument: what a tool without arguments of its own answers under that name, or an element of a list
        whose members are those of the schema."""
        for name, tool in self.tools.items():
            output = tool["outputSchema"].get("properties", {})
            if member in output and not tool["inputSchema"].get("required"):
                return self.use(name, {})[member]
        wanted = [key for key in schema["properties"] if key not in ("scores",)]
        for name, tool in self.tools.items():
            for key, listed in tool["outputSchema"].get("properties", {}).items():
                members = listed.get("items", {}).get("properties", {})
                shared = [w for w in wanted if w in members]
                if shared and "description" in members and not tool["inputSchema"].get("required"):
                    best = max(self.use(name, {})[key], key=lambda one: len(words(prompt) & words(" ".join(map(str, one.values())))))
                    return self.fill(schema, best)
        raise AssertionError(f"no tool says what {member} may be")

    def fill(self, schema, element):
        """The element as the schema names its members: a name is what is called after its kind there."""
        filled = {key: element[key] for key in schema["properties"] if key in element}
        name = next(key for key, value in schema["properties"].items() if "name" in value.get("description", "").lower())
        return {name: element["name"], **filled}
