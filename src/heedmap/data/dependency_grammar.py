"""Generate sentences whose dependency trees are known: a seeded grammar of everyday English.

    The tall nurse said that her brother had quietly opened the box near the school.

Relations have the names of Stanford's basic dependencies, as in Clark et al. 2019. Each is at varying
distances: a noun has a determiner or a possessor, and may have adjectives, compounds and a phrase behind it; a
verb may have an auxiliary, an adverb on either side, a particle before or after its object, and a clause.
"""

from dataclasses import dataclass, field

import numpy as np

from heedmap.data.trees import ROOT, DependencyTree

PERSONS = (
    "nurse gardener teacher lawyer driver soldier painter farmer doctor child neighbour student"
)
PLURAL_PERSONS = (
    "nurses gardeners teachers lawyers drivers soldiers painters farmers doctors children"
)
THINGS = "letter box picture window book table engine garden bridge ticket report camera"
COMPOUNDS = "village hospital school city summer family winter kitchen railway museum"
ADJECTIVES = "old young tall quiet small clever famous tired green heavy broken new"
DETERMINERS = "the the a every this that"
PLURAL_DETERMINERS = "the the some these those many"
POSSESSORS = "her his their my our"
TIMES = "storm meeting concert holiday lesson dinner"
TEMPORAL = "during before after"
PREPOSITIONS = "near behind beside under from with"
ADVERBS = "quietly slowly often never already carefully suddenly usually"
TRANSITIVE = "saw found painted opened carried sold noticed repaired"
PARTICLES = "picked:up threw:away put:down took:out gave:back"
INTRANSITIVE = "slept laughed arrived waited worked smiled"
SAYING = "said thought knew believed hoped noticed"
BASE = "see find paint open carry sell repair move"
PASSIVE = "seen found painted opened carried sold repaired taken"
MODALS = "will could might should must"
# What may stand between a determiner and its noun, in this order, and how often.
MODIFIERS = (
    ("amod", ADJECTIVES, 0.45),
    ("amod", ADJECTIVES, 0.2),
    ("nn", COMPOUNDS, 0.25),
    ("nn", COMPOUNDS, 0.08),
)
DEEPEST = 2  # clauses within each other


@dataclass
class _Node:
    """A word with what depends on it, on its left and on its right, each in the order of the text."""

    word: str
    left_dependents: list[tuple[str, "_Node"]] = field(default_factory=list)
    right_dependents: list[tuple[str, "_Node"]] = field(default_factory=list)

    def flat(self) -> list["_Node"]:
        """Return the nodes below this one and itself in the order of the text."""
        on_left = [node for _, child in self.left_dependents for node in child.flat()]
        return [
            *on_left,
            self,
            *(node for _, child in self.right_dependents for node in child.flat()),
        ]


