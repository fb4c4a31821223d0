"""Random expressions from the table of declarations, for comparisons with the real environment.

Most are well typed, because an expression that does not compile says little about evaluation;
a share of arguments is of any other type on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from reference_allocator.cel.environment.declarations import CelFeatures, device_environment
from reference_allocator.cel.environment.tables import Overload

_OPERATORS = {"_+_", "_-_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"}
_LITERALS: dict[str, list[str]] = {
    "int": ["0", "1", "-1", "2", "5", "9223372036854775807", "-9223372036854775808"],
    "uint": ["0u", "1u", "7u", "18446744073709551615u"],
    "double": ["0.0", "1.5", "-2.5", "1e10", "3.0"],
    "bool": ["true", "false"],
    "string": ['""', '"a"', '"gpu"', '"a,b,c"', '"1.2.3"', '"64Gi"', '"h\\u00e9"', '"10.0.0.1"'],
    "bytes": ['b""', 'b"ab"', 'b"\\xff"'],
    "null": ["null"],
    "duration": ['duration("1s")', 'duration("-90m")'],
    "timestamp": ['timestamp("2024-02-29T12:00:00Z")', "timestamp(0)"],
    "kubernetes.Quantity": ['quantity("1")', 'quantity("1500m")', 'quantity("64Gi")'],
    "kubernetes.Semver": ['semver("1.2.3")', 'semver("1.0.0-rc.1")'],
    "net.IP": ['ip("10.0.0.1")', 'ip("::1")'],
    "net.CIDR": ['cidr("10.0.0.0/8")', 'cidr("fe80::1/64")'],
    "kubernetes.URL": ['url("https://a.b:80/p?q=1")'],
    "kubernetes.NamedFormat": ["format.dns1123Label()", "format.uuid()"],
    "type": ["int", "string", "type(1)", "google.protobuf.Duration", "google.protobuf.Empty"],
    "google.protobuf.Empty": ["google.protobuf.Empty{}"],
}
_ATTRIBUTES = ["type", "n", "b", "v", "zero", "l", "ls", "nope"]
_OTHERS = ["null", "type", "duration", "timestamp", "net.IP", "kubernetes.URL", "kubernetes.Semver"]
_OTHERS += ["optional_type(int)", "list(int)", "map(string, int)", "google.protobuf.Empty"]
_SIMPLE = ["int", "uint", "double", "bool", "string", "bytes"]


@cache
def _by_result() -> dict[str, list[tuple[str, Overload]]]:
    functions_by_result: dict[str, list[tuple[str, Overload]]] = {}
    for name, overloads in device_environment(CelFeatures()).table.functions.items():
        if "@" in name.replace("@in", "") or "authorization" in str(overloads):
            continue
        for overload in overloads:
            functions_by_result.setdefault(overload.result.text, []).append((name, overload))
    return functions_by_result


class Generator:
    """Expressions of one seed; ``expression()`` gives the next."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._by_result = _by_result()
        self._variables: list[str] = []

    def expression(self) -> str:
        """An expression of type bool, or one whose type only the evaluation knows."""
        self._variables = []
        return self._value("bool", self._random.randint(1, 4))

    def value(self) -> str:
        """An expression of any type that a derived attribute may have, or another."""
        self._variables = []
        kinds = ["int", "string", "kubernetes.Semver", "dyn", "list(int)", "list(string)", "double"]
        return self._value(self._random.choice(kinds), self._random.randint(0, 4))

    def _value(self, kind: str, depth: int) -> str:
        roll = self._random.random()
        if self._random.random() < 0.02:
            return self._message(kind, depth)
        if roll < 0.03:
            kind = self._random.choice([*_SIMPLE, "dyn", "list(int)", "kubernetes.Semver"])
        if depth <= 0 or roll > 0.92:
            return self._leaf(kind)
        if kind == "dyn":
            return self._dyn(depth)
        if kind == "bool" and roll < 0.55:
            return self._boolean(depth)
        candidates = self._by_result.get(kind)
        if candidates and roll < 0.8:
            return self._call(*self._random.choice(candidates), depth)
        if kind.startswith(("list(", "map(", "optional_type(")):
            return self._aggregate(kind, depth)
        if roll < 0.9 and self._random.random() < 0.3:
            condition = self._value("bool", depth - 1)
            return (
                f"({condition} ? {self._value(kind, depth - 1)} : {self._value(kind, depth - 1)})"
            )
        return self._leaf(kind)

    def _leaf(self, kind: str) -> str:
        if self._variables and self._random.random() < 0.3:
            return self._random.choice(self._variables)
        if kind == "dyn":
            return self._dyn(0)
        if kind in _LITERALS:
            return self._random.choice(_LITERALS[kind])
        if kind.startswith(("list(", "map(", "optional_type(")):
            return self._aggregate(kind, 0)
        return self._random.choice(_LITERALS[self._random.choice(_SIMPLE)])

    def _dyn(self, depth: int) -> str:
        if depth > 0 and self._random.random() < 0.05:
            mark = self._random.choice(["", "", "?"])
            return f"{self._value('dyn', depth - 1)}[{mark}{self._value('dyn', depth - 1)}]"
        if self._random.random() < 0.6:
            domain = self._random.choice(
                ['"dra.example.com"', '"other.io"', "device.driver", '"zz"']
            )
            name = self._random.choice(_ATTRIBUTES)
            select = self._random.choice(
                [f".{name}", f'["{name}"]', f".{name}", f".?{name}.orValue(1)"]
            )
            return f"device.attributes[{domain}]{select}"
        kinds = _SIMPLE if self._random.random() < 0.7 else _OTHERS
        return f"dyn({self._value(self._random.choice(kinds), depth - 1)})"

    def _message(self, kind: str, depth: int) -> str:
        """A protobuf message that stands for a value of the kind, or any other."""
        messages = device_environment(CelFeatures()).table.messages
        fitting = [
            name for name in messages if messages[name].type.text in (kind, f"wrapper({kind})")
        ]
        name = self._random.choice(fitting or sorted(messages))
        fields = []
        for field, checked in messages[name].fields.items():
            if self._random.random() < 0.6:
                chosen = checked.text if self._random.random() < 0.8 else "dyn"
                value = self._value(chosen, depth - 1)
                if self._random.random() < 0.05:
                    field, value = f"?{field}", f"optional.of({value})"
                fields.append(f"{field}: {value}")
        return f"{name}{{{', '.join(fields)}}}"

    def _boolean(self, depth: int) -> str:
        choose = self._random.choice
        shapes: list[Callable[[], str]] = [
            lambda: f"({self._value('bool', depth - 1)} && {self._value('bool', depth - 1)})",
            lambda: f"({self._value('bool', depth - 1)} || {self._value('bool', depth - 1)})",
            lambda: f"!{self._value('bool', 0)}",
            lambda: self._compare(depth),
            lambda: self._compare(depth),
            lambda: self._quantifier(depth),
            lambda: self._two_variables(depth),
            lambda: self._bind(depth),
            lambda: self._format(depth),
            lambda: f'has(device.attributes["dra.example.com"].{choose(_ATTRIBUTES)})',
            lambda: f'"{choose(_ATTRIBUTES)}" in device.attributes["dra.example.com"]',
        ]
        return choose(shapes)()

    def _compare(self, depth: int) -> str:
        operator = self._random.choice(["==", "!=", "<", "<=", ">", ">=", "==", "=="])
        kind = self._random.choice([*_SIMPLE, "dyn", "kubernetes.Quantity", "kubernetes.Semver"])
        other = "dyn" if self._random.random() < 0.3 else kind
        return f"({self._value(kind, depth - 1)} {operator} {self._value(other, depth - 1)})"

    def _quantifier(self, depth: int) -> str:
        source = self._value(self._random.choice(["list(int)", "list(string)", "dyn"]), depth - 1)
        macro = self._random.choice(["all", "exists", "exists_one"])
        name = f"x{len(self._variables)}"
        self._variables.append(name)
        predicate = self._value("bool", depth - 1)
        self._variables.pop()
        return f"{source}.{macro}({name}, {predicate})"

    def _two_variables(self, depth: int) -> str:
        """The macros with index or key and value, over lists, maps and the device's own maps."""
        source = self._random.choice(
            [
                self._value("list(int)", depth - 1),
                self._value("map(string, int)", depth - 1),
                "device.attributes",
                'device.attributes["dra.example.com"]',
                "device.capacity",
                self._value("dyn", depth - 1),
            ]
        )
        first, second = f"x{len(self._variables)}", f"x{len(self._variables) + 1}"
        self._variables += [first, second]
        keep = self._value("bool", depth - 1)
        body = self._value(self._random.choice(_SIMPLE), depth - 1)
        del self._variables[-2:]
        names = f"{first}, {second}"
        shapes = [
            f"{source}.all({names}, {keep})",
            f"{source}.exists({names}, {keep})",
            f"{source}.existsOne({names}, {keep})",
            f"{source}.transformList({names}, {body}).size() == 1",
            f"size({source}.transformList({names}, {keep}, {body})) > 0",
            f"{source}.transformMap({names}, {body}) == {{}}",
            f"size({source}.transformMap({names}, {keep}, {body})) < 2",
            f"size({source}.transformMapEntry({names}, {{{first}: {body}}})) < 2",
        ]
        return self._random.choice(shapes)

    def _bind(self, depth: int) -> str:
        value = self._value(self._random.choice([*_SIMPLE, "dyn", "list(int)"]), depth - 1)
        name = f"x{len(self._variables)}"
        self._variables.append(name)
        body = self._value("bool", depth - 1)
        self._variables.pop()
        return f"cel.bind({name}, {value}, {body})"

    def _format(self, depth: int) -> str:
        choose = self._random.choice
        clauses = [choose(["%s", "%d", "%f", "%.2f", "%e", "%b", "%x", "%X", "%o", "%%", "%.0e"])]
        while self._random.random() < 0.4:
            clauses.append(choose(["%s", "%s", "%d", "%.3f", "%x"]))
        kinds = [*_SIMPLE, "dyn", "duration", "timestamp", "list(int)", "map(string, int)", "null"]
        args = [self._value(choose(kinds), depth - 1) for clause in clauses if clause != "%%"]
        if self._random.random() < 0.05:
            args = args[1:]
        text = "-".join(clauses)
        return f"'{text}'.format([{', '.join(args)}]) == {self._value('string', 0)}"

    def _aggregate(self, kind: str, depth: int) -> str:
        inner = kind[kind.index("(") + 1 : -1]
        count = self._random.randint(0, 3)
        if kind.startswith("list("):
            if depth > 0 and self._random.random() < 0.3:
                return self._transform(inner, depth)
            return f"[{', '.join(self._value(inner, depth - 1) for _ in range(count))}]"
        if kind.startswith("optional_type("):
            if self._random.random() < 0.3:
                return "optional.none()"
            return f"optional.of({self._value(inner, depth - 1)})"
        key, _, value = inner.partition(", ")
        keys = self._random.sample(_LITERALS.get(key, _LITERALS["string"]), 2)
        return "{" + ", ".join(f"{item}: {self._value(value, depth - 1)}" for item in keys) + "}"

    def _transform(self, inner: str, depth: int) -> str:
        source = self._value(f"list({self._random.choice(_SIMPLE)})", depth - 1)
        name = f"x{len(self._variables)}"
        self._variables.append(name)
        body = self._value(inner, depth - 1)
        keep = self._value("bool", depth - 1)
        self._variables.pop()
        shapes = [f"map({name}, {body})", f"map({name}, {keep}, {body})", f"filter({name}, {keep})"]
        return f"{source}.{self._random.choice(shapes)}"

    def _call(self, name: str, overload: Overload, depth: int) -> str:
        bound = {param: self._random.choice(_SIMPLE) for param in overload.type_params}

        def text(kind: str) -> str:
            for param, chosen in bound.items():
                kind = kind.replace(f"({param}", f"({chosen}").replace(f"{param})", f"{chosen})")
                kind = chosen if kind == param else kind
            return kind

        args = [self._value(text(arg.text), depth - 1) for arg in overload.args]
        if name in _OPERATORS:
            return f"({args[0]} {name.strip('_')} {args[1]})"
        if name == "@in":
            return f"({args[0]} in {args[1]})"
        if name in ("-_", "!_"):
            return f"{name[0]}({args[0]})"
        if name == "_?_:_":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        if name in ("_[_]", "_[?_]"):
            return f"{args[0]}[{'?' if '?' in name else ''}{args[1]}]"
        if name in ("_&&_", "_||_"):
            return f"({args[0]} {name.strip('_')} {args[1]})"
        if name.startswith("_"):
            return self._leaf(overload.result.text)
        if overload.member:
            return f"{args[0]}.{name}({', '.join(args[1:])})"
        return f"{name}({', '.join(args)})"
