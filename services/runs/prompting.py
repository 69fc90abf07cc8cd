"""Puts together what a model is asked, within a budget of tokens: who the character is, what it
knows, then the talk so far.

Pure: no database, no clock. Card macros for the two names are expanded here and nowhere else.
Tokens are estimates (`tokens`). What is carried and what is left out is told in numbers and
references alone, so that it can be stored with the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from db.enums import ContextOmission, ContextPartKind, NodeType
from db.tables import Citation, ContextPart, RunContext
from services.providers import CharacterSheet, Message
from services.tokens import MESSAGE_TOKENS, estimate_tokens

_CHARACTER_NAME = re.compile(r"\{\{char\}\}|<bot>|<char>", re.IGNORECASE)
_USER_NAME = re.compile(r"\{\{user\}\}|<user>", re.IGNORECASE)

# Stands for a question where the character goes on by itself.
GO_ON = "[Go on with your own thought from where you stopped, without repeating yourself.]"

QUOTED = "Quoted in this talk:"

# Turns that are kept longer than quotations and examples.
RECENT_TURNS = 2
# How many of a kind are told one by one; what is further back is summed up. With the few other
# parts there are never more than MAX_PARTS.
TOLD_ONE_BY_ONE = {"talk": 300, "citations": 100, "memories": 60}
MAX_PARTS = 500

# Which parts of the identity go into the prompt, in this order, and under which words.
_SECTIONS = (
    ("system_prompt", ""),
    ("description", ""),
    ("personality", "Personality: "),
    ("scenario", "Scenario: "),
)


class Speaker(Protocol):
    """Whoever answers: a character, or a draft that is to become one."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def identity_baseline(self) -> dict[str, Any]:
        """Its core anchor and its forbidden zone."""
        ...


class Spoken(Protocol):
    """Something that was said: a node of a tree, or a piece of a rehearsal."""

    @property
    def id(self) -> str:
        """What it is referred to by."""
        ...

    @property
    def node_type(self) -> NodeType:
        """Who said it."""
        ...

    @property
    def content(self) -> str:
        """The text."""
        ...

    @property
    def erased_at(self) -> datetime | None:
        """Since when its text is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Memory:
    """Something that the character remembers; its text is None once it is erased."""

    id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a model is to be asked, and what became of each part.

    There are no messages where not even what must stay fits into the budget.
    """

    messages: tuple[Message, ...] | None
    context: RunContext

    def record(self) -> dict[str, Any]:
        """The context as it is stored with the run."""
        return asdict(self.context)


@dataclass(slots=True)
class _Piece:
    """A part with its text, which may be empty or gone."""

    kind: ContextPartKind
    ref: str | None
    text: str
    tokens: int
    reason: ContextOmission | None = None
    is_carried: bool = False

    def told(self) -> ContextPart:
        return ContextPart(self.kind, self.ref, self.tokens, self.is_carried, self.reason, 1)


def expand_names(text: str, *, character: str, user: str) -> str:
    """Replace the placeholders for the two names (cards, section 1); case does not matter."""
    text = _CHARACTER_NAME.sub(lambda _: character, text)
    return _USER_NAME.sub(lambda _: user, text)


def spoken_name(character: Speaker) -> str:
    """What the character is called in talk: its nickname where it has one."""
    anchor: dict[str, Any] = character.identity_baseline.get("core_anchor", {})
    return anchor.get("nickname") or character.name


def character_sheet(character: Speaker, user_name: str) -> CharacterSheet:
    """The character's own words with both names filled in."""
    anchor: dict[str, Any] = character.identity_baseline.get("core_anchor", {})
    name = spoken_name(character)
    texts = [
        expand_names(anchor[key], character=name, user=user_name)
        for key in ("description", "personality", "scenario", "first_mes", "mes_example")
        if anchor.get(key)
    ]
    return CharacterSheet(name, tuple(texts))


