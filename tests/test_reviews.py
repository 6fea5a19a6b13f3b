import re
from collections import Counter
from statistics import mean

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from heedmap.data.reviews import LEXICON, RATIONALE, ROLES, Review, reviews

NEGATIONS = {"not": 1, "never": 1, "hardly": 1, "far from": 2, "anything but": 2, "by no means": 2}
DEGREES = {"somewhat": 1, "fairly": 1, "rather": 1, "quite": 1}
DEGREES |= {"very": 2, "really": 2, "truly": 2, "remarkably": 2}
OPINION = re.compile(
    rf"\b((?P<negation>{'|'.join(NEGATIONS)}) )?((?P<degree>{'|'.join(DEGREES)}) )?(a )?"
    rf"(?P<word>{'|'.join(LEXICON)})\b"
)
SOMEONE_ELSE = re.compile(r"\b(said|claimed|insisted|swore|poster|according)\b")
SOMETHING_ELSE = re.compile(
    r"\b(sequel|trailer|remake|short|cafe|bakery|canteen|owner|hostel|branch|campsite|guesthouse"
    r"|model|tablet|brand|refurbished)\b"
)


def composed(text: str) -> float | None:
    """Compose the valence of a text in which every opinion counts; None without an opinion."""
    valences = []
    for match in OPINION.finditer(text):
        valence = LEXICON[match["word"]]
        sign = (valence > 0) - (valence < 0)
        if match["negation"]:
            valences.append(-sign * NEGATIONS[match["negation"]])
        elif match["degree"]:
            valences.append(sign * DEGREES[match["degree"]])
        else:
            valences.append(valence)
    return mean(valences) if valences else None


def read(text: str) -> float:
    """Find a review's valence from its text alone, by the rules that the module states."""
    (valence,) = {composed(clause) for clause in clauses_that_count(text)} - {None}
    return valence


def clauses_that_count(text: str) -> list[str]:
    clauses = []
    for sentence in text.split(" ."):
        clause = re.sub(r"\bafter the .*? , ", "", sentence).strip()
        if SOMEONE_ELSE.search(clause) or SOMETHING_ELSE.search(clause):
            continue
        clause = re.sub(r".* , (but|yet) ", "", clause)
        clause = re.sub(r"^although .* , | , although .*$", "", clause)
        clauses.append(clause)
    return clauses


def text_of(review: Review) -> str:
    return " ".join(review.tokens)


def class_of(valence: float) -> str:
    return "positive" if valence > 0 else "negative"


@pytest.fixture(scope="module", params=[False, True], ids=["two classes", "stars"])
def corpus(request: pytest.FixtureRequest) -> list[Review]:
    return reviews(stars=request.param)


@pytest.fixture(scope="module")
def two_classes() -> list[Review]:
    return reviews()


@pytest.fixture(scope="module")
def starred() -> list[Review]:
    return reviews(stars=True)


def test_the_seed_decides_the_texts() -> None:
    assert reviews(50, seed=3) == reviews(50, seed=3)
    first, second = reviews(50, seed=3), reviews(50, seed=4)
    assert len({text_of(r) for r in first} & {text_of(r) for r in second}) < 10


def test_every_token_has_a_role_and_every_role_occurs(starred: list[Review]) -> None:
    assert all(len(review.tokens) == len(review.roles) for review in starred)
    assert {role for review in starred for role in review.roles} == set(ROLES)


def test_the_rationale_is_where_the_roles_decide(corpus: list[Review]) -> None:
    for review in corpus:
        assert review.rationale == tuple(role in RATIONALE for role in review.roles)
        assert 0 < sum(review.rationale) < len(review.tokens)


def test_texts_are_lower_case_and_six_to_forty_five_tokens_long(corpus: list[Review]) -> None:
    lengths = [len(review.tokens) for review in corpus]
    assert min(lengths) >= 6
    assert max(lengths) <= 45
    assert 18 <= mean(lengths) <= 22
    assert all(text_of(review) == text_of(review).lower() for review in corpus)
    assert all(review.tokens == tuple(text_of(review).split(" ")) for review in corpus)


def test_no_text_occurs_twice(corpus: list[Review]) -> None:
    assert len({review.tokens for review in corpus}) == len(corpus) == 4000


@pytest.mark.parametrize(("stars", "classes"), [(False, 2), (True, 5)])
def test_classes_are_balanced_up_to_one_review(stars: bool, classes: int) -> None:
    counts = Counter(review.label for review in reviews(104, stars=stars)).values()
    assert len(counts) == classes
    assert max(counts) - min(counts) <= 1


def test_stars_have_five_classes_and_the_others_two(
    two_classes: list[Review], starred: list[Review]
) -> None:
    assert {review.label for review in two_classes} == {"negative", "positive"}
    assert {review.label for review in starred} == {"1", "2", "3", "4", "5"}


def test_the_text_alone_decides_between_two_classes(two_classes: list[Review]) -> None:
    misread = [r for r in two_classes if class_of(read(text_of(r))) != r.label]
    assert misread == []


def test_the_text_alone_decides_the_stars(starred: list[Review]) -> None:
    misread = [r for r in starred if 3 + read(text_of(r)) != int(r.label)]
    assert misread == []


def test_the_stars_can_be_composed_from_the_rationale_alone(starred: list[Review]) -> None:
    for review in starred:
        kept = zip(review.tokens, review.rationale, strict=True)
        valence = composed(" ".join(token for token, counts in kept if counts))
        assert valence is not None
        assert 3 + valence == int(review.label)


def test_only_stars_depend_on_degree_words(
    two_classes: list[Review], starred: list[Review]
) -> None:
    assert not any("intensifier" in review.roles for review in two_classes)
    for review in starred:
        for place, role in enumerate(review.roles):
            if role in {"intensifier", "emphasis"}:
                without = review.tokens[:place] + review.tokens[place + 1 :]
                moved = read(" ".join(without)) != int(review.label) - 3
                assert moved == (role == "intensifier")


def test_swapping_the_clauses_around_but_flips_the_label(two_classes: list[Review]) -> None:
    flipped = 0
    for review in two_classes:
        if ("but", "contrast") not in zip(review.tokens, review.roles, strict=True):
            continue
        (sentence,) = (
            s for s in text_of(review).split(" .") if " , but " in s and OPINION.search(s)
        )
        before, after = re.sub(r"\bafter the .*? , ", "", sentence).strip().split(" , but ")
        assert class_of(read(f"{after} , but {before} .")) != review.label
        flipped += 1
    assert flipped > 50


def test_opinions_that_do_not_count_agree_with_the_label_half_the_time(
    two_classes: list[Review],
) -> None:
    agreeing = []
    for review in two_classes:
        others = zip(review.tokens, review.roles, strict=True)
        valence = composed(" ".join(token for token, role in others if role == "distractor"))
        if valence:
            agreeing.append(class_of(valence) == review.label)
    assert len(agreeing) > 500
    assert 0.45 < mean(agreeing) < 0.55


def test_a_bag_of_words_errs_because_order_matters(two_classes: list[Review]) -> None:
    texts = [text_of(review) for review in two_classes]
    labels = [review.label for review in two_classes]
    words = CountVectorizer().fit(texts[:2800])
    model = LogisticRegression(max_iter=1000).fit(words.transform(texts[:2800]), labels[:2800])
    assert 0.70 < model.score(words.transform(texts[3200:]), labels[3200:]) < 0.90
