"""The embedded corpus: short opinionated reviews drawn from a seeded grammar.

A review is one verdict sentence among sentences that do not count. Its label follows from the text
by rules that a person can apply:

* A word of opinion has a valence in ``LEXICON``, from -2 (awful) to 2 (superb).
* A degree word sets the strength: "very good" is 2, "fairly superb" is 1.
* A negation reverses the sign. A plain one ("not", "never", "hardly") leaves a mild opinion,
  whatever it negates; an emphatic one ("far from", "anything but", "by no means") a strong one.
* Of two contrasted clauses one counts: the one after "but" or "yet", the one without "although".
  Two clauses joined by "and" count equally: the valence is their mean.
* What other people say, and what is said of other things, never counts; it agrees with the label
  half the time.

The label is the sign of the valence, or 3 plus the valence as a number of stars. Since the grammar
knows why it wrote each token, every token has a role, and the roles give the gold rationale.
"""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

ROLES: tuple[str, ...] = (
    "sentiment",  # a word of opinion that counts
    "negation",  # reverses a word of opinion that counts
    "intensifier",  # a degree word that moves the label, which only stars can show
    "emphasis",  # a degree word without which the label would be the same
    "contrast",  # "but", "although", ...: says which of two clauses counts, has no valence itself
    "overruled",  # the opinion, with its negation and degree, in the clause that loses a contrast
    "distractor",  # the same, where someone else holds it or something else is meant
    "frame",  # the other words of opinions: whose they are and what they are about
    "filler",  # the words of sentences without an opinion, "not" and "but" among them
    "punctuation",  # commas, full stops and quotation marks
)
# The label is composed of these tokens. Contrast words are left out: they point to the clause that
# counts, as "my brother said" points away from one that does not, but add nothing to its valence.
RATIONALE: frozenset[str] = frozenset({"sentiment", "negation", "intensifier"})

_Pieces = list[tuple[str, str]]  # (token, role)


@dataclass(frozen=True, slots=True)
class Review:
    """A text with the role of each token and its label."""

    tokens: tuple[str, ...]
    roles: tuple[str, ...]
    label: str

    @property
    def rationale(self) -> tuple[bool, ...]:
        """Return whether each token decides the label."""
        return tuple(role in RATIONALE for role in self.roles)


class _Form(NamedTuple):
    """A part of speech: its words by valence, what may modify them, the clauses they complete."""

    words: dict[int, str]
    negations: dict[int, tuple[str, ...]]  # by the strength that they leave
    degrees: dict[int, str]  # by the strength that they set
    clauses: tuple[str, ...]  # {topic} is what the opinion is about, _ the opinion
    article: str = ""


_NEGATIONS: dict[int, tuple[str, ...]] = {
    1: ("not", "never", "hardly"),
    2: ("far from", "anything but", "by no means"),
}
_ADJECTIVE = _Form(
    words={
        2: "superb brilliant wonderful excellent magnificent fantastic dazzling sublime",
        1: "good nice pleasant likeable charming enjoyable satisfying agreeable inviting engaging",
        0: "average ordinary passable middling unremarkable mediocre",
        -1: "bad dull weak bland tedious boring clumsy forgettable tiresome shabby irritating",
        -2: "awful dreadful terrible horrible atrocious abysmal appalling disgusting hideous vile",
    },
    negations=_NEGATIONS,
    degrees={1: "somewhat fairly rather quite", 2: "very really truly remarkably"},
    clauses=("{topic} was _", "for me {topic} was _", "{topic} was _ overall", "i found {topic} _"),
)
_NOUN = _Form(
    words={
        2: "triumph masterpiece marvel sensation",
        1: "pleasure treat success bargain",
        -1: "letdown bore nuisance disappointment",
        -2: "disaster catastrophe fiasco nightmare",
    },
    negations=_NEGATIONS,
    degrees={},
    clauses=("{topic} was _", "for me {topic} was _", "all in all {topic} was _"),
    article="a",
)
_VERB = _Form(
    words={
        2: "loved adored cherished",
        1: "liked enjoyed appreciated",
        -1: "disliked regretted resented",
        -2: "hated loathed despised",
    },
    negations={1: ("never", "hardly"), 2: ("by no means",)},
    degrees={1: "rather quite", 2: "really truly"},
    clauses=("i _ {topic}", "in the end i _ {topic}"),
)
LEXICON: dict[str, int] = {
    word: valence
    for form in (_ADJECTIVE, _NOUN, _VERB)
    for valence, words in form.words.items()
    for word in words.split()
}