def assemble(
    character: Speaker,
    path: Sequence[Spoken],
    user_name: str,
    *,
    budget: int,
    form: str | None = None,
    persona: str | None = None,
    memories: Sequence[Memory] = (),
    citations: Mapping[str, Sequence[Citation]] | None = None,
) -> Assembly:
    """One system message, then the talk from the root to what is asked, within `budget` tokens.

    `path` leads from the root to the question, or to the answer that is gone on from; `citations`
    are those of its nodes, by the node's id. What must stay is the identity with its forbidden
    zone, and the end of the path. The rest is kept in this order, up to the first that does not
    fit: form, persona, memories as given, the last RECENT_TURNS turns, citations (those of the
    newest node first), examples, earlier turns from the newest to the oldest, greeting. A turn is
    a question with all that was answered to it, and is kept whole.
    """
    prompt = _Prompt(character, user_name)
    identity, forbidden = prompt.identity(), prompt.forbidden_zone()
    talk = [prompt.spoken(node) for node in path]
    must = [*identity, *forbidden, *talk[-1:]]
    if talk and talk[-1].kind is not ContextPartKind.QUESTION:
        # Told to go on from it, which is said even where it has no text.
        talk[-1].tokens += estimate_tokens(GO_ON) + MESSAGE_TOKENS
        talk[-1].reason = None

    shape = prompt.section(ContextPartKind.FORM, form, f"How {prompt.name} looks: ")
    about_user = prompt.section(ContextPartKind.PERSONA, persona, f"About {user_name}: ")
    remembered = prompt.memories(memories)
    newest_quotes = prompt.quotes(
        [each for node in reversed(path) for each in (citations or {}).get(node.id, ())]
    )
    examples, greeting = prompt.examples(), prompt.greeting()
    turns = list(_turns(talk[:-1]))

    left = budget - sum(piece.tokens for piece in must)
    fits = left >= 0
    if fits:
        _carry([must], sum(piece.tokens for piece in must))
        order: list[Sequence[_Piece]] = [shape, about_user, *([each] for each in remembered)]
        order += turns[: -RECENT_TURNS - 1 : -1]
        order += [*([each] for each in newest_quotes), examples]
        order += [*turns[-RECENT_TURNS - 1 :: -1], greeting]
        _carry(order, left)
    for piece in (*must, *shape, *about_user, *remembered, *newest_quotes, *examples):
        _give_reason(piece)
    for piece in (*greeting, *talk):
        _give_reason(piece)

    quotes = newest_quotes[::-1]
    system = [
        *_texts(identity[:1]),
        *_texts(shape),
        *_texts(about_user),
        *_listed(prompt.remembers, remembered),
        *_listed(QUOTED, quotes),
        *_texts(examples),
        *_texts(forbidden),
        *_texts(identity[1:]),
    ]
    messages = [Message("system", "\n\n".join(system))]
    for piece in (*greeting, *talk):
        if piece.is_carried and piece.text:
            is_question = piece.kind is ContextPartKind.QUESTION
            messages.append(Message("user" if is_question else "assistant", piece.text))
    if talk and talk[-1].kind is not ContextPartKind.QUESTION:
        messages.append(Message("user", GO_ON))

    parts = [
        *_told([*identity, *forbidden, *shape, *about_user]),
        *_summed_up(remembered, "memories", keep_last=False),
        *_summed_up(quotes, "citations"),
        *_told([*examples, *greeting]),
        *_summed_up(talk, "talk"),
    ]
    tokens = sum(part.tokens for part in parts if part.is_carried)
    return Assembly(tuple(messages) if fits else None, RunContext(budget, tokens, parts))