class DependencyGrammar:
    """The grammar; the same generator state gives the same sentences."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def draw(self, count: int) -> list[DependencyTree]:
        """Draw some sentences; a sentence may come twice."""
        return [self._sentence() for _ in range(count)]

    def _sentence(self) -> DependencyTree:
        root = self._clause(DEEPEST)
        root.right_dependents.append(("punct", _Node(".")))
        nodes = root.flat()
        place = {id(node): i for i, node in enumerate(nodes)}
        heads, relations = [ROOT] * len(nodes), ["root"] * len(nodes)
        for node in nodes:
            for relation, child in (*node.left_dependents, *node.right_dependents):
                heads[place[id(child)]] = place[id(node)]
                relations[place[id(child)]] = relation
        words = [node.word for node in nodes]
        for i, following in enumerate(words[1:]):
            words[i] = "an" if words[i] == "a" and following[0] in "aeiou" else words[i]
        words[0] = words[0][:1].upper() + words[0][1:]
        pieces = [words[0], *(word if word in ".," else f" {word}" for word in words[1:])]
        return DependencyTree(tuple(pieces), tuple(heads), tuple(relations))

    def _chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _one_of(self, words: str) -> str:
        return str(self.rng.choice(words.split()))

    def _word(self, words: str) -> _Node:
        return _Node(self._one_of(words))

    def _clause(self, depth: int) -> _Node:
        """Return a clause by its verb: its subject, then what the verb has."""
        plural = self._chance(0.4)
        subject = self._noun(PLURAL_PERSONS if plural else PERSONS, depth=1, plural=plural)
        kind = self.rng.random()
        if kind < 0.2:
            return self._passive(subject, "were" if plural else "was")
        if kind < 0.45 and depth > 1:
            return self._saying(subject, self._clause(depth - 1))
        return self._intransitive(subject) if kind < 0.6 else self._transitive(subject)

    def _passive(self, subject: _Node, auxiliary: str) -> _Node:
        verb = _Node(self._one_of(PASSIVE), [("nsubjpass", subject), ("auxpass", _Node(auxiliary))])
        self._adverb(verb, verb.left_dependents, 0.3)
        if self._chance(0.6):
            verb.right_dependents.append(("prep", self._phrase("by", PERSONS)))
        return self._timed(verb)

    def _saying(self, subject: _Node, content: _Node) -> _Node:
        verb = _Node(self._one_of(SAYING), [("nsubj", subject)], [("ccomp", content)])
        self._adverb(verb, verb.left_dependents, 0.3)
        content.left_dependents.insert(0, ("mark", _Node("that")))
        return verb

    def _intransitive(self, subject: _Node) -> _Node:
        verb = _Node(self._one_of(INTRANSITIVE), [("nsubj", subject)], [("prep", self._phrase())])
        self._adverb(verb, verb.left_dependents, 0.3)
        return self._timed(verb)

    def _transitive(self, subject: _Node) -> _Node:
        modal = self._chance(0.4)
        has_particle = not modal and self._chance(0.35)
        kinds = BASE if modal else PARTICLES if has_particle else TRANSITIVE
        word, *particle = self._one_of(kinds).split(":")
        verb = _Node(word, [("nsubj", subject)], [("dobj", self._noun(THINGS, depth=1))])
        if modal:
            verb.left_dependents.append(("aux", self._word(MODALS)))
        self._adverb(verb, verb.left_dependents, 0.3)
        for form in particle:
            verb.right_dependents.insert(int(self.rng.integers(2)), ("prt", _Node(form)))
        self._adverb(verb, verb.right_dependents, 0.15)
        return self._timed(verb)

    def _adverb(self, verb: _Node, side: list[tuple[str, _Node]], share: float) -> None:
        if self._chance(share):
            side.append(("advmod", self._word(ADVERBS)))

    def _timed(self, verb: _Node) -> _Node:
        """Return a verb, sometimes with a phrase of time at its end, which no noun before it can have."""
        if self._chance(0.25):
            verb.right_dependents.append(("prep", self._phrase(self._one_of(TEMPORAL), TIMES)))
        return verb

    def _noun(self, nouns: str, *, depth: int, plural: bool = False) -> _Node:
        """Return a noun with what stands before it, and sometimes a phrase behind it."""
        noun = self._word(nouns)
        if self._chance(0.3):
            noun.left_dependents.append(("poss", self._word(POSSESSORS)))
        else:
            noun.left_dependents.append(
                ("det", self._word(PLURAL_DETERMINERS if plural else DETERMINERS))
            )
        for relation, words, share in MODIFIERS:
            if self._chance(share):
                noun.left_dependents.append((relation, self._word(words)))
        if depth and self._chance(0.25):
            noun.right_dependents.append(("prep", self._phrase()))
        return noun

    def _phrase(self, preposition: str = "", nouns: str = "") -> _Node:
        """Return a preposition with its noun."""
        noun = self._noun(nouns or (PERSONS if self._chance(0.4) else THINGS), depth=0)
        return _Node(preposition or self._one_of(PREPOSITIONS), right_dependents=[("pobj", noun)])
