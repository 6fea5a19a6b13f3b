"""What instances and items are called: heedmap's own sentences say it, and the user's words stay."""

import json
import re
from dataclasses import replace

import altair as alt
import pytest
from tiny_audits import tiny_audit

import heedmap as hm
from heedmap.comparisons.comparison_page import page as comparison_page
from heedmap.experiments.budget_facts import BudgetFacts
from heedmap.experiments.findings import pooled
from heedmap.experiments.registry import make_findings
from heedmap.files.identity import identity, settings_hash
from heedmap.nouns import ASKED_WORDS, BAGS, INSTANCES, PICTURES, TEXTS, Nouns, shared_nouns
from heedmap.report.card import facts
from heedmap.report.card_content import card_content
from heedmap.report.charts import Figure, plot, reworded, row_names, specification
from heedmap.report.explanation import Explanation
from heedmap.report.figures import figures
from heedmap.report.page import page
from heedmap.report.templates import _read_aloud, environment
from heedmap.report.window_views import token_table
from heedmap.report.wording import count_text, few_texts, scale_text
from heedmap.settings.data import DataSettings
from heedmap.settings.run import RunSettings

WRITTEN = re.compile(r"\b(?:[Tt]exts?|[Ww]ords?)\b")


def called(nouns, audit):
    """The same audit of instances with these nouns."""
    settings = audit.settings.model_copy(
        update={"data": audit.settings.data.model_copy(update={"nouns": nouns})}
    )
    findings = make_findings(
        audit.tables, settings.audit, audit.classes, settings.model, audit.rates, nouns
    )
    return type(audit)(settings, audit.classes, audit.tables, findings, audit.about, audit.rates)


