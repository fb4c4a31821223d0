"""Random folders of CDI specs: mostly right, in as many ways of writing as YAML has."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

Json = dict[str, Any]

_SCALARS: Final = (
    *"0 010 08 1.5 true True yes y off null ~ Null 0x10 0X1f 1_0 _1 12:30 2026-01-01 +1".split(),
    *".5 . .5e3 1e3 1e400 -0 0o17 0O17 0b11 0b-1 0o-7 -0o7 -0b1 +0x1 0x 0b 0o 1__2 0_7 -1".split(),
    *".inf -.inf +.inf .nan .NaN .Inf << '' 4294967295.9 -0.5 -1.5 1.0 1e30 -1e30 [] {}".split(),
    *"9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616".split(),
    *"-9223372036854775808 -9223372036854775809 -9223372036854775808.0 4294967295".split(),
    *r'"\x41" "\u00e9" "\/" "\ud83d\ude00" "\U0001f600" "\e" "\N" "yes" [a] a#b a:b a&b'.split(),
    *("-", "'5'", "", '""', "'x y'", "9223372036854775808.0", "4294967296", "{a: b}", "é"),
    *("!!str 1", "!!int 1", "!!int '7'", "!!int x", "!!int 1.0", "!!float 1", "!!float x"),
    *("!!bool true", "!!bool yes", "!!null ''", "!!null x", "!!binary QUI9", "!!binary x"),
    *("!!timestamp 2026-01-01", "!!timestamp x", "!own v", "! 1", "! x", "!!str", "!own yes"),
    *("!!merge <<", "!!str <<", "'a''b'", '"a\\\n  b"', "a b", "a # comment", "!!seq x", "!!foo 1"),
    *("&one 1", "*one", "*gone", "&two x", "*two", "2026-01-01 10:00:00", "%a", "@a", "`a", "a,b"),
)
"""As they are written; what they are depends on the field."""

_NUMBERS: Final = (
    *("0", "1", "7", "195", "255", "1.0", "0x1F", "0o666", "0666", "438", "1e3", "1_000", "65535"),
)
_MARKS: Final = (
    *("", "", "\n", " ", ":", ",", "- ", "#", '"', "'", "{", "}", "[", "]", "&a ", "*a", "? ", "|"),
    *(">", "|-\n", "\t", "\u0000", "\u007f", "\u0085", "\u2028", "!!str ", "<<: "),
)


class Mapped(list[tuple[str, Any]]):
    """A mapping as it is written: keys may be there twice."""


class Drawn:
    """Draws one folder after another from its own random numbers."""

    def __init__(self, seed: str, number: int) -> None:
        self._random = random.Random(f"{seed}-{number}")
        self._oddity = self._random.choice((0.0, 0.0, 0.01, 0.03, 0.1))

    def question(self, number: int) -> Json:
        """Return what `ci/upstream/cdi` is asked."""
        folders = [self._folder() for _ in range(self._random.choice((1, 1, 1, 2, 3)))]
        ids = ("v.com/cls=gpu0", "v.com/cls=gpu0", "v.com/cls=gpu1", "v.com/x.y=gpu0")
        return {
            "id": str(number),
            "folders": folders,
            "inject": self._random.choices(ids, k=self._random.choice((1, 1, 1, 2, 3))),
        }

    def _folder(self) -> dict[str, str]:
        names = ("a.json", "b.yaml", "d.json", "e.yaml")
        others = (".a.json", ".yaml", "c.yml", "a.json.tmp", "b.YAML")
        count = self._random.choice((0, *[1] * 9, 2, 2, 3))
        return {
            name: self._file(name)
            for name in self._random.sample(names + others * self._odd(5), count)
        }

    def _file(self, name: str) -> str:
        spec = self._spec()
        if name.endswith("json") and not self._odd(3):
            text = self._flow(spec, json.dumps, '"{}"'.format)
        elif self._random.random() < 0.3:
            text = self._flow(spec, str, str)
        else:
            text = self._block(spec, "")
        if self._odd(2):
            text = self._spoil(text)
        if self._odd(2):
            ends = (
                "\n---\n",
                "\n---\na: b\n",
                "\n...\n",
                " x",
                "}",
                "\n# end\n",
                "\n...\nx: [",
                "\t",
            )
            text += self._random.choice(ends)
        if self._odd(1):
            starts = (
                "---\n",
                "%YAML 1.1\n---\n",
                "%YAML 1.2\n---\n",
                "# c\n",
                "\ufeff",
                " ",
                "--- ",
                "\n\n",
            )
            text = self._random.choice(starts) + text
        return text

    def _spoil(self, text: str) -> str:
        """Return the text with some characters gone, twice, or others."""
        for _ in range(self._random.choice((1, 1, 2, 5))):
            at = self._random.randrange(len(text) + 1)
            size = self._random.choice((1, 1, 2, 8))
            mark = self._random.choice((*_MARKS, text[at : at + size] * 2))
            text = text[:at] + mark + text[at + self._random.choice((0, size)) :]
        return text

    # -- what is said

    def _odd(self, times: float = 1) -> bool:
        return self._random.random() < self._oddity * times

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    def _scalar(self, *usual: str) -> str:
        return self._random.choice(_SCALARS if self._odd() else usual)

    def _text(self, *usual: str, wrong: Sequence[str] = ()) -> Any:
        """Return a text field's value: one that is quoted where JSON wants it."""
        if self._odd():
            return self._random.choice(_SCALARS)
        return (self._random.choice(wrong if wrong and self._odd(2) else usual),)

    def _number(self) -> str:
        return self._random.choice(_SCALARS if self._odd() else _NUMBERS)

    def _map(self, *entries: tuple[str, float, Callable[[], Any]]) -> Any:
        if self._odd(0.5):
            return self._random.choice(_SCALARS)
        mapped = Mapped((key, make()) for key, chance, make in entries if self._maybe(chance))
        if self._odd():
            self._random.shuffle(mapped)
        if mapped and self._odd():
            mapped.append(self._random.choice(mapped))
        if self._odd():
            keys = ("x", "~", "<<", "1", "Name", "name ", "*one", "[a]", "{a: b}", "''")
            mapped.append((self._random.choice(keys), self._text("x")))
        if self._odd(0.7) and mapped:
            merged = Mapped([mapped.pop(self._random.randrange(len(mapped)))])
            mapped.append(("<<", self._random.choice((merged, [merged], [merged, merged]))))
        return mapped

    def _list(self, make: Callable[[], Any], sizes: Sequence[int] = (0, 1, 1, 2)) -> Any:
        if self._odd(0.5):
            return self._random.choice(_SCALARS)
        items = [make() for _ in range(self._random.choice(sizes))]
        if self._odd():
            items.insert(self._random.randrange(len(items) + 1), "null")
        return items

    def _spec(self) -> Any:
        versions = ("1.1.0", "1.1.0", "1.1.0", "v1.1.0")
        wrong = (
            "0.2.0",
            "0.3.0",
            "0.5.0",
            "0.6.0",
            "0.7.0",
            "0.8.0",
            "1.0.0",
            "1.2.0",
            "v0.6.0",
            "vv1.1.0",
        )
        kinds = ("v.com/cls", "v.com/cls", "v.com/x.y")
        return self._map(
            ("cdiVersion", 1, lambda: self._text(*versions, wrong=wrong)),
            (
                "kind",
                1,
                lambda: self._text(
                    *kinds, wrong=("v/c/d", "v.com", "9/a", "a/b-", "a/", "v.com/é")
                ),
            ),
            ("annotations", 0.15, self._annotations),
            ("devices", 0.99, lambda: self._list(self._device, (1, 1, 2, 3))),
            ("containerEdits", 0.4, self._edits),
        )

    def _annotations(self) -> Any:
        return self._map(
            ("a.b/c", 0.7, lambda: self._text("1", "x")), ("d", 0.3, lambda: self._text("y"))
        )

    def _device(self) -> Any:
        return self._map(
            (
                "name",
                0.99,
                lambda: self._text(
                    *["gpu0"] * 5, "gpu1", "gpu1", "0", "a:b", wrong=("-a", "a.", "", "a/b", "é")
                ),
            ),
            ("annotations", 0.1, self._annotations),
            ("containerEdits", 0.99, self._edits),
        )

    def _edits(self) -> Any:
        variables = ("A=b", "A=c", "B=1", "B=", "C=d=e", "A B=c")
        return self._map(
            (
                "env",
                0.7,
                lambda: self._list(lambda: self._text(*variables, wrong=("=A=b", "A", ""))),
            ),
            ("deviceNodes", 0.4, lambda: self._list(self._node)),
            ("netDevices", 0.15, lambda: self._list(self._net_device)),
            ("hooks", 0.15, lambda: self._list(self._hook)),
            ("mounts", 0.4, lambda: self._list(self._mount, (1, 2, 3))),
            ("intelRdt", 0.15, self._intel_rdt),
            ("additionalGids", 0.2, lambda: self._list(self._number, (0, 1, 2, 3))),
        )

    def _node(self) -> Any:
        return self._map(
            (
                "path",
                0.99,
                lambda: self._text("/dev/null", "/dev/a", "/dev/b", "dev/null", wrong=("",)),
            ),
            ("hostPath", 0.2, lambda: self._text("/dev/null", "/x")),
            ("type", 0.97, lambda: self._text("c", "c", "b", "u", "p", wrong=("x", ""))),
            ("major", 0.97, self._number),
            ("minor", 0.5, self._number),
            ("fileMode", 0.2, self._number),
            (
                "permissions",
                0.3,
                lambda: self._text("rw", "rwm", "none", "", "mmm", wrong=("rwx", "n", "None")),
            ),
            ("uid", 0.1, self._number),
            ("gid", 0.1, self._number),
        )

    def _net_device(self) -> Any:
        return self._map(
            ("hostInterfaceName", 0.98, lambda: self._text("eth0", "eth1", "eth2", wrong=("",))),
            ("name", 0.98, lambda: self._text("n0", "n1", "n2", wrong=("",))),
        )

    def _hook(self) -> Any:
        return self._map(
            (
                "hookName",
                0.98,
                lambda: self._text("prestart", "poststop", "createRuntime", wrong=("x",)),
            ),
            ("path", 0.98, lambda: self._text("/bin/a", wrong=("",))),
            ("args", 0.3, lambda: self._list(lambda: self._text("a", "b"))),
            ("env", 0.3, lambda: self._list(lambda: self._text("A=b", wrong=("A",)))),
            ("timeout", 0.2, self._number),
        )

    def _mount(self) -> Any:
        places = ("/a", "/a/b", "/a/b/c", "/a/", "//a", "a", "/", "/a/../b", "/b", "/c/d")
        return self._map(
            ("hostPath", 0.98, lambda: self._text("/x", "/y", "tmpfs", wrong=("",))),
            ("containerPath", 0.98, lambda: self._text(*places)),
            ("options", 0.3, lambda: self._list(lambda: self._text("ro", "bind"))),
            ("type", 0.2, lambda: self._text("bind", "")),
        )

    def _intel_rdt(self) -> Any:
        return self._map(
            (
                "closID",
                0.6,
                lambda: self._text("x", "/", "a.b", wrong=("a/b", "..", ".", "a" * 4096)),
            ),
            ("l3CacheSchema", 0.3, lambda: self._text("L3:0=f")),
            ("memBwSchema", 0.2, lambda: self._text("MB:0=20")),
            ("schemata", 0.3, lambda: self._list(lambda: self._text("L3:0=f"))),
            ("enableMonitoring", 0.3, lambda: self._scalar("true", "false")),
        )

    # -- how it is written

    def _flow(self, value: Any, quote: Callable[[str], str], key: Callable[[str], str]) -> str:
        space = self._random.choice((" ", "", "\n ")) if self._odd() else " "
        if isinstance(value, Mapped):
            parts = [f"{key(name)}: {self._flow(one, quote, key)}" for name, one in value]
            return "{" + f",{space}".join(parts) + ("," if self._odd() else "") + "}"
        if isinstance(value, list):
            return "[" + f",{space}".join(self._flow(one, quote, key) for one in value) + "]"
        return quote(value[0]) if isinstance(value, tuple) else value

    def _block(self, value: Any, indent: str) -> str:
        """Return what stands behind ``key:`` or ``-``, the end of its line and further ones."""
        comment = "  # why\n" if self._odd() else "\n"
        if isinstance(value, Mapped) and value and not self._maybe(0.15):
            anchor = f" &a{len(indent)}" if self._odd(0.3) else ""
            lines = "".join(
                f"{indent}{key}:{self._block(one, indent + '  ')}" for key, one in value
            )
            return lines if not indent else f"{anchor}{comment}{lines}"
        if isinstance(value, list) and value and not self._maybe(0.2):
            dash = indent if self._maybe(0.5) else indent[2:]
            return comment + "".join(f"{dash}-{self._item(one, dash + '  ')}" for one in value)
        if isinstance(value, tuple):
            quote = self._random.choice((str, str, json.dumps, "'{}'".format))
            return f" {quote(value[0])}{comment}"
        return f" {self._flow(value, json.dumps, str)}{comment}"

    def _item(self, value: Any, indent: str) -> str:
        written = self._block(value, indent)
        begins_below = written.startswith(f"\n{indent}") and self._maybe(0.8)
        return f" {written[len(indent) + 1 :]}" if begins_below else written


def question(seed: str, number: int) -> Json:
    """Return the question of a number; the same for the same seed."""
    return Drawn(seed, number).question(number)