class _Domain(NamedTuple):
    """Something that is reviewed: its aspects, the things it is not, and what is said besides."""

    aspects: str
    competitors: tuple[str, ...]
    fillers: tuple[str, ...]


_DOMAINS = (
    _Domain(
        "film plot acting soundtrack ending dialogue camerawork opening casting pacing",
        ("sequel", "trailer", "remake", "short before it"),
        (
            "we watched it on a {day} {time}",
            "it runs for {number} minutes , not counting the credits",
            "the story is set in a harbour town near the {place}",
            "i went in without popcorn but with a large coffee",
        ),
    ),
    _Domain(
        "meal soup service dessert bread menu sauce coffee salad kitchen",
        ("cafe next door", "bakery downstairs", "canteen at work", "previous owner"),
        (
            "we sat by the window on a {day} {time}",
            "they have {number} tables and no terrace",
            "the kitchen closes after {number} hours",
            "i ordered the fish , but my {person} had the lamb",
        ),
    ),
    _Domain(
        "hotel room bed breakfast lobby pool shower balcony garden lighting",
        ("hostel opposite", "other branch", "campsite nearby", "guesthouse by the lake"),
        (
            "we stayed for {number} nights in spring",
            "i arrived on a {day} {time} with my {person}",
            "it has {number} floors but only one lift",
            "we had not brought any luggage",
        ),
    ),
    _Domain(
        "phone screen battery keyboard camera speaker software design charger manual",
        ("older model", "tablet", "rival brand", "refurbished one"),
        (
            "it came in a grey box with {number} cables",
            "i bought it on a {day} {time} at the {place}",
            "the case does not come in blue",
            "my {person} has the same one in green",
        ),
    ),
)
_SLOTS = {
    "day": "monday tuesday wednesday thursday friday saturday sunday",
    "time": "morning afternoon evening night",
    "number": "two three four six eight ten twelve twenty forty ninety",
    "place": "station market library museum bridge square airport school",
    "person": "brother sister neighbour colleague uncle cousin daughter flatmate",
    "said": "said claimed insisted swore",
}
_HEARSAY = (
    "my {person} {said} that it was _",
    "my {person} {said} {topic} was _",
    "the critics {said} {topic} was _",
    "a stranger by the {place} {said} it was _",
    'the poster read " _ " in large letters',
    "according to my {person} {topic} was _",
)
_ELSEWHERE = ("the {other} was _", "they also mention the {other} , which was _")
_CONTRASTS = (
    "{lost} , but {won}",
    "{lost} , yet {won}",
    "although {lost} , {won}",
    "{won} , although {lost}",
)
_OPINIONS = (-2, -1, 1, 2)


def reviews(size: int = 4000, *, stars: bool = False, seed: int = 0) -> list[Review]:
    """Draw ``size`` different reviews in random order, as many of each class as of any other.

    The classes are "negative" and "positive", or with ``stars`` "1" to "5". The same arguments
    give the same reviews.
    """
    rng = Random(seed)
    valences = (-2, -1, 0, 1, 2) if stars else (-1, 1)
    by_tokens: dict[tuple[str, ...], Review] = {}
    while len(by_tokens) < size:
        valence = valences[len(by_tokens) % len(valences)]
        review = _review(rng, valence, stars)
        # A rejected draw is repeated with the same valence, which keeps the classes balanced.
        if 6 <= len(review.tokens) <= 45:
            by_tokens.setdefault(review.tokens, review)
    return rng.sample(list(by_tokens.values()), size)


def _review(rng: Random, valence: int, stars: bool) -> Review:
    domain = rng.choice(_DOMAINS)
    sentences = [_verdict(rng, domain, valence, stars)]
    if rng.random() < 0.22:
        sentences.append(_distraction(rng, domain))
    for filler in rng.sample(domain.fillers, rng.choice((0, 0, 1, 1, 2))):
        sentences.append(_words(_filled(rng, filler), "filler"))
    rng.shuffle(sentences)
    pieces = [piece for sentence in sentences for piece in [*sentence, (".", "punctuation")]]
    tokens, roles = zip(*pieces, strict=True)
    sign = "positive" if valence > 0 else "negative"
    return Review(tokens, roles, label=str(3 + valence) if stars else sign)


