"""What a compiler made of a kernel: whether a branch, an address or a slow instruction depends on what was read from secret memory.

Works on the optimised code of LLVM, as text. There every value is assigned once, so that flows can be followed from value to
value. All that is loaded counts as secret, unless it comes from an array that is declared public; nothing secret may be stored
there.
"""

import re
from dataclasses import dataclass

SLOW = {"sdiv", "udiv", "srem", "urem", "fdiv", "frem", "fmul", "fadd", "fsub", "fcmp"}
MAY_BRANCH = ("umin", "umax", "smin", "smax", "abs", "ucmp", "scmp", "ctlz", "cttz")
VALUE = r'%(?:"[^"]*"|[\w.$-]+)'
KNOWN = re.compile(
    "alloca|br|switch|ret|unreachable|load|store|getelementptr|phi|select|call|icmp|add|sub|mul|and|or|xor|shl|lshr|ashr|zext|sext|"
    "trunc|freeze|extractelement|insertelement|shufflevector|insertvalue|extractvalue|sitofp|uitofp|fptosi|bitcast|ptrtoint|fneg|"
    "inttoptr|sdiv|udiv|srem|urem|fdiv|frem|fmul|fadd|fsub|fcmp"
)


@dataclass
class Line:
    """One instruction."""

    text: str
    name: str | None
    kind: str
    values: list[str]
    """What it takes; for a load the address alone, for a store the value (perhaps a constant) and the address."""
    labels: list[str]


def _line(text):
    text = re.sub(r", ?![\w.]+ ![\w.]+|, align \d+", "", text.strip())
    found = re.match(rf"(?:({VALUE}) = )?(?:tail |musttail |notail )?(\w+)\b(.*)", text, re.DOTALL)
    name, kind, rest = found.groups()
    assert KNOWN.fullmatch(kind), text  # what is not known here cannot be judged
    labels = re.findall(rf"label ({VALUE})", rest)
    if kind == "phi":
        pairs = re.findall(rf"\[ ([^,\]]+), ({VALUE}) \]", rest)
        return Line(text, name, kind, [value for value, _ in pairs if value.startswith("%")], [])
    if kind == "store":
        value, address = re.fullmatch(r" (.*), ptr (\S+)", rest).groups()
        return Line(text, name, kind, [value.split()[-1], address], [])
    values = [value for value in re.findall(VALUE, rest) if value not in labels]
    return Line(text, name, kind, values, labels)


def _blocks(body):
    """Lines by label; the first one is what is entered."""
    blocks, label, long = {"entry": []}, "entry", ""
    for text in body.splitlines():
        begun = re.match(r'("[^"]*"|[\w.$-]+):', text)
        if begun:
            label = "%" + begun[1]
            blocks[label] = []
        elif text.strip() and not text.strip().startswith(";"):
            long += text + "\n"
            if long.count("[") == long.count("]"):  # a switch takes several lines
                blocks[label].append(_line(long))
                long = ""
    if not blocks["entry"]:
        del blocks["entry"]
    return blocks


