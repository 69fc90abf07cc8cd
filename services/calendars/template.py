"""A small part of Liquid: output with filters, `if`, `elsif`, `else` and `unless`.

There are no loops, includes or assignments, and every value is bounded, so a template takes time in
proportion to its length, whatever it says. It is turned into functions once.
Source: spec aventuras, calendar systems, display.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Of one value, and of all that a template writes.
MAX_WRITTEN = 500
MAX_NUMBER = 10**18
MAX_NESTED = 20
MAX_FILTERS = 20

Scope = Mapping[str, Any]
_Value = Callable[[Scope], Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?[0-9]+(?:\.[0-9]+)?)|(?P<text>"[^"]*"|'[^']*')|(?P<word>[^\W\d]\w*)"""
    r"""|(?P<mark>==|!=|<>|<=|>=|<|>|\||:|,))"""
)
_WORDS = {"true": True, "false": False, "nil": None, "null": None}


class TemplateFault(ValueError):
    """The template cannot be read, or not with these values; the message says why."""


def _number(value: Any) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise TemplateFault("A filter or comparison needs a number.")


def _whole(value: Any, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    raise TemplateFault(f"A filter needs a whole number from 0 to {most}.")


def _divisor(value: Any) -> int | float:
    if not _number(value):
        raise TemplateFault("A number is divided by 0.")
    return _number(value)


def _divided(value: Any, by: Any) -> int | float:
    # As Liquid does: whole numbers stay whole.
    number, divisor = _number(value), _divisor(by)
    both_whole = isinstance(number, int) and isinstance(divisor, int)
    return number // divisor if both_whole else number / divisor


def _rounded(value: Any, digits: Any = 0) -> int | float:
    places = _whole(digits, 10)
    return round(_number(value), places) if places else round(_number(value))


# Each filter with how many arguments it may have.
_FILTERS: dict[str, tuple[Callable[..., Any], range]] = {
    "pad": (lambda value, width=2: _text(value).zfill(_whole(width, 50)), range(2)),
    "plus": (lambda value, other: _number(value) + _number(other), range(1, 2)),
    "minus": (lambda value, other: _number(value) - _number(other), range(1, 2)),
    "times": (lambda value, other: _number(value) * _number(other), range(1, 2)),
    "divided_by": (_divided, range(1, 2)),
    "divide": (lambda value, by: _number(value) / _divisor(by), range(1, 2)),
    "modulo": (lambda value, by: _number(value) % _divisor(by), range(1, 2)),
    "round": (_rounded, range(2)),
    "floor": (lambda value: math.floor(_number(value)), range(1)),
    "ceil": (lambda value: math.ceil(_number(value)), range(1)),
    "abs": (lambda value: abs(_number(value)), range(1)),
    "at_least": (lambda value, other: max(_number(value), _number(other)), range(1, 2)),
    "at_most": (lambda value, other: min(_number(value), _number(other)), range(1, 2)),
    "append": (lambda value, other: _text(value) + _text(other), range(1, 2)),
    "prepend": (lambda value, other: _text(other) + _text(value), range(1, 2)),
    "upcase": (lambda value: _text(value).upper(), range(1)),
    "downcase": (lambda value: _text(value).lower(), range(1)),
    "capitalize": (lambda value: _text(value).capitalize(), range(1)),
    "default": (
        lambda value, other: other if value in (None, "") or value is False else value,
        range(1, 2),
    ),
}


def _contains(value: Any, other: Any) -> bool:
    return value is not None and other is not None and _text(other) in _text(value)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def ordered(value: Any, other: Any) -> bool:
        if value is None or other is None:
            return False
        return compare(_number(value), _number(other))

    return ordered


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda value, other: value == other,
    "!=": lambda value, other: value != other,
    "<>": lambda value, other: value != other,
    "<": _ordered(lambda value, other: value < other),
    ">": _ordered(lambda value, other: value > other),
    "<=": _ordered(lambda value, other: value <= other),
    ">=": _ordered(lambda value, other: value >= other),
    "contains": _contains,
}


def _is_true(value: Any) -> bool:
    # Of all values only nil and false are no; 0 is a yes.
    return value is not None and value is not False


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    # As people write it: 41.0 is 41.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        if len(value) > MAX_WRITTEN:
            raise TemplateFault(f"A text has more than {MAX_WRITTEN} characters.")
    elif value is not None and not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise TemplateFault("A number is too large.")
    return value


@dataclass(slots=True)
class _Block:
    """Texts and outputs, one after another; a choice is one that picks a further block."""

    parts: list[str | Callable[[Scope], str]] = field(default_factory=list)

    def written(self, scope: Scope) -> str:
        return "".join([part if isinstance(part, str) else part(scope) for part in self.parts])


@dataclass(slots=True)
class _Choice:
    """The branches of an `if` in order; a branch without condition is `else`."""

    tag: str
    branches: list[tuple[_Value | None, _Block]]

    def written(self, scope: Scope) -> str:
        for condition, block in self.branches:
            if condition is None or condition(scope):
                return block.written(scope)
        return ""