def _verdict(rng: Random, domain: _Domain, valence: int, stars: bool) -> _Pieces:
    """Write the one sentence that counts: a clause, two clauses in contrast or two joined."""
    if not stars:
        valence *= rng.choice((1, 2))  # two classes do not see the strength
    topic, second_topic = (f"the {aspect}" for aspect in rng.sample(domain.aspects.split(), 2))
    shape = rng.random()
    if shape < 0.13:
        opposite = [v for v in _OPINIONS if v * valence <= 0]
        won = _clause(rng, topic, valence, stars)
        lost = _discounted(_clause(rng, second_topic, rng.choice(opposite), stars), "overruled")
        pieces = _joined(rng.choice(_CONTRASTS), "contrast", won=won, lost=lost)
    elif shape < 0.4:
        # Good and bad in equal measure are one way to three stars.
        spread = 0 if valence else rng.choice(_OPINIONS)
        clause = _clause(rng, topic, valence + spread, stars)
        second_clause = _clause(rng, second_topic, valence - spread, stars)
        pieces = _joined("{one} and {two}", "frame", one=clause, two=second_clause)
    else:
        pieces = _clause(rng, topic, valence, stars)
    if rng.random() < 0.08:
        comparison = f"after the _ {rng.choice(domain.competitors)} ,"
        adjective = rng.choice(_ADJECTIVE.words[rng.choice(_OPINIONS)].split())
        pieces = _joined(comparison, "frame", _=[(adjective, "distractor")]) + pieces
    return pieces


def _distraction(rng: Random, domain: _Domain) -> _Pieces:
    """Write a sentence with an opinion of someone else or of something else."""
    topic = f"the {rng.choice(domain.aspects.split())}"
    template = rng.choice(_HEARSAY if rng.random() < 0.5 else _ELSEWHERE)
    text = _filled(rng, template, topic=topic, other=rng.choice(domain.competitors))
    opinion = _opinion(rng, rng.choice((_ADJECTIVE, _NOUN)), rng.choice(_OPINIONS), stars=False)
    return _joined(text, "frame", _=_discounted(opinion, "distractor"))


def _clause(rng: Random, topic: str, valence: int, stars: bool) -> _Pieces:
    form = rng.choice((_ADJECTIVE, _ADJECTIVE, _NOUN, _VERB)) if valence else _ADJECTIVE
    text = rng.choice(form.clauses).format(topic=topic)
    return _joined(text, "frame", _=_opinion(rng, form, valence, stars))


def _opinion(rng: Random, form: _Form, valence: int, stars: bool) -> _Pieces:
    """Write a phrase whose words compose to ``valence`` by the rules of this module."""
    strength, sign = abs(valence), 1 if valence > 0 else -1
    modifiers: _Pieces = []
    lexical = strength
    if valence and rng.random() < 0.1:
        negation = rng.choice(form.negations[strength])
        modifiers = _words(negation, "negation")
        sign, lexical = -sign, rng.choice((1, 2))
        if form.degrees and negation in {"not", "never"} and rng.random() < 0.3:
            modifiers += _words(rng.choice(form.degrees[2].split()), "emphasis")
    elif valence and form.degrees and rng.random() < 0.4:
        lexical = rng.choice((1, 2))
        role = "intensifier" if stars and lexical != strength else "emphasis"
        modifiers = _words(rng.choice(form.degrees[strength].split()), role)
    word = rng.choice(form.words[sign * lexical].split())
    return [*modifiers, *_words(form.article, "frame"), (word, "sentiment")]


def _discounted(pieces: _Pieces, role: str) -> _Pieces:
    """Give the opinion in ``pieces`` the role of one that does not count."""
    return [
        (token, original_role if original_role == "frame" else role)
        for token, original_role in pieces
    ]


def _filled(rng: Random, template: str, **words: str) -> str:
    slots = {slot: rng.choice(choices.split()) for slot, choices in _SLOTS.items()}
    return template.format(**slots, **words)


def _words(text: str, role: str) -> _Pieces:
    return [(token, role if token.isalpha() else "punctuation") for token in text.split()]


def _joined(template: str, role: str, **parts: _Pieces) -> _Pieces:
    """Put each part in the place of its name in the template, whose own words have ``role``."""
    pieces: _Pieces = []
    for token in template.split():
        pieces += parts.get(token.strip("{}")) or _words(token, role)
    return pieces