class Code:
    """One kernel that was compiled for one signature.

    ``public`` are arguments, as ``low`` or ``table.1``, whose arrays may be known. ``given`` are arguments that have this value:
    what is never reached with it is left out.
    """

    def __init__(self, kernel, public, given, module="dpoutlier"):
        (text,) = kernel.inspect_llvm().values()
        name = kernel.py_func.__name__
        symbol = rf'_ZN{len(module)}{module}[^\s("]*{len(name)}{name}B[^\s("]*'
        found = re.search(rf'^define [^\n@]*@"?{symbol}"?\(([^\n]*)\{{\n(.*?)^\}}', text, re.MULTILINE | re.DOTALL)
        arguments, body = found.groups()
        self.arguments = set(re.findall(VALUE, arguments))
        self.public = {f"%arg.{name}.4" for name in public}
        self.given = {f"%arg.{name}": value for name, value in given.items()}
        assert {*self.public, *self.given} <= self.arguments
        blocks = _blocks(body)
        self.by_name = {line.name: line for lines in blocks.values() for line in lines if line.name}
        self.lines = [line for label in self._reached(blocks) for line in blocks[label]]

    def _reached(self, blocks):
        first = next(iter(blocks))
        reached, left = {first}, [first]
        while left:
            following = set(self._following(blocks[left.pop()][-1])) - reached
            reached |= following
            left += following
        return [label for label in blocks if label in reached]

    def _following(self, end):
        if end.kind == "switch" and end.values[0] in self.given:
            cases = re.findall(rf"i64 (-?\d+), label ({VALUE})", end.text)
            return [dict(cases).get(str(self.given[end.values[0]]), end.labels[0])]
        if end.kind == "br" and end.values:
            condition = self.by_name.get(end.values[0])
            known = condition and re.search(rf"icmp (eq|ne) i64 ({VALUE}), (-?\d+)$", condition.text)
            if known and known[2] in self.given:
                holds = (self.given[known[2]] == int(known[3])) == (known[1] == "eq")
                return end.labels[:1] if holds else end.labels[1:]
        return end.labels

    def roots(self, value, seen=()):
        """The arguments that an address comes from."""
        line = self.by_name.get(value)
        if line is None or value in seen:
            return set() if value in seen else {value}
        if line.kind == "getelementptr":
            return self.roots(line.values[0], (*seen, value))
        if line.kind in {"phi", "select"}:
            return set().union(*(self.roots(one, (*seen, value)) for one in line.values[line.kind == "select" :]))
        return {value}

    def secrets(self):
        """All values that depend on secret memory."""
        found = {
            line.name for line in self.lines if line.kind == "load" and not self.roots(line.values[-1]) <= self.public
        }
        before = -1
        while before < len(found):
            before = len(found)
            found |= {line.name for line in self.lines if line.name and not found.isdisjoint(line.values)}
        return found

    def asks_whether_it_raised(self, line):
        """Whether this takes a pointer to an exception if the status of a call is an error, and no matter what otherwise.

        A kernel's status says whether it raised, and results go to memory. Not every call is followed by the question: the
        compiler leaves it out where it knows that nothing is raised, which depends on whether the kernel came from a cache.
        """
        chosen = re.fullmatch(rf"{VALUE} = select i1 ({VALUE}), ptr {VALUE}, ptr (?:undef|poison)", line.text)
        asked = chosen and re.search(rf"= icmp sgt i32 ({VALUE}), 0$", self.by_name[chosen[1]].text)
        return bool(asked) and self.by_name[asked[1]].kind == "call"

    def leaks(self):
        """(reason, instruction) for whatever takes a time or has an address that depends on a secret."""
        secret, found = self.secrets(), []
        for line in self.lines:
            hot = [value in secret for value in line.values]
            if not any(hot):
                continue
            called = re.search(r"@([\w.]+)\(", line.text)[1] if line.kind == "call" else ""
            scalar = " <" not in line.text.split("(")[0]
            if line.kind in {"br", "switch"}:
                found.append(("branch", line.text))
            elif line.kind in {"getelementptr", "load"} or called.startswith(("llvm.mem", "llvm.masked")):
                found.append(("address", line.text))
            elif line.kind == "store":
                if hot[1]:
                    found.append(("address", line.text))
                if hot[0] and self.roots(line.values[1]) & self.public:
                    found.append(("made public", line.text))
            elif self.asks_whether_it_raised(line):
                found.append(("raised?", line.text))
            elif scalar and (line.kind == "select" or called.removeprefix("llvm.").startswith(MAY_BRANCH)):
                found.append(("choice", line.text))  # of which the last stage of a compiler may make a branch
            elif line.kind in SLOW or (called and not called.startswith("llvm.")):
                found.append(("slow", line.text))
        return found
