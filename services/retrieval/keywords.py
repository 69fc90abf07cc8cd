"""Keywords in a text: whole words, whatever the case; in scripts without blanks, anywhere.

Source: retrieval, section 8. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from db.enums import SearchKind

# Ideographs and their marks, kana, hangul: texts in them have no blanks between words.
_WITHOUT_BLANKS = re.compile(
    "[\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]{2,}"
)
_LETTER = re.compile(r"\w")


def folded(text: str) -> str:
    """A text as it is compared."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


class Surface:
    """A text in which keywords are looked for."""

    __slots__ = ("_text",)

    def __init__(self, *texts: str) -> None:
        self._text = folded("\n".join(texts))

    def has(self, keyword: str) -> bool:
        """Whether a keyword stands in it. Signs in a keyword mean themselves."""
        wanted = folded(keyword).strip()
        if not wanted:
            return False
        if _WITHOUT_BLANKS.fullmatch(wanted):
            return wanted in self._text
        at = self._text.find(wanted)
        while at >= 0:
            if not self._is_letter(at - 1) and not self._is_letter(at + len(wanted)):
                return True
            at = self._text.find(wanted, at + 1)
        return False

    def has_any(self, keywords: Iterable[str]) -> bool:
        """Whether one of these stands in it."""
        return any(map(self.has, keywords))

    def _is_letter(self, at: int) -> bool:
        return 0 <= at < len(self._text) and _LETTER.match(self._text[at]) is not None


@dataclass(frozen=True, slots=True)
class Keyed:
    """A row that a keyword can seat."""

    kind: SearchKind
    id: str
    name: str
    keywords: tuple[str, ...]
    priority: int
    text: str
    tokens: int
    # How many texts of other seated rows lie between the scanned entries and this one.
    depth: int = 0


def injected(
    rows: Iterable[Keyed],
    surface: Surface,
    budgets: Mapping[SearchKind, float],
    share: float,
    depth: int,
) -> list[Keyed]:
    """The rows that keywords seat, in order: those with the higher priority first, then by name.

    They take `share` of the budget of their kind at most. Then the texts of those that were seated
    are scanned, `depth` times; what they find draws on the same share. What does not fit is left
    out: it still competes by its score.
    """
    left = {kind: int(share * budget) for kind, budget in budgets.items()}
    waiting = sorted(rows, key=lambda each: (-each.priority, each.name, each.id))
    seated: list[Keyed] = []
    for round_ in range(depth + 1):
        hits = [each for each in waiting if surface.has_any(each.keywords)]
        found = _fitting(hits, left)
        seated += [replace(each, depth=round_) for each in found]
        # Who was hit and did not fit is not hit again.
        gone = {each.id for each in hits}
        waiting = [each for each in waiting if each.id not in gone]
        if not found or not waiting:
            break
        surface = Surface(*(each.text for each in found))
    return seated


def _fitting(rows: Sequence[Keyed], left: dict[SearchKind, int]) -> list[Keyed]:
    found = []
    for each in rows:
        if each.tokens <= left.get(each.kind, 0):
            left[each.kind] -= each.tokens
            found.append(each)
    return found


def names_within(names: Iterable[str], within: Surface) -> Callable[[Iterable[str]], bool]:
    """Tells of texts whether one of these names stands in them and in `within` as well."""
    heard = [each for each in names if within.has(each)]

    def are_named(texts: Iterable[str]) -> bool:
        surface = Surface(*texts)
        return surface.has_any(heard)

    return are_named