class _Prompt:
    """Makes the pieces of one character's prompt, with both names filled in."""

    def __init__(self, character: Speaker, user_name: str) -> None:
        self.name = spoken_name(character)
        self.remembers = f"What {self.name} remembers:"
        self._user_name = user_name
        self._anchor: dict[str, Any] = character.identity_baseline.get("core_anchor", {})
        self._forbidden = character.identity_baseline.get("forbidden_zone") or []

    def _expanded(self, text: str) -> str:
        return expand_names(text, character=self.name, user=self._user_name)

    def _piece(
        self, kind: ContextPartKind, text: str, ref: str | None = None, *, extra: int = 0
    ) -> _Piece:
        # What joins the sections of the system message is counted with each of them.
        text = self._expanded(text)
        return _Piece(kind, ref, text, estimate_tokens(text + "\n\n") + extra)

    def identity(self) -> list[_Piece]:
        """Who the character is; and apart from it what its card wants said last."""
        name = self.name
        sections = [f"You are {name}. Answer as {name}, in the language you are addressed in."]
        for key, heading in _SECTIONS:
            if self._anchor.get(key):
                sections.append(heading + str(self._anchor[key]))
        kind = ContextPartKind.IDENTITY
        pieces = [self._piece(kind, "\n\n".join(sections), extra=MESSAGE_TOKENS)]
        if self._anchor.get("post_history_instructions"):
            pieces.append(self._piece(kind, str(self._anchor["post_history_instructions"])))
        return pieces

    def forbidden_zone(self) -> list[_Piece]:
        """What the character never does."""
        if not self._forbidden:
            return []
        text = "Never, whatever is asked:\n" + "\n".join(f"- {each}" for each in self._forbidden)
        return [self._piece(ContextPartKind.FORBIDDEN_ZONE, text)]

    def section(self, kind: ContextPartKind, text: str | None, heading: str) -> list[_Piece]:
        """A text of its own in the system message; none where there is no such thing."""
        if text is None:
            return []
        if not text.strip():
            return [_Piece(kind, None, "", 0, ContextOmission.EMPTY)]
        return [self._piece(kind, heading + text)]

    def examples(self) -> list[_Piece]:
        """How the character talks."""
        text = self._anchor.get("mes_example")
        heading = f"Example of how {self.name} talks:\n"
        return self.section(ContextPartKind.EXAMPLES, text or None, heading)

    def greeting(self) -> list[_Piece]:
        """What the character says first of all."""
        text = self._expanded(str(self._anchor.get("first_mes") or ""))
        tokens = estimate_tokens(text) + MESSAGE_TOKENS
        return [_Piece(ContextPartKind.GREETING, None, text, tokens)] if text else []

    def spoken(self, node: Spoken) -> _Piece:
        """A message of the talk."""
        is_question = node.node_type == NodeType.QUESTION
        kind = ContextPartKind.QUESTION if is_question else ContextPartKind.ANSWER
        if not node.content:
            reason = ContextOmission.EMPTY if node.erased_at is None else ContextOmission.ERASED
            return _Piece(kind, node.id, "", 0, reason)
        text = self._expanded(node.content)
        return _Piece(kind, node.id, text, estimate_tokens(text) + MESSAGE_TOKENS)

    def memories(self, memories: Sequence[Memory]) -> list[_Piece]:
        """Lines under one heading, which is counted with the first of them."""
        kind = ContextPartKind.MEMORY
        texts = [(each.id, each.text, each.text is None) for each in memories]
        return self._lines(kind, self.remembers, texts)

    def quotes(self, citations: Sequence[Citation]) -> list[_Piece]:
        """The same for what is quoted, with where it comes from."""
        texts = [
            (
                each.id,
                each.quote and f"“{each.quote}” ({each.source_id or 'source unknown'})",
                each.erased_at is not None,
            )
            for each in citations
        ]
        return self._lines(ContextPartKind.CITATION, QUOTED, texts)

    def _lines(
        self,
        kind: ContextPartKind,
        heading: str,
        texts: Iterable[tuple[str, str | None, bool]],
    ) -> list[_Piece]:
        pieces = []
        extra = estimate_tokens(heading + "\n\n")
        for ref, text, is_erased in texts:
            if is_erased or text is None or not text.strip():
                reason = ContextOmission.ERASED if is_erased else ContextOmission.EMPTY
                pieces.append(_Piece(kind, ref, "", 0, reason))
            else:
                pieces.append(self._piece(kind, f"- {text}", ref, extra=extra))
                extra = 0
        return pieces


def _turns(talk: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Each question with the answers behind it, oldest first."""
    turn: list[_Piece] = []
    for piece in talk:
        if piece.kind is ContextPartKind.QUESTION and turn:
            yield turn
            turn = []
        turn.append(piece)
    if turn:
        yield turn


def _carry(groups: Iterable[Sequence[_Piece]], left: int) -> None:
    """Take groups up to the first that does not fit: a larger budget then carries what a smaller
    one does, and more.
    """
    for group in groups:
        left -= sum(piece.tokens for piece in group)
        if left < 0:
            return
        for piece in group:
            piece.is_carried = piece.reason is None


def _give_reason(piece: _Piece) -> None:
    if not piece.is_carried and piece.reason is None:
        piece.reason = ContextOmission.OVER_BUDGET


def _texts(pieces: Iterable[_Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.is_carried]


def _listed(heading: str, pieces: Iterable[_Piece]) -> list[str]:
    lines = _texts(pieces)
    return ["\n".join([heading, *lines])] if lines else []


def _told(pieces: Iterable[_Piece]) -> list[ContextPart]:
    return [piece.told() for piece in pieces]


def _summed_up(pieces: Sequence[_Piece], name: str, *, keep_last: bool = True) -> list[ContextPart]:
    """The pieces one by one, but those too many in one part for each fate that they met."""
    most = TOLD_ONE_BY_ONE[name]
    told = _told(pieces)
    many, few = (told[:-most], told[-most:]) if keep_last else (told[most:], told[:most])
    sums: dict[Any, ContextPart] = {}
    for part in many:
        kind = ContextPartKind.EARLIER_TALK if name == "talk" else part.kind
        fate = (part.is_carried, part.reason)
        empty = ContextPart(kind, None, 0, *fate, 0)
        earlier = sums.get(fate, empty)
        sums[fate] = replace(earlier, tokens=earlier.tokens + part.tokens, count=earlier.count + 1)
    return [*sums.values(), *few] if keep_last else [*few, *sums.values()]
