from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.enums import (
    CharacterStatus,
    CitationTarget,
    ContextOmission,
    ContextPartKind,
    NodeStatus,
    NodeType,
    Origin,
    Realm,
)
from db.tables import Character, Citation, ContextPart, TreeNode
from services.providers import Message
from services.runs.prompting import (
    GO_ON,
    MAX_PARTS,
    Assembly,
    Memory,
    assemble,
    character_sheet,
    expand_names,
)
from services.tokens import MESSAGE_TOKENS, estimate_tokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLENTY = 1_000_000
OVER, EMPTY, ERASED = ContextOmission.OVER_BUDGET, ContextOmission.EMPTY, ContextOmission.ERASED


def character(*forbidden: str, **anchor: Any) -> Character:
    return Character(
        id="soul_1",
        custodian_user_id="user_1",
        embryo_draft_id=None,
        name="Rook",
        origin=Origin.ORIGINAL,
        status=CharacterStatus.ACTIVE,
        identity_baseline={
            "core_anchor": {"name": "Rook", **anchor},
            "forbidden_zone": list(forbidden),
        },
        created_at=NOW,
        updated_at=None,
        version=1,
    )


def node(kind: NodeType, content: str, id: str = "node_1", **values: Any) -> TreeNode:
    return TreeNode(
        id=id,
        tree_id="tree_1",
        node_type=kind,
        status=NodeStatus.SOLIDIFIED,
        realm=Realm.REALITY,
        content=content,
        content_version=1,
        created_at=NOW,
        **values,
    )


def citation(id: str, quote: str, source: str | None = "a book", **values: Any) -> Citation:
    return Citation(
        id=id,
        node_id="",
        target_kind=CitationTarget.ATTACHMENT,
        target={},
        quote=quote,
        source_id=source,
        created_at=NOW,
        **values,
    )


def talk(*texts: str) -> list[TreeNode]:
    """Questions and answers in turn, which are called q0, a0, q1, ..."""
    kinds = (NodeType.QUESTION, NodeType.CANDIDATE_ANSWER)
    return [node(kinds[n % 2], text, f"{'qa'[n % 2]}{n // 2}") for n, text in enumerate(texts)]


def build_messages(
    character: Character, path: Sequence[TreeNode], user: str
) -> tuple[Message, ...]:
    messages = assemble(character, path, user, budget=PLENTY).messages
    assert messages is not None
    return messages


def told(assembly: Assembly) -> list[tuple[Any, ...]]:
    """What is said of each part, without its size."""
    return [
        (part.kind.name, part.ref, part.is_carried, part.reason, part.count)
        for part in assembly.context.parts
    ]


def test_the_identity_comes_first_and_the_talk_in_its_order() -> None:
    messages = build_messages(
        character(
            "{{char}} never leaves the bridge.",
            description="{{char}} guards it from {{User}}.",
            first_mes="Halt, <USER>.",
        ),
        [
            node(NodeType.QUESTION, "May I pass?"),
            node(NodeType.CANDIDATE_ANSWER, "No, {{user}}."),
            node(NodeType.QUESTION, "And now?"),
        ],
        "Ada",
    )
    assert messages == (
        Message(
            "system",
            "You are Rook. Answer as Rook, in the language you are addressed in.\n\n"
            "Rook guards it from Ada.\n\n"
            "Never, whatever is asked:\n- Rook never leaves the bridge.",
        ),
        Message("assistant", "Halt, Ada."),
        Message("user", "May I pass?"),
        Message("assistant", "No, Ada."),
        Message("user", "And now?"),
    )


def test_a_nickname_is_what_the_character_is_called() -> None:
    messages = build_messages(character(nickname="Ro"), [], "Ada")
    assert messages[0].text.startswith("You are Ro. Answer as Ro,")
    assert character_sheet(character(nickname="Ro", description="{{char}}"), "Ada").texts == ("Ro",)


def test_empty_answers_are_left_out() -> None:
    path = [
        node(NodeType.QUESTION, "?"),
        node(NodeType.CANDIDATE_ANSWER, ""),
        node(NodeType.QUESTION, "!"),
    ]
    messages = build_messages(character(), path, "Ada")
    assert [(each.role, each.text) for each in messages[1:]] == [("user", "?"), ("user", "!")]


