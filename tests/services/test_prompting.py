from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from db.enums import CharacterStatus, NodeStatus, NodeType, Origin, Realm
from db.tables import Character, TreeNode
from services.providers import Message
from services.runs.prompting import GO_ON, build_messages, character_sheet, expand_names

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def character(**anchor: Any) -> Character:
    return Character(
        id="soul_1",
        custodian_user_id="user_1",
        embryo_draft_id=None,
        name="Rook",
        origin=Origin.ORIGINAL,
        status=CharacterStatus.ACTIVE,
        identity_baseline={
            "core_anchor": {"name": "Rook", **anchor},
            "forbidden_zone": ["{{char}} never leaves the bridge."],
        },
        created_at=NOW,
        updated_at=None,
        version=1,
    )


def node(kind: NodeType, content: str) -> TreeNode:
    return TreeNode(
        id="node_1",
        tree_id="tree_1",
        node_type=kind,
        status=NodeStatus.SOLIDIFIED,
        realm=Realm.REALITY,
        content=content,
        content_version=1,
        created_at=NOW,
    )


def test_the_identity_comes_first_and_the_talk_in_its_order() -> None:
    messages = build_messages(
        character(description="{{char}} guards it from {{User}}.", first_mes="Halt, <USER>."),
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