class Template:
    """A template that was read; raises TemplateFault where it cannot be.

    `names` are all that it may speak of.
    """

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self._names = names
        self._root = _Block()
        self._open: list[_Choice] = []
        self._block = self._root
        self._read(text)
        if self._open:
            raise TemplateFault(f"An {self._open[-1].tag} is not ended.")

    def render(self, scope: Scope) -> str:
        """What it writes; raises TemplateFault."""
        try:
            written = self._root.written(scope)
        except (ArithmeticError, ValueError, TypeError) as fault:
            said = str(fault) if isinstance(fault, TemplateFault) else "A filter has no answer."
            raise TemplateFault(said) from None
        if len(written) > MAX_WRITTEN:
            raise TemplateFault(f"It writes more than {MAX_WRITTEN} characters.")
        return written

    def _read(self, text: str) -> None:
        place, is_trimmed = 0, False
        while True:
            begin = min(
                (each for each in (text.find("{{", place), text.find("{%", place)) if each >= 0),
                default=len(text),
            )
            plain = text[place:begin]
            plain = plain.lstrip() if is_trimmed else plain
            if begin == len(text):
                self._block.parts.append(plain)
                return
            is_tag = text[begin + 1] == "%"
            end = text.find("%}" if is_tag else "}}", begin + 2)
            if end < 0:
                raise TemplateFault("A brace is not closed.")
            inner = text[begin + 2 : end]
            self._block.parts.append(plain.rstrip() if inner.startswith("-") else plain)
            is_trimmed = inner.endswith("-")
            inner = inner.removeprefix("-").removesuffix("-")
            if is_tag:
                self._read_tag(inner.strip())
            else:
                self._read_output(inner)
            place = end + 2

    def _read_output(self, inner: str) -> None:
        tokens = _Tokens(inner, self._names)
        value = tokens.filtered()
        tokens.end()
        self._block.parts.append(lambda scope: _text(value(scope)))

    def _read_tag(self, inner: str) -> None:
        tag, _, rest = inner.partition(" ")
        if tag in ("if", "unless"):
            if len(self._open) == MAX_NESTED:
                raise TemplateFault(f"Conditions are more than {MAX_NESTED} deep.")
            choice = _Choice(tag, [])
            self._block.parts.append(choice.written)
            self._open.append(choice)
            self._branch(rest, is_turned=tag == "unless")
        elif tag in ("elsif", "else") and self._open and self._open[-1].branches[-1][0]:
            self._branch(rest if tag == "elsif" else None)
        elif self._open and tag == f"end{self._open[-1].tag}":
            self._open.pop()
            self._block = self._open[-1].branches[-1][1] if self._open else self._root
        else:
            raise TemplateFault("A tag is unknown, or stands where it cannot.")

    def _branch(self, condition: str | None, *, is_turned: bool = False) -> None:
        test = None
        if condition is not None:
            tokens = _Tokens(condition, self._names)
            test = tokens.condition(is_turned=is_turned)
            tokens.end()
        self._block = _Block()
        self._open[-1].branches.append((test, self._block))


class _Tokens:
    """What stands in one pair of braces, read from left to right."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self._names = names
        self._tokens: list[tuple[str, str]] = []
        self._place = 0
        text = text.rstrip()
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None or found.lastgroup is None:
                raise TemplateFault("Something between braces cannot be read.")
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()

    def end(self) -> None:
        """Raises TemplateFault where something is left."""
        if self._place < len(self._tokens):
            raise TemplateFault("Something between braces is too much.")

    def filtered(self) -> _Value:
        """A value and the filters that it goes through."""
        value = self._value()
        for _ in range(MAX_FILTERS):
            if not self._taken("|"):
                break
            kind, name = self._next()
            if kind != "word" or name not in _FILTERS:
                raise TemplateFault("There is no such filter.")
            arguments: list[_Value] = []
            if self._taken(":"):
                arguments.append(self._value())
                while self._taken(","):
                    arguments.append(self._value())
            function, counts = _FILTERS[name]
            if len(arguments) not in counts:
                raise TemplateFault(f"{name} has too many arguments, or too few.")
            value = _applied(function, value, arguments)
        return value

    def condition(self, *, is_turned: bool) -> _Value:
        """Comparisons joined by `and` and `or`, which Liquid reads from the right."""
        tests = [self._comparison()]
        joints: list[bool] = []
        while self._place < len(self._tokens) and self._tokens[self._place][1] in ("and", "or"):
            joints.append(self._next()[1] == "and")
            tests.append(self._comparison())

        if not joints and not is_turned:
            return tests[0]

        def holds(scope: Scope) -> bool:
            found = tests[-1](scope)
            for is_and, test in zip(reversed(joints), reversed(tests[:-1]), strict=True):
                found = (test(scope) and found) if is_and else (test(scope) or found)
            return bool(found) != is_turned

        return holds

    def _comparison(self) -> _Value:
        value = self._value()
        if self._place < len(self._tokens):
            compare = _COMPARISONS.get(self._tokens[self._place][1])
            if compare is not None and self._tokens[self._place][0] in ("mark", "word"):
                self._place += 1
                other = self._value()
                return lambda scope: compare(value(scope), other(scope))
        return lambda scope: _is_true(value(scope))

    def _value(self) -> _Value:
        kind, text = self._next()
        if kind == "word" and text in self._names:
            return lambda scope: scope[text]
        if kind == "word" and text in _WORDS:
            constant: Any = _WORDS[text]
        elif kind == "text":
            constant = text[1:-1]
        elif kind == "number" and len(text) <= 20:
            constant = _bounded(float(text) if "." in text else int(text))
        else:
            raise TemplateFault("A value is unknown: name tiers, texts in quotes or numbers.")
        return lambda scope: constant

    def _next(self) -> tuple[str, str]:
        if self._place == len(self._tokens):
            raise TemplateFault("Something between braces is missing.")
        self._place += 1
        return self._tokens[self._place - 1]

    def _taken(self, mark: str) -> bool:
        is_there = self._place < len(self._tokens) and self._tokens[self._place] == ("mark", mark)
        self._place += is_there
        return is_there


def _applied(function: Callable[..., Any], value: _Value, arguments: list[_Value]) -> _Value:
    return lambda scope: _bounded(function(value(scope), *[each(scope) for each in arguments]))