def test_a_talk_that_ends_with_an_answer_is_gone_on_from() -> None:
    path = [
        node(NodeType.QUESTION, "May I pass?"),
        node(NodeType.CANDIDATE_ANSWER, "No."),
        node(NodeType.CONTINUED_THOUGHT, "Or perhaps, {{user}}?"),
    ]
    messages = build_messages(character(), path, "Ada")
    assert messages[1:] == (
        Message("user", "May I pass?"),
        Message("assistant", "No."),
        Message("assistant", "Or perhaps, Ada?"),
        Message("user", GO_ON),
    )


def test_names_with_backslashes_are_put_in_as_they_are() -> None:
    text = expand_names("{{char}} and <bot> meet {{user}}", character=r"\1", user=r"a\g<0>")
    assert text == r"\1 and \1 meet a\g<0>"


WHOLE = {
    "form": "A tall shadow.",
    "persona": "{{user}} is a poet.",
    "memories": [Memory("mem_1", "{{user}} paid once."), Memory("mem_2", None)],
    "citations": {
        "q0": [citation("cite_1", "The bridge is old.")],
        "a0": [citation("cite_2", "So am I.", None), citation("cite_3", "", erased_at=NOW)],
    },
}
ROOK = character(
    "Leave the bridge.",
    description="Guards it.",
    mes_example="Halt!",
    first_mes="Who goes there?",
    post_history_instructions="Be brief.",
)
PATH = talk("Me?", "You.", "Why?", "", "Still?")


def test_each_part_has_its_place_in_the_prompt() -> None:
    """Rule R27."""
    assembly = assemble(ROOK, PATH, "Ada", budget=PLENTY, **WHOLE)
    assert assembly.messages is not None
    system, *spoken = assembly.messages
    assert system.text == (
        "You are Rook. Answer as Rook, in the language you are addressed in.\n\n"
        "Guards it.\n\n"
        "How Rook looks: A tall shadow.\n\n"
        "About Ada: Ada is a poet.\n\n"
        "What Rook remembers:\n- Ada paid once.\n\n"
        "Quoted in this talk:\n- “The bridge is old.” (a book)\n- “So am I.” (source unknown)\n\n"
        "Example of how Rook talks:\nHalt!\n\n"
        "Never, whatever is asked:\n- Leave the bridge.\n\n"
        "Be brief."
    )
    assert [(each.role, each.text) for each in spoken] == [
        ("assistant", "Who goes there?"),
        ("user", "Me?"),
        ("assistant", "You."),
        ("user", "Why?"),
        ("user", "Still?"),
    ]
    assert told(assembly) == [
        ("IDENTITY", None, True, None, 1),
        ("IDENTITY", None, True, None, 1),
        ("FORBIDDEN_ZONE", None, True, None, 1),
        ("FORM", None, True, None, 1),
        ("PERSONA", None, True, None, 1),
        ("MEMORY", "mem_1", True, None, 1),
        ("MEMORY", "mem_2", False, ERASED, 1),
        ("CITATION", "cite_1", True, None, 1),
        ("CITATION", "cite_3", False, ERASED, 1),
        ("CITATION", "cite_2", True, None, 1),
        ("EXAMPLES", None, True, None, 1),
        ("GREETING", None, True, None, 1),
        ("QUESTION", "q0", True, None, 1),
        ("ANSWER", "a0", True, None, 1),
        ("QUESTION", "q1", True, None, 1),
        ("ANSWER", "a1", False, EMPTY, 1),
        ("QUESTION", "q2", True, None, 1),
    ]


def test_erased_nodes_and_empty_texts_are_told_apart() -> None:
    path = [
        node(NodeType.QUESTION, "", "q0", erased_at=NOW),
        node(NodeType.CANDIDATE_ANSWER, "", "a0"),
        node(NodeType.QUESTION, "Well?", "q1"),
    ]
    assembly = assemble(character(), path, "Ada", budget=PLENTY, form=" ", memories=[])
    assert told(assembly) == [
        ("IDENTITY", None, True, None, 1),
        ("FORM", None, False, EMPTY, 1),
        ("QUESTION", "q0", False, ERASED, 1),
        ("ANSWER", "a0", False, EMPTY, 1),
        ("QUESTION", "q1", True, None, 1),
    ]


