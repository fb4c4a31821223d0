"""Writes the vectors of selectors: CEL expressions and what Kubernetes' own code makes of a device.

    python -m tests.vectors.selectors --oracles build/oracle

People try selectors with other implementations of CEL, which know neither Kubernetes' libraries nor
its types. Each row has one thing in it that they may take otherwise. The answers are those of
`ci/upstream/celoracle` of each minor; the reference must give the same.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.allocators.selectors import SELECTORS, SelectorVector
from reference_allocator.gates import MINORS
from reference_allocator.wire import answer_cel
from tests.oracle.upstream import Upstream, ask, open_upstream

Json = dict[str, Any]

DEVICE: Final[Json] = {
    "driver": "dra.example.com",
    "attributes": {
        "type": {"string": "gpu"},
        "model": {"string": "A100-SXM4-80GB"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "driverVersion": {"version": "1.10.0"},
        "other.example.com/rack": {"string": "r1"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    },
    "capacity": {
        "memory": {"value": "80Gi"},
        "cores": {"value": "1500m"},
        "other.example.com/bandwidth": {"value": "10G"},
    },
}
_SUGGESTION: Final = re.compile(r" \(did you mean [^)]*\)")
_DEVICE_API: Final = "resource.k8s.io/v1 CELDeviceSelector.expression"
_LIBRARY: Final = "k8s.io/apiserver/pkg/cel/library "
_OWN: Final = 'device.attributes["dra.example.com"]'
_CAPACITY: Final = 'device.capacity["dra.example.com"]'
LANGUAGE: Final = "CEL's language definition"
"""The source of rows that are about no library."""

ROWS: Final[Sequence[tuple[str, str, str, str]]] = (
    ("driver", 'device.driver == "dra.example.com"', "The driver is a string.", _DEVICE_API),
    ("driver-suffix", 'device.driver.endsWith(".example.com")', "Strings have endsWith.",
     LANGUAGE),
    ("string-attribute", f'{_OWN}.type == "gpu"', "Attributes are found by domain and name.",
     _DEVICE_API),
    ("attribute-by-index", f'{_OWN}["type"] == "gpu"', "A name may be an index, too.", _DEVICE_API),
    ("attribute-of-another-domain", 'device.attributes["other.example.com"].rack == "r1"',
     "A name with a domain is found under that.", _DEVICE_API),
    ("attribute-that-is-not-there", f'{_OWN}.missing == "x"',
     "To read a name that is not there is an error.", _DEVICE_API),
    ("domain-that-is-not-there", 'device.attributes["none.example.com"].x == "x"',
     "A domain that is not there is an empty map: reading a name in it is the error.", _DEVICE_API),
    ("domain-that-is-not-there-is-empty", 'size(device.attributes["none.example.com"]) == 0',
     "A domain that is not there is an empty map.", _DEVICE_API),
    ("name-in-a-domain-that-is-not-there", '"x" in device.attributes["none.example.com"]',
     "Nothing is in a domain that is not there.", _DEVICE_API),
    ("domain-in-attributes", '"other.example.com" in device.attributes',
     "in tells which domains there are.", _DEVICE_API),
    ("name-in-a-domain", f'"type" in {_OWN}', "in tells which names there are.", _DEVICE_API),
    ("has-name", f"has({_OWN}.type)", "has() tells whether a name is there.", LANGUAGE),
    ("has-no-name", f"!has({_OWN}.missing)", "has() is no error where it is not.", LANGUAGE),
    ("optional-index", f'{_OWN}[?"missing"].orValue("none") == "none"',
     "An optional index gives a value where there is none.", f"{_LIBRARY}(optional types)"),
    ("optional-select", f'{_OWN}.?type.orValue("none") == "gpu"',
     "An optional field is its value where there is one.", f"{_LIBRARY}(optional types)"),
    ("guard-before", f'"missing" in {_OWN} && {_OWN}.missing == "x"',
     "What is behind a false operand is not looked at.", LANGUAGE),
    ("guard-behind", f'{_OWN}.missing == "x" && false',
     "An error beside false is false: && does not go by order.", LANGUAGE),
    ("error-or-true", f'{_OWN}.missing == "x" || true', "An error beside true is true for ||.",
     LANGUAGE),
    ("error-and-true", f'{_OWN}.missing == "x" && true', "An error beside true stays for &&.",
     LANGUAGE),
    ("int-attribute", f"{_OWN}.index == 3", "An int is an int.", _DEVICE_API),
    ("int-greater-than-double", f"{_OWN}.index > 2.5", "Numbers of two types are compared.",
     LANGUAGE),
    ("int-is-no-string", f'{_OWN}.index == "3"', "Values of two types are not equal.", LANGUAGE),
    ("int-in-list", f"{_OWN}.index in [1, 2, 3]", "in looks through a list.", LANGUAGE),
    ("int-modulo", f"{_OWN}.index % 2 == 1", "An attribute may be in arithmetic.", LANGUAGE),
    ("division-by-zero", f"{_OWN}.index / 0 == 1", "A division by zero is an error.", LANGUAGE),
    ("int-overflow", f"{_OWN}.index + 9223372036854775807 > 0", "An overflow is an error.",
     LANGUAGE),
    ("uint-and-int", "1u == 1", "Numbers of two types are not compared: it does not compile.",
     LANGUAGE),
    ("int-division", "7 / 2 == 3", "Integers are divided without a rest.", LANGUAGE),
    ("int-and-double-add", "1 + 1.0 == 2.0",
     "Numbers of two types are not added: it does not compile.", LANGUAGE),
    ("bool-attribute", f"{_OWN}.ecc", "A bool is a selector by itself.", _DEVICE_API),
    ("bool-negated", f"!{_OWN}.ecc", "A bool may be negated.", LANGUAGE),
    ("string-is-no-selector", f"{_OWN}.type", "A value that is no bool is an error.", _DEVICE_API),
    ("type-of-the-expression", "device.driver",
     "An expression must be a bool: it does not compile.", _DEVICE_API),
    ("version-equals", f'{_OWN}.driverVersion == semver("1.10.0")', "Versions are equal.",
     f"{_LIBRARY}semver"),
    ("version-is-greater", f'{_OWN}.driverVersion.isGreaterThan(semver("1.9.0"))',
     "Versions are compared by their numbers.", f"{_LIBRARY}semver"),
    ("version-is-no-string", f'{_OWN}.driverVersion == "1.10.0"',
     "To compare a version with a string is an error.", f"{_LIBRARY}semver"),
    ("version-compare", f'{_OWN}.driverVersion.compareTo(semver("2.0.0")) < 0',
     "compareTo is negative for what is less.", f"{_LIBRARY}semver"),
    ("version-parts", f"{_OWN}.driverVersion.minor() == 10", "A version has parts.",
     f"{_LIBRARY}semver"),
    ("version-lenient", 'semver("v1.2", true) == semver("1.2.0")',
     "With true, a prefix v and missing parts are taken.", f"{_LIBRARY}semver"),
    ("version-malformed", 'semver("1.2") == semver("1.2.0")', "Without it they are an error.",
     f"{_LIBRARY}semver"),
    ("is-semver", '!isSemver("1.2") && isSemver("1.2.0")', "isSemver tells what would be one.",
     f"{_LIBRARY}semver"),
    ("version-prerelease", 'semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))',
     "A version before a release is less than it.", f"{_LIBRARY}semver"),
    ("quantity-compare", f'{_CAPACITY}.memory.compareTo(quantity("80Gi")) == 0',
     "A capacity is a quantity.", f"{_LIBRARY}quantity"),
    ("quantity-other-suffix", f'{_CAPACITY}.memory == quantity("81920Mi")',
     "Quantities of one amount are equal, however they are written.", f"{_LIBRARY}quantity"),
    ("quantity-is-greater", f'{_CAPACITY}.memory.isGreaterThan(quantity("80G"))',
     "80Gi is more than 80G.", f"{_LIBRARY}quantity"),
    ("quantity-operator", f'{_CAPACITY}.memory >= quantity("40Gi")',
     "Quantities have no operators: it does not compile.", f"{_LIBRARY}quantity"),
    ("quantity-thousandths", f'{_CAPACITY}.cores.compareTo(quantity("1.5")) == 0',
     "1500m is 1.5.", f"{_LIBRARY}quantity"),
    ("quantity-no-integer", f"{_CAPACITY}.cores.isInteger()", "1500m is no integer.",
     f"{_LIBRARY}quantity"),
    ("quantity-as-integer", f"{_CAPACITY}.memory.asInteger() == 85899345920",
     "A quantity may be read as an integer.", f"{_LIBRARY}quantity"),
    ("quantity-as-integer-fails", f"{_CAPACITY}.cores.asInteger() == 1",
     "One that is no integer is an error.", f"{_LIBRARY}quantity"),
    ("quantity-add", f'{_CAPACITY}.memory.add(quantity("1Gi")) == quantity("81Gi")',
     "Quantities are added.", f"{_LIBRARY}quantity"),
    ("quantity-sign", f"sign({_CAPACITY}.memory) == 1", "A quantity has a sign.",
     f"{_LIBRARY}quantity"),
    ("quantity-is-no-number", f"{_CAPACITY}.memory > 40", "A quantity is no number.",
     f"{_LIBRARY}quantity"),
    ("quantity-malformed", 'quantity("80GB").isInteger()', "A suffix that is none is an error.",
     f"{_LIBRARY}quantity"),
    ("is-quantity", 'isQuantity("80Gi") && !isQuantity("80GB")',
     "isQuantity tells what would be one.", f"{_LIBRARY}quantity"),
    ("capacity-of-another-domain",
     'device.capacity["other.example.com"].bandwidth.isLessThan(quantity("11G"))',
     "Capacities are found by domain and name, too.", _DEVICE_API),
    ("capacity-that-is-not-there", f"{_CAPACITY}.missing.isInteger()",
     "To read a capacity that is not there is an error.", _DEVICE_API),
    ("starts-with", f'{_OWN}.model.startsWith("A100")', "Strings have startsWith.", LANGUAGE),
    ("matches", f'{_OWN}.model.matches("^A[0-9]+-")', "matches() finds a regular expression.",
     LANGUAGE),
    ("matches-part", f'{_OWN}.model.matches("SXM")', "It need not match the whole string.",
     LANGUAGE),
    ("matches-lookahead", f'{_OWN}.model.matches("A(?=1)")',
     "Regular expressions are RE2's, which have no lookahead.", LANGUAGE),
    ("lower-ascii", f'{_OWN}.model.lowerAscii().contains("sxm4")', "Strings have lowerAscii.",
     f"{_LIBRARY}(strings)"),
    ("split", f'{_OWN}.model.split("-")[2] == "80GB"', "Strings have split.",
     f"{_LIBRARY}(strings)"),
    ("substring", f'{_OWN}.model.substring(0, 4) == "A100"', "Strings have substring.",
     f"{_LIBRARY}(strings)"),
    ("replace", f'{_OWN}.model.replace("-", "") == "A100SXM480GB"', "Strings have replace.",
     f"{_LIBRARY}(strings)"),
    ("find", f'{_OWN}.model.find("[0-9]+GB") == "80GB"', "find() gives the first match.",
     f"{_LIBRARY}regex"),
    ("string-index-out-of-range", f'{_OWN}.model.charAt(99) == ""',
     "A place beyond the string is an error.", f"{_LIBRARY}(strings)"),
    ("string-of-int", f'string({_OWN}.index) == "3"', "An int becomes a string.", LANGUAGE),
    ("int-of-string", 'int("80") == 80', "A string becomes an int.", LANGUAGE),
    ("int-of-no-number", 'int("80GB") == 80', "A constant that is none does not compile.",
     LANGUAGE),
    ("size-of-string", f"size({_OWN}.type) == 3", "size() counts characters.", LANGUAGE),
    ("size-of-umlaut", "size('\u00fc') == 1", "A character may be two bytes.", LANGUAGE),
    ("exists", f'["gpu", "nic"].exists(t, {_OWN}.type == t)', "Lists have exists().", LANGUAGE),
    ("all", f'{_OWN}.all(name, name != "missing")', "all() goes through the names of a map.",
     LANGUAGE),
    ("exists-one", '["a", "b"].exists_one(t, t == "a")', "exists_one() wants one.", LANGUAGE),
    ("map-and-filter", "[1, 2, 3].filter(n, n > 1).map(n, n * 2) == [4, 6]",
     "Lists have filter() and map().", LANGUAGE),
    ("list-sum", "[1, 2, 3].sum() == 6", "Kubernetes' lists have sum().", f"{_LIBRARY}lists"),
    ("list-is-sorted", "[1, 2, 3].isSorted()", "Kubernetes' lists have isSorted().",
     f"{_LIBRARY}lists"),
    ("list-index-of", "[1, 2, 3].indexOf(2) == 1", "Kubernetes' lists have indexOf().",
     f"{_LIBRARY}lists"),
    ("ip", 'ip("10.0.0.1").family() == 4', "Addresses are a type.", f"{_LIBRARY}ip"),
    ("cidr", 'cidr("10.0.0.0/8").containsIP("10.1.2.3")', "Networks are a type.",
     f"{_LIBRARY}cidr"),
    ("url", 'url("https://example.com/a").getHost() == "example.com"', "URLs are a type.",
     f"{_LIBRARY}urls"),
    ("conditional", f'({_OWN}.ecc ? "on" : "off") == "on"', "A condition chooses a value.",
     LANGUAGE),
    ("conditional-error", f'({_OWN}.ecc ? "on" : {_OWN}.missing) == "on"',
     "The value that is not chosen is not looked at.", LANGUAGE),
    ("cel-bind", f'cel.bind(d, {_OWN}, d.type == "gpu" && d.index == 3)',
     "cel.bind names a value.", f"{_LIBRARY}(cel.bind)"),
    ("nan", "double('NaN') == double('NaN')", "Not a number equals nothing.", LANGUAGE),
    ("duration", 'duration("1h") == duration("60m")', "Durations are a type.", LANGUAGE),
    ("bytes", "b'a' == bytes('a')", "Bytes are a type.", LANGUAGE),
    ("null", "device.driver == null", "A string is not null: it does not compile.", LANGUAGE),
    ("unknown-field", "device.name == 'gpu-0'", "A device has no name here: it does not compile.",
     _DEVICE_API),
    ("unknown-function", "device.driver.startswith('dra')", "It does not compile.", LANGUAGE),
    ("string-concatenation", f'{_OWN}.type + "-" + {_OWN}.model == "gpu-A100-SXM4-80GB"',
     "Strings are added.", LANGUAGE),
    ("escapes", r"'\x41\u0042\103' == 'ABC'", "Strings have escapes.", LANGUAGE),
    ("raw-string", r"r'\d' == '\\d'", "A raw string has none.", LANGUAGE),
    ("comment", "true // until the end of the line", "A comment ends an expression.", LANGUAGE),
    ("list-of-two-types", "[1, 2.0] == [1.0, 2]",
     "Elements of a list have one type: it does not compile.", LANGUAGE),
    ("map-literal", '{"a": 1}.a == 1', "A map's key is a field, too.", LANGUAGE),
    ("math-greatest", "math.greatest(1, 3) == 3", "math is not there: it does not compile.",
     f"{_LIBRARY}(math)"),
    ("sets", "sets.contains([1, 2], [1])", "sets is there.", f"{_LIBRARY}sets"),
    ("format", "'%d GPUs'.format([2]) == '2 GPUs'", "Strings have format().",
     f"{_LIBRARY}(strings)"),
    ("two-variable-comprehension", '{"a": 1}.all(k, v, v == 1)',
     "A map's names and values are gone through together.", f"{_LIBRARY}(two variables)"),
    ("quantity-less-than-a-text", f'{_CAPACITY}.memory.isLessThan("90Gi")',
     "A text is no quantity: it does not compile.", f"{_LIBRARY}quantity"),
)  # fmt: skip
"""Id, expression, sentence, source."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the file; 1 where the reference answers otherwise than Kubernetes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--oracles", type=Path, default=Path("build/oracle"))
    options = parser.parse_args(arguments)
    programs = {
        minor: open_upstream(options.oracles / f"celoracle-{minor}")
        for minor in MINORS
        if (options.oracles / f"celoracle-{minor}").exists()
    }
    vectors = [*make_vectors(programs)]
    for program in programs.values():
        program.close()
    wrong = [(vector.id, minor) for vector in vectors for minor in differences(vector)]
    for identifier, minor in wrong:
        sys.stdout.write(f"{identifier}: the reference answers otherwise for {minor}\n")
    text = "".join(vector.to_line() for vector in vectors)
    SELECTORS.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(vectors)} vectors, answered by {', '.join(programs)}\n")
    return 1 if wrong else 0


