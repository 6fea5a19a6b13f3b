"""Styles of single elements: rules of a sheet, and nothing else."""

import pytest

from heedmap.report.inline_styles import InlineStyles, style_attribute


def test_equal_declarations_share_a_rule():
    styled = InlineStyles()
    assert styled.sheet == ""
    attributes = [
        styled("left:3%;width:0.5%"),
        styled("--key:#3f86e0"),
        styled("left:3%;width:0.5%"),
    ]
    assert attributes == ['data-s="0"', 'data-s="1"', 'data-s="0"']
    assert styled.sheet == '[data-s="0"]{left:3%;width:0.5%}\n[data-s="1"]{--key:#3f86e0}\n'


@pytest.mark.parametrize("text", ["", "left", "a:b}", "a:url(x)", "</style>", "a:b;;c:d", 'a:"b"'])
def test_what_is_no_declaration_is_refused(text):
    with pytest.raises(ValueError, match="expected name:value"):
        InlineStyles()(text)
    with pytest.raises(ValueError, match="expected name:value"):
        style_attribute(text)


def test_a_notebook_has_the_styles_in_its_elements():
    assert style_attribute("margin:.5em 0") == 'style="margin:.5em 0"'
