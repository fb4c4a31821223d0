"""The grammar of CEL as Kubernetes reads it: cel-python's grammar file with named patches.

cel-python is used for its grammar only. The file is read as data, because importing the package's
evaluator changes the recursion limit of the whole process. Its grammar lacks what Kubernetes
enables (optional syntax, quoted field names) and reads some literals differently from cel-go
(``parser/gen/CEL.g4``), hence the patches; each must apply exactly once, so that a new version of
the file cannot silently undo one.
"""

from __future__ import annotations

import fcntl
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lark import Lark
from platformdirs import user_cache_path

_ESCAPE = (
    r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"
)
_SIGN = r"(?:-[\t\n\f\r ]*)?"
# In the classes the quote comes before the backslash: lark misreads a backslash before a quote.
_STRING = rf"""(?:"(?:{_ESCAPE}|[^"\\\n\r])*"|'(?:{_ESCAPE}|[^'\\\n\r])*')"""
_RAW = r"""[rR](?:"[^"\n\r]*"|'[^'\n\r]*')"""
_LONG = rf'(?:"""(?:{_ESCAPE}|[^\\])*?"""|' + rf"'''(?:{_ESCAPE}|[^\\])*?''')"
_RAW_LONG = r'[rR](?:"""(?s:.*?)"""|' + r"'''(?s:.*?)''')"


def _line(text: str, start: str) -> str:
    """The single line of ``text`` that starts with ``start``."""
    lines = [line for line in text.split("\n") if line.startswith(start)]
    if len(lines) != 1:
        message = f"cel.lark: expected one line starting with {start!r}, found {len(lines)}"
        raise RuntimeError(message)
    return lines[0]


# (name, how the line to replace starts, new text). Lines that continue one are dropped below.
_RULE_PATCHES = (
    ("inline expr", "expr           :", '?expr: conditionalor ["?" conditionalor ":" expr]'),
    ("inline or", "conditionalor  :", '?conditionalor: [conditionalor "||"] conditionaland'),
    ("inline and", "conditionaland :", '?conditionaland: [conditionaland "&&"] relation'),
    (
        "inline relation",
        "relation       :",
        (
            "?relation: [relation_lt | relation_le | relation_ge | relation_gt | relation_eq"
            " | relation_ne | relation_in] addition"
        ),
    ),
    (
        "inline addition",
        "addition       :",
        "?addition: [addition_add | addition_sub] multiplication",
    ),
    (
        "inline multiplication",
        "multiplication :",
        "?multiplication: [multiplication_mul | multiplication_div | multiplication_mod] unary",
    ),
    ("inline unary", "unary          : member", "?unary: member"),
    (
        "inline member",
        "member         :",
        "?member: member_dot | member_dot_arg | member_index | member_object | primary",
    ),
    (
        "inline primary",
        "primary        :",
        "?primary: literal | dot_ident_arg | dot_ident | ident_arg",
    ),
    ("a whole word", "relation_in    :", "relation_in: relation IN\nIN.2: /in(?![_a-zA-Z0-9])/"),
    ("optional and quoted fields", "member_dot     :", 'member_dot: member "." ["?"] field'),
    ("optional index", "member_index   :", 'member_index: member "[" ["?"] expr "]"'),
    (
        "optional elements, trailing comma",
        "list_lit       :",
        'list_lit: "[" [listinit] "]" | "[" "," "]"',
    ),
    (
        "trailing comma of a map",
        "map_lit        :",
        (
            'map_lit: "{" [mapinits] "}" | "{" "," "}"\n'
            'optexpr: ["?"] expr\n'
            'listinit: optexpr ("," optexpr)* [","]\n'
            "field: IDENT | ESC_IDENT\n"
            'optfield: ["?"] field'
        ),
    ),
    (
        "trailing comma of an object",
        "member_object  :",
        'member_object: member "{" [fieldinits] "}" | member "{" "," "}"',
    ),
    (
        "optional fields",
        "fieldinits     :",
        'fieldinits: optfield ":" expr ("," optfield ":" expr)* [","]',
    ),
    (
        "optional entries",
        "mapinits       :",
        'mapinits: optexpr ":" expr ("," optexpr ":" expr)* [","]',
    ),
    # Signs belong to a literal where an operand is expected, also with space between.
    ("int", "INT_LIT        :", rf"INT_LIT.1: /{_SIGN}(?:0x[0-9a-fA-F]+|[0-9]+)/"),
    ("uint", "UINT_LIT       :", r"UINT_LIT.2: /(?:0x[0-9a-fA-F]+|[0-9]+)[uU]/"),
    (
        "double: digits on both sides of the point, as cel-go",
        "FLOAT_LIT      :",
        (
            rf"FLOAT_LIT.3: /{_SIGN}(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
            r"|\.[0-9]+(?:[eE][+-]?[0-9]+)?)/"
        ),
    ),
    ("string", "STRING_LIT     :", f"STRING_LIT.1: /{_RAW}|{_STRING}/"),
    ("long string", "MLSTRING_LIT   :", f"MLSTRING_LIT.2: /{_RAW_LONG}|{_LONG}/"),
    ("bytes", "BYTES_LIT      :", f"BYTES_LIT.3: /[bB](?:{_RAW_LONG}|{_LONG}|{_RAW}|{_STRING})/"),
    ("whole word bools", "BOOL_LIT       :", r"BOOL_LIT.2: /(?:true|false)(?![_a-zA-Z0-9])/"),
    ("whole word null", "NULL_LIT       :", r"NULL_LIT.2: /null(?![_a-zA-Z0-9])/"),
    (
        "quoted identifiers",
        "IDENT          :",
        (
            r"IDENT: /(?!(?:in|true|false|null)(?![_a-zA-Z0-9]))[_a-zA-Z][_a-zA-Z0-9]*/"
            "\nESC_IDENT: /`[a-zA-Z0-9_.\\-\\/ ]+`/"
        ),
    ),
)