@pytest.fixture(scope="module")
def audit():
    return tiny_audit("own")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A text, a word; an even text", "A picture, a patch; an even picture"),
        ("Texts' words. Word by word", "Pictures' patches. Patch by patch"),
        ("special tokens and a token F1 of tokens", "special tokens and a token F1 of patches"),
        ("texts “some text”, `text`, --text-column", "pictures “some text”, `text`, --text-column"),
        ("context, wording, texting", "context, wording, texting"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_sentence_is_about_other_instances_and_what_is_quoted_stays(sentence, expected):
    assert PICTURES.reword(sentence) == expected
    assert TEXTS.reword(sentence) == sentence


def test_tokens_of_one_sentence_are_not_said_to_be_alike():
    assert few_texts(4, ASKED_WORDS).startswith("only 4 different sentences:")
    assert ASKED_WORDS.reword("16 texts, 4 distinct texts") == "16 tokens, 4 distinct sentences"
    assert BAGS.reword("a different text") == "a different bag"


def test_an_answer_that_a_budget_leaves_open_is_worded_too():
    facts = BudgetFacts(16, 300, 1.0, False, ["no", "words"], 32, 5.0, 60.0, {})
    assert PICTURES.reword(facts.why_uncertain).endswith("may say no or the right patches")


def test_a_number_of_one_text_is_said_to_be_of_one(audit):
    finding = next(f for f in audit.findings if f.relative is not None)
    single = replace(finding, n=9, distinct=1, relative=replace(finding.relative, n=1))
    assert scale_text(single, PICTURES).startswith("On the 1 picture with all three numbers")
    assert count_text(single, PICTURES) == "n = 9 (1 different picture)"


def test_an_article_fits_its_noun():
    assert INSTANCES.reword("A text of a word") == "An instance of an item"
    events = Nouns(instance="event", instances="events", item="x", items="xs")
    assert events.reword("a text, an (odd) text") == "an event, an (odd) event"


def test_names_of_the_users_stay_even_where_they_hold_a_noun():
    said = PICTURES.reword("text: plain text 3 texts, other 2 texts", ["plain text", "other"])
    assert said == "picture: plain text 3 pictures, other 2 pictures"


def test_runs_of_different_kinds_share_instances_and_items():
    assert shared_nouns([BAGS, BAGS]) == BAGS
    assert shared_nouns([BAGS, TEXTS]) == INSTANCES


def test_nouns_are_stored_with_the_settings_and_those_of_texts_leave_no_trace(audit, tmp_path):
    settings = called(PICTURES, audit).settings
    (tmp_path / "settings.toml").write_text(settings.to_toml(), encoding="utf-8")
    assert RunSettings.read(tmp_path / "settings.toml").nouns == PICTURES
    assert "nouns" not in audit.settings.to_toml()
    assert "nouns" not in audit.settings.model_dump(mode="json")["data"]
    assert audit.settings.nouns == TEXTS
    assert settings_hash(settings) != settings_hash(audit.settings)
    assert identity(settings, "", []) != identity(audit.settings, "", [])
    with pytest.raises(hm.InputError, match="nouns"):
        DataSettings.of(source="a", nouns={"instance": ""})


def test_card_and_findings_of_pictures_say_picture_and_patch(audit):
    pictures = called(PICTURES, audit)
    card = card_content(pictures)
    said = [card.sentence, *card.details, card.intervals, *(q.topic for q in card.questions)]
    said += [value for name, value in facts(pictures) if name in ("audited", "not tested")]
    for finding in pictures.findings:
        said += [
            finding.question,
            finding.topic,
            finding.measure,
            finding.meaning,
            *finding.left_out,
        ]
    assert not [sentence for sentence in said if WRITTEN.search(re.sub("“[^”]*”", "", sentence))]
    assert any("patches" in sentence for sentence in said)
    assert card.intervals == "[ ] 95 % interval over pictures, of this one model"
    assert card_content(audit).intervals == "[ ] 95 % interval over texts, of this one model"


def test_all_that_a_page_of_pictures_says_is_about_pictures(audit):
    html = page(called(PICTURES, audit))
    assert '<meta name="nouns"' in html
    assert '<meta name="nouns"' not in page(audit)
    body = re.sub(r"<(script|style).*?</\1>|“[^”]*”", "", html.partition("<body")[2], flags=re.S)
    body = re.sub(r"<details id=\"run\">.*?</details>", "", body, flags=re.S)
    seen = re.sub("<[^>]*>", " ", body)
    # A form of the citation is plain text, and a setting is named words.
    settings = "tokenizer = &#34;words&#34;"
    assert [word for word in WRITTEN.findall(seen.replace(settings, "")) if word != "text"] == []
    assert not re.findall(r'(?:title|aria-label|placeholder)="[^"]*\b[Tt]exts?\b[^"]*"', body)
    assert 'id="texts"' in html
    assert 'href="#texts"' in html


OF_THE_USER = ("token", "tokens", "class", "rows", "key")


def written_in(spec):
    """What a chart's marks, rows and columns are called."""
    datasets = spec.get("datasets", {}).values()
    return [
        value
        for data in datasets
        for row in data
        for name, value in row.items()
        if isinstance(value, str) and name not in OF_THE_USER
    ]


def test_figures_say_the_other_nouns_in_titles_and_names_and_keep_their_numbers(audit):
    said = []
    for own, other in zip(figures(audit), figures(called(PICTURES, audit)), strict=True):
        assert not WRITTEN.search(f"{other.title} {other.n} {other.caption} {other.notes}")
        assert not [name for name in written_in(other.spec) if WRITTEN.search(name)]
        said += [name for name in written_in(other.spec) if "patch" in name]
        axes = re.findall(
            r'"(?:labelExpr|test|filter)": "((?:[^"\\\\]|\\\\.)*)"', json.dumps(other.spec)
        )
        assert not [axis for axis in axes if WRITTEN.search(axis)]
        assert own.key == other.key
        for old, new in zip(
            own.spec.get("datasets", {}).values(),
            other.spec.get("datasets", {}).values(),
            strict=True,
        ):
            kept = [[(k, v) for k, v in row.items() if not isinstance(v, str)] for row in old]
            assert kept == [
                [(k, v) for k, v in row.items() if not isinstance(v, str)] for row in new
            ]
    assert said


def test_a_chart_keeps_the_users_words_and_finds_its_renamed_series():
    data = [{"series": "random words", "token": "words", "y": 1}, {"series": "class words", "y": 2}]
    chart = plot(data).encode(
        x=alt.X(
            "series:N", sort=["random words", "class words"], axis=row_names(["random words"], 6)
        ),
        y="token:N",
        tooltip=["texts:N"],
    )
    chart = chart.transform_filter("datum.series != 'random words'")
    figure = Figure("a", "a", "n", "c", specification(chart.mark_point(), 10))
    said = reworded(figure, PICTURES, ["class words"]).spec
    (values,) = said["datasets"].values()
    assert [row["series"] for row in values] == ["random patches", "class words"]
    assert values[0]["token"] == "words"
    assert said["encoding"]["x"]["sort"] == ["random patches", "class words"]
    assert '{"random patches": ["random", "patches"]}' in said["encoding"]["x"]["axis"]["labelExpr"]
    assert said["transform"] == [{"filter": "datum.series != 'random patches'"}]
    assert said["encoding"]["tooltip"][0]["title"] == "pictures"
    assert said["encoding"]["y"] == {"field": "token", "title": "patch", "type": "nominal"}


def test_a_template_keeps_its_attributes_and_only_its_own_words_change():
    html = '<p id="texts" class="text {{ a }}" title="a text">texts <a href="#text'
    said = '<p id="texts" class="text {{ a }}" title="a picture">pictures <a href="#text'
    assert _read_aloud(html, PICTURES) == said
    template = environment(PICTURES).from_string('texts {{ x }} {{ "one text" }} {{ x|reword }}')
    assert template.render(x="a text") == "pictures a text one picture a picture"


def test_the_bottom_line_of_unlabelled_instances_says_so_by_their_name(audit):
    tables = audit.tables
    labels = tables["instances"].column_names.index("label")
    without = tables["instances"]["label"].to_pandas() * float("nan")
    instances = tables["instances"].set_column(labels, "label", [without.to_numpy()])
    unlabelled = called(
        PICTURES,
        type(audit)(
            audit.settings, audit.classes, {**tables, "instances": instances}, [], audit.about,
            audit.rates,
        ),
    )  # fmt: skip
    assert any(
        "for the pictures have no labels" in reason for reason in unlabelled.bottom_line.not_tested
    )


def test_a_comparison_of_pictures_and_texts_is_of_instances(audit):
    pictures = called(PICTURES, audit)
    alike = hm.compare([pictures, called(PICTURES, tiny_audit("own", (4, 6, 2, 9, 5, 7)))])
    assert any("pictures" in note or "picture" in note for note in alike.notes)
    mixed = hm.compare([pictures, audit])
    assert mixed.nouns == INSTANCES
    assert "the share of the weight that lies on other items" in comparison_page(mixed)


def test_json_of_the_bottom_line_has_no_nouns_of_its_own(audit):
    line = called(PICTURES, audit).bottom_line
    assert "nouns" not in json.loads(json.dumps(line.to_json()))
    assert line.to_json()["sentence"] == line.sentence


def test_pooled_audits_keep_their_nouns(audit):
    assert pooled(called(BAGS, audit)).nouns == BAGS


def test_an_explanation_is_worded_by_its_nouns():
    assert Explanation.__dataclass_fields__["nouns"].default == TEXTS
    assert token_table.__defaults__ == (TEXTS,)