# Everything that can be left out, from what is kept longest to what goes first.
LINE = [
    [("FORM", None)],
    [("PERSONA", None)],
    [("MEMORY", "mem_1")],
    [("MEMORY", "mem_3")],
    [("QUESTION", "q3"), ("ANSWER", "a3")],
    [("QUESTION", "q2"), ("ANSWER", "a2")],
    [("CITATION", "cite_2")],
    [("CITATION", "cite_1")],
    [("EXAMPLES", None)],
    [("QUESTION", "q1"), ("ANSWER", "a1")],
    [("QUESTION", "q0"), ("ANSWER", "a0")],
    [("GREETING", None)],
]
MUST = {("IDENTITY", None), ("FORBIDDEN_ZONE", None), ("QUESTION", "q4")}
LONG = {
    **WHOLE,
    "memories": [Memory("mem_1", "One."), Memory("mem_3", "Three.")],
    "citations": {"q0": [citation("cite_1", "Old.")], "a3": [citation("cite_2", "New.")]},
}
LONG_PATH = talk("Zero?", "0.", "One?", "1.", "Two?", "2.", "Three?", "3.", "Four?")


def carried(assembly: Assembly) -> set[tuple[str, str | None]]:
    return {(part.kind.name, part.ref) for part in assembly.context.parts if part.is_carried}


def test_what_is_left_out_first_is_what_stands_last_in_the_line() -> None:
    """Rule R27. The budget shrinks by what each in turn needs, and by one token too many."""
    whole = assemble(ROOK, LONG_PATH, "Ada", budget=PLENTY, **LONG)
    sizes: dict[tuple[str, str | None], int] = {}
    for part in whole.context.parts:
        name = (part.kind.name, part.ref)
        sizes[name] = sizes.get(name, 0) + part.tokens
    assert carried(whole) == MUST | {each for group in LINE for each in group}
    budget = sum(sizes.values())
    assert whole.context.tokens == budget
    for place in range(len(LINE), -1, -1):
        kept = MUST | {each for group in LINE[:place] for each in group}
        assembly = assemble(ROOK, LONG_PATH, "Ada", budget=budget, **LONG)
        assert carried(assembly) == kept
        assert assembly.context.tokens == budget
        assert {p.reason for p in assembly.context.parts if not p.is_carried} <= {OVER}
        budget -= sum(sizes[each] for each in LINE[place - 1])
    least = sum(sizes[each] for each in MUST)
    for budget in (least - 1, 1, 0):
        assembly = assemble(ROOK, LONG_PATH, "Ada", budget=budget, **LONG)
        assert (assembly.messages, assembly.context.tokens) == (None, 0)
        assert carried(assembly) == set()
        assert {part.reason for part in assembly.context.parts} == {OVER}


def test_what_is_gone_on_from_stays_with_what_tells_to_go_on() -> None:
    """Rule R26."""
    path = talk("Zero?", "0.", "One?", "A thought.")
    whole = assemble(character(), path, "Ada", budget=PLENTY)
    identity, *_, last = whole.context.parts
    least = identity.tokens + last.tokens
    assert (
        least
        == sum(estimate_tokens(text) + MESSAGE_TOKENS for text in ("A thought.", GO_ON))
        + identity.tokens
    )
    messages = assemble(character(), path, "Ada", budget=least).messages
    assert messages is not None
    assert messages[1:] == (Message("assistant", "A thought."), Message("user", GO_ON))
    assert assemble(character(), path, "Ada", budget=least - 1).messages is None


def test_a_long_talk_is_told_in_numbers() -> None:
    """Rule R28. One by one at its end, summed up before that."""
    texts = [f"{number}" for number in range(2_001)]
    path = talk(*texts)
    quotes = {each.id: [citation(f"cite_{each.id}", "Old.")] for each in path}
    memories = [Memory(f"mem_{number}", "Something.") for number in range(200)]
    given: dict[str, Any] = {"citations": quotes, "memories": memories, "form": "Tall."}
    whole = assemble(ROOK, path, "Ada", budget=PLENTY, **given)
    assert len(whole.context.parts) <= MAX_PARTS
    by_kind = {part.kind: part for part in whole.context.parts if part.count > 1}
    assert {kind.name: part.count for kind, part in by_kind.items()} == {
        "MEMORY": 140,
        "CITATION": 1_901,
        "EARLIER_TALK": 1_701,
    }
    assert whole.context.parts[-1].ref == "q1000"
    assert sum(part.count for part in whole.context.parts) == 2_001 * 2 + 200 + 6
    # Some of what is summed up is carried, and some is left out.
    assembly = assemble(ROOK, path, "Ada", budget=whole.context.tokens - 5_000, **given)
    earlier = [p for p in assembly.context.parts if p.kind is ContextPartKind.EARLIER_TALK]
    assert [(part.is_carried, part.reason) for part in earlier] == [(False, OVER), (True, None)]
    assert sum(part.count for part in earlier) == 1_701
    assert sum(part.tokens for part in assembly.context.parts if part.is_carried) == (
        assembly.context.tokens
    )