# Continuation lines that a patch above makes wrong.
_DROPPED = (
    r"""               | /[rR]?'(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|.)*?'/""",  # noqa: E501
    r"""               | /[rR]?'''(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\r\n|\r|\n|.)*?'''/""",  # noqa: E501
)


def _replace_once(text: str, old: str, new: str, name: str) -> str:
    if text.count(old) != 1:
        message = f"cel.lark: patch {name!r} applies {text.count(old)} times instead of once"
        raise RuntimeError(message)
    return text.replace(old, new)


def patched_grammar(original: str) -> str:
    """The grammar text that this package uses.

    Args:
        original: the text of cel-python's ``cel.lark``.

    Raises:
        RuntimeError: a patch does not apply exactly once (an unknown version of the file).
    """
    text = "\n".join(line for line in original.split("\n") if not line.lstrip().startswith("//"))
    for dropped in _DROPPED:
        text = _replace_once(text, dropped + "\n", "", "continuation of a literal")
    for name, start, new in _RULE_PATCHES:
        text = _replace_once(text, "\n" + _line(text, start) + "\n", f"\n{new}\n", name)
    return text


def _grammar_file() -> Path:
    spec = find_spec("celpy")  # finds the package without importing it
    if spec is None or not spec.submodule_search_locations:
        message = "the cel-python package, whose grammar this package reads, is not installed"
        raise RuntimeError(message)
    return Path(spec.submodule_search_locations[0]) / "cel.lark"


@cache
def build_parser(transformer: Any) -> Lark:
    """The LALR parser; ``transformer`` gets each rule's children, bottom-up and without recursion.

    Its tables take a third of a second to compute, more than all else that starts, so lark keeps
    them in the user's cache, one process at a time. A file that is damaged, or of another grammar,
    is written anew; where nothing can be written the tables are computed each time.

    Raises:
        RuntimeError: cel-python is not installed, or its grammar is not the one patched here.
    """
    text = patched_grammar(_grammar_file().read_text(encoding="utf-8"))
    folder = user_cache_path("dra-conformance") / "cel"
    name = f"parser-{sys.version_info.major}.{sys.version_info.minor}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError:
        return _lark(text, transformer, False)
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _lark(text, transformer, str(folder / name))


def _lark(text: str, transformer: Any, kept: str | bool) -> Lark:
    return Lark(
        text,
        parser="lalr",
        start="expr",
        transformer=transformer,
        keep_all_tokens=True,
        maybe_placeholders=False,
        propagate_positions=False,
        cache=kept,
    )
