"""The small part of Liquid by which times are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.calendars import BUILT_INS, EraFlip, render_times
from services.calendars.model import MAX_TEMPLATE
from services.calendars.template import MAX_WRITTEN, Template, TemplateFault

SCOPE: dict[str, Any] = {
    "year": -3,
    "month": 7,
    "monthName": "July",
    "weekdayName": None,
    "era": "Dawn",
    "count": 41_386,
}
NAMES = frozenset(SCOPE)


def written(text: str) -> str:
    return Template(text, NAMES).render(SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain } %} text { %", "plain } %} text { %"),
        ("{{year}}|{{ monthName }}|{{ weekdayName }}|", "-3|July||"),
        ("{{ 'a' }}{{ \"b}\" }}{{ 1.50 }}{{ true }}{{ nil }}", 'ab}1.5true'),
        ("{{ month | pad }} {{ month | pad: 3 }} {{ year | pad: 4 }}", "07 007 -003"),
        ("{{ 1 | minus: year }} {{ year | plus: 1 | times: 2 }}", "4 -4"),
        ("{{ 7 | divided_by: 2 }} {{ 7.0 | divided_by: 2 }} {{ 7 | divide: 2 }}", "3 3.5 3.5"),
        ("{{ 8 | divide: 2 }} {{ count | divide: 1000 | round: 1 }}", "4 41.4"),
        ("{{ 2.6 | round }} {{ 2.6 | floor }} {{ 2.2 | ceil }} {{ year | abs }}", "3 2 3 3"),
        ("{{ 7 | modulo: 4 }} {{ 7 | at_least: 9 }} {{ 7 | at_most: 5 }}", "3 9 5"),
        ("{{ era | append: '!' | prepend: '<' | upcase }}", "<DAWN!"),
        ("{{ 'aB' | downcase }} {{ 'aB' | capitalize }}", "ab Ab"),
        ("{{ weekdayName | default: 'none' }} {{ 0 | default: 1 }}", "none 0"),
        ("{% if year < 1 %}BC{% else %}AD{% endif %}", "BC"),
        ("{% if year >= 1 %}AD{% elsif month == 7 %}summer{% else %}BC{% endif %}", "summer"),
        ("{% unless weekdayName %}no week{% endunless %}", "no week"),
        ("{% if 0 %}yes{% endif %}{% if weekdayName < 3 %}no{% endif %}", "yes"),
        ("{% if true or false and false %}yes{% endif %}", "yes"),
        ("{% if false and false or true %}yes{% endif %}", ""),
        ("{% if monthName contains 'ul' and year != 3 %}yes{% endif %}", "yes"),
        ("{% if year <= -3 and year <> 4 %}{% if month > 6 %}in{% endif %}{% endif %}", "in"),
        ("a {{- month -}} b{%- if true -%} c {%- endif -%} d", "a7bcd"),
    ],
)  # fmt: skip
def test_a_template_writes_as_liquid_does(text: str, expected: str) -> None:
    """Rule W14."""
    assert written(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("{{", "{{ year", "{% if true %}", "{% endif %}", "{% else %}", "{% elsif true %}"),
        *("{{ }}", "{{ yeer }}", "{{ year month }}", "{{ year | }}", "{{ year | shout }}"),
        *("{{ year | plus }}", "{{ year | plus: 1, 2 }}", "{{ year | abs: 1 }}", "{{ ~ }}"),
        *("{% for a in b %}{% endfor %}", "{% include 'x' %}", "{% assign a = 1 %}"),
        *("{% if %}{% endif %}", "{% if year < %}{% endif %}", "{{ | plus: 1 }}", "{{ 'a }}"),
        *("{% if 1 %}{% else %}{% else %}{% endif %}", "{% if 1 %}{% endunless %}"),
        "{{ 123456789012345678901 }}",
        "{{ 1" + " | plus: 1" * 21 + " }}",
        "{% if 1 %}" * 21 + "{% endif %}" * 21,
    ],
)
def test_a_template_that_cannot_be_read_is_at_fault(text: str) -> None:
    """Rules W14, W15."""
    with pytest.raises(TemplateFault):
        Template(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        *("{{ monthName | plus: 1 }}", "{{ weekdayName | plus: 1 }}", "{{ 1 | divide: 0 }}"),
        *("{{ 1 | divided_by: 0 }}", "{{ 1 | modulo: 0 }}", "{{ 1 | round: -1 }}"),
        *("{{ 1 | round: 11 }}", "{{ 1 | pad: 51 }}", "{{ 1 | pad: 'x' }}", "{{ true | abs }}"),
        *("{% if monthName < 3 %}{% endif %}", "{{ 1.5 | pad: 1.5 }}"),
        "{{ 10" + " | times: 1000000" * 3 + " }}",
        "{{ 1" + " | divide: 0.0000000001" * 20 + " }}",
        "{{ '" + "x" * 300 + "' | append: '" + "x" * 300 + "' }}",
        "x" * (MAX_WRITTEN + 1),
    ],
)
def test_a_template_that_fails_on_values_is_at_fault(text: str) -> None:
    """Rules W14, W15."""
    template = Template(text, NAMES)
    with pytest.raises(TemplateFault):
        template.render(SCOPE)


PIECES = st.sampled_from(
    [
        *("{{", "}}", "{%", "%}", "if ", "elsif ", "else", "endif", "unless ", "endunless", "-"),
        *(" year ", " monthName ", " | ", "plus: ", "pad", "times: ", "append: ", "divide: ", "0"),
        *(" 9999999 ", " 'xx' ", '"', "'", " < ", " == ", " and ", " or ", " contains ", ",", "."),
    ]
) | st.text(max_size=4)


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_rendering_never_raises_for_any_template(text: str) -> None:
    """Rule W15."""
    earth = {**BUILT_INS["imperial-japan"].definition, "displayFormat": text}
    found = render_times(earth, [0, 86_400], None, [EraFlip(5, "New")])
    for each in found:
        assert each.is_fallback == (each.warning is not None)
        assert len(each.label) <= MAX_WRITTEN
        assert [part.name for part in each.tiers][:2] == ["year", "month"]
        assert not each.is_fallback or each.label == str(each.world_time)


HOSTILE = {
    "open braces": "{{" * 1_000,
    "open tags": "{%" * 1_000,
    "conditions in conditions": "{%if 1%}" * 250,
    "a long condition": "{%if " + "1 or " * 390 + "1%}{%endif%}",
    "a long chain": "{{1" + "|abs" * 490 + "}}",
    "many outputs": "{{year}}" * 250,
    "growing texts": "{{'x'" + "|pad:50|append:'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'" * 19 + "}}",
    "growing numbers": "{{9" + "|times:999999999999999999" * 20 + "}}",
    "blanks": "{{ year" + " " * 1_900 + "~ }}",
    "quotes": "{{" + "'" * 1_901 + "}}",
    "digits": "{{" + "9" * 1_900 + "}}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_has_an_answer(name: str) -> None:
    """Rule W14: what grows is stopped, and what goes deep comes to an end."""
    text = HOSTILE[name]
    assert len(text) <= MAX_TEMPLATE
    earth = {**BUILT_INS["earth-gregorian"].definition, "displayFormat": text}
    found = render_times(earth, [0] * 200)
    assert max(len(each.label) for each in found) <= MAX_WRITTEN