def make_vectors(programs: Mapping[str, Upstream]) -> Iterator[SelectorVector]:
    """Ask the programs of all minors about each row."""
    for identifier, expression, sentence, source in ROWS:
        question = {"id": identifier, "expression": expression, "device": DEVICE}
        expected = {minor: answer_of(ask(item, question)) for minor, item in programs.items()}
        yield SelectorVector(
            id=identifier,
            contract="cel/v1",
            sentence=sentence,
            source=source,
            question=question,
            expected=expected,
        )


def answer_of(line: Json) -> Json:
    """What of an answer is kept: match, error or compileError, and the cost of what compiles."""
    kept = ("match", "error", "compileError", "cost", "maxCost")
    return {name: line[name] for name in kept if name in line}


def differences(vector: SelectorVector) -> list[str]:
    """The minors for which the reference gives another answer.

    It does not measure what an evaluation costs, and makes no suggestions for names.
    """
    return [
        minor
        for minor, expected in vector.expected.items()
        if _comparable(json.loads(answer_cel(json.dumps(vector.question), kubernetes=minor)))
        != _comparable(expected)
    ]


def _comparable(answer: Json) -> Json:
    kept = {name: value for name, value in answer_of(answer).items() if name != "cost"}
    if "compileError" in kept:
        kept["compileError"] = _SUGGESTION.sub("", kept["compileError"])
    return kept


if __name__ == "__main__":
    sys.exit(main())
