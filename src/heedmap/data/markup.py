"""HTML in texts: which texts hold it, and the text that a browser would show."""

import html
import re

from heedmap.terminal.output import some_of

# Elements that begin a line, and those within one. No `s`, as which tokenizers mark a text's start.
_LINES = (
    "address|article|aside|blockquote|body|br|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|"
    "figcaption|figure|footer|form|frame|frameset|h[1-6]|header|hgroup|hr|html|legend|li|listing|main|marquee|menu|"
    "nav|noframes|ol|optgroup|option|p|plaintext|pre|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "ul|xmp"
)
_WITHIN = (
    "a|abbr|acronym|applet|area|audio|b|base|basefont|bdi|bdo|bgsound|big|blink|button|canvas|cite|code|data|"
    "datalist|del|dfn|em|embed|font|head|i|iframe|image|img|input|ins|kbd|label|link|map|mark|math|meta|meter|nobr|"
    "noembed|noscript|object|output|param|picture|progress|q|rb|rp|rt|rtc|ruby|samp|select|slot|small|source|span|"
    "strike|strong|sub|sup|svg|template|textarea|time|track|tt|u|var|video|wbr|(?:m|o|st1|v|w):[a-z]+"
)
"""The last are those of Microsoft Office, such as `o:p`."""
# Without values only those that have none: in "a<b and c>d" the `and` is a word.
_FLAGS = (
    "allowfullscreen|async|autofocus|autoplay|border|checked|compact|controls|default|defer|disabled|hidden|ismap|"
    "loop|multiple|muted|nohref|noshade|novalidate|nowrap|open|playsinline|readonly|required|reversed|selected|"
    r"[a-z]+-[-\w]+"
)
_VALUE = r"""\s*+=\s*+(?:"[^"]*"|'[^']*'|[^\s<>]*+)"""
# AG News has backslashes for line breaks, within tags too.
_ATTRIBUTE = rf"""(?:[\s\\]++|(?<=["']))(?:[a-z_:@][-\w:.@]*+{_VALUE}|(?:{_FLAGS})(?=[\s/>]))"""
_ATTRIBUTES = rf"(?:{_ATTRIBUTE})*+[\s\\]*+(?:/\s*+)?+"
# The names of HTML alone: "<3", "a < b" and "<user>" are text. Some write a space after the bracket, which
# before a single letter is a comparison.
_TAG = re.compile(
    rf"<!--.*?-->|<!doctype\b[^<>]*>|<!\[[^<>]*>|<\?xml\b[^<>]*>|<(script|style)\b{_ATTRIBUTES}>.*?</\1\s*>|"
    rf"<(?:\s+(?=[a-z]{{2}}|/))?(?:/\s*)?(?:(?P<line>{_LINES})|{_WITHIN}|script|style){_ATTRIBUTES}>",
    re.IGNORECASE | re.DOTALL,
)
_ENTITY = re.compile(r"&(?:[a-z][a-z0-9]{1,30}|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_NAME = re.compile(r"<\s*(/?\s*[!?]?[\w\[]*)")
_MOST_PASSES = 3


def markup_in(text: str) -> str | None:
    """Name the first tag, comment or entity of HTML in a text; None where there is none.

    What stands within it belongs to the text, which a report may have to leave out.

    >>> markup_in("Fine.< br / >Really"), markup_in("I <3 R&D, a<b")
    ('<br>', None)
    >>> markup_in('<A href="mailto:me@example.org">me</A>'), markup_in("<!-- me -->"), markup_in("a &amp; b")
    ('<a>', '<!-- -->', '&amp;')
    """
    tag = _TAG.search(text) or next(
        (entity for entity in _ENTITY.finditer(text) if html.unescape(entity[0]) != entity[0]), None
    )
    if tag is None:
        return None
    if tag[0].startswith("<!--"):
        return "<!-- -->"
    name = _NAME.match(tag[0])
    return tag[0] if name is None else f"<{name[1].lower()}>"


def markup_note(texts: int, total: int, examples: list[str]) -> str:
    """Say that texts hold HTML, and what to do."""
    return (
        f"HTML in {texts} of {total} texts ({some_of([*dict.fromkeys(examples)], 3)}), which is read as words "
        "and marks: --markup text turns it into text"
    )


def without_html(text: str) -> str:
    """Return the text that a browser shows: some tags end lines, entities are their characters.

    Markup that was escaped as text is turned too.

    >>> without_html("Fine.<br /><br />He said &quot;so&quot; &amp;lt;b&amp;gt;loud&amp;lt;/b&amp;gt;.")
    'Fine.\\n\\nHe said "so" loud.'
    """
    for _ in range(_MOST_PASSES):
        if markup_in(text) is None:
            break
        text = html.unescape(_TAG.sub(lambda tag: "\n" if tag["line"] else "", text))
    return text.replace("\xa0", " ").strip()