# --- with anything --------------------------------------------------------------------------------

TEXTS = st.text("ab 1é你😀{}\n", max_size=30)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Character, list[TreeNode], dict[str, Any]]:
    """Somebody, a talk of any shape that a tree can have, and all that may go with it."""
    path: list[TreeNode] = []
    for number in range(draw(st.integers(1, 12))):
        is_question = number == 0 or draw(st.booleans())
        kind = NodeType.QUESTION if is_question else NodeType.CANDIDATE_ANSWER
        path.append(node(kind, draw(TEXTS), f"node_{number}"))
    if path[-1].node_type == NodeType.QUESTION and not path[-1].content:
        path[-1] = node(NodeType.QUESTION, "?", path[-1].id)
    keys = ("description", "mes_example", "first_mes", "post_history_instructions")
    anchor = {key: draw(TEXTS) for key in keys}
    maybe = st.none() | TEXTS
    given = {
        "form": draw(maybe),
        "persona": draw(maybe),
        "memories": [Memory(f"mem_{n}", text) for n, text in enumerate(draw(st.lists(maybe)))],
        "citations": {
            each.id: [citation(f"cite_{each.id}_{n}", text) for n, text in enumerate(texts)]
            for each in path
            if (texts := draw(st.lists(TEXTS, max_size=2)))
        },
    }
    return character(*draw(st.lists(TEXTS, max_size=2)), **anchor), path, given


def size(messages: Sequence[Message]) -> int:
    return sum(estimate_tokens(each.text) + MESSAGE_TOKENS for each in messages)


def must_stay(part: ContextPart, asked: str) -> bool:
    kinds = {ContextPartKind.IDENTITY, ContextPartKind.FORBIDDEN_ZONE}
    return part.kind in kinds or part.ref == asked


@given(drawn(), st.lists(st.integers(0, 500), min_size=2, max_size=5, unique=True))
def test_whatever_the_budget(
    what: tuple[Character, list[TreeNode], dict[str, Any]], budgets: list[int]
) -> None:
    """Rules R26, R27. Never more than it, the question always there, the talk in its order, and
    never less for a larger one.
    """
    who, path, given = what
    made = [assemble(who, path, "Ada", budget=each, **given) for each in sorted(budgets)]
    for budget, assembly in zip(sorted(budgets), made, strict=True):
        parts = assembly.context.parts
        assert assembly.context.budget == budget
        assert all(part.is_carried is (part.reason is None) for part in parts)
        if assembly.messages is None:
            assert sum(p.tokens for p in parts if must_stay(p, path[-1].id)) > budget
            continue
        assert size(assembly.messages) <= assembly.context.tokens <= budget
        assert all(p.is_carried for p in parts if must_stay(p, path[-1].id) and p.tokens)
        system, *spoken = assembly.messages
        assert system.role == "system"
        if path[-1].node_type == NodeType.QUESTION:
            assert spoken[-1].role == "user"
            assert spoken[-1].text == path[-1].content
        else:
            assert spoken[-1].text == GO_ON
        # Without holes, but for what has no text: the talk is kept from its end.
        of_talk = [part for part in parts if part.ref in {each.id for each in path}]
        assert [part.ref for part in of_talk] == [each.id for each in path]
        with_text = [part.is_carried for part in of_talk if part.reason is not EMPTY]
        assert with_text == sorted(with_text)
        texts = [
            each.content
            for each, part in zip(path, of_talk, strict=True)
            if part.is_carried and each.content
        ]
        greeting = [p for p in parts if p.kind is ContextPartKind.GREETING and p.is_carried]
        end = len(spoken) - (path[-1].node_type != NodeType.QUESTION)
        assert [each.text for each in spoken[len(greeting) : end]] == texts
    for smaller, larger in pairwise(made):
        names = [
            {(p.kind, p.ref) for p in each.context.parts if p.is_carried}
            for each in (smaller, larger)
        ]
        assert names[0] <= names[1]
        assert smaller.context.tokens <= larger.context.tokens


@pytest.mark.parametrize("budget", [60, 100, 1_000])
def test_the_same_is_made_of_the_same(budget: int) -> None:
    one, other = [assemble(ROOK, LONG_PATH, "Ada", budget=budget, **LONG) for _ in range(2)]
    assert one == other
    assert one.record()["budget"] == budget
