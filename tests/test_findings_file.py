"""findings.json is what its schema says, and the schema is that of the classes that are written."""

import copy
import json
import runpy
from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import pytest
from made_audits import make_audit
from tiny_audits import KINDS, tiny_audit

from heedmap.experiments.bottom_line import BottomLine
from heedmap.experiments.findings import ClassNumber, Finding, Relative
from heedmap.experiments.rates import packaged_rates
from heedmap.runs.findings_file import SCHEMA, VERSION, findings_of, findings_schema, made_schema

ROOT = Path(__file__).parents[1]
SCHEMA_OF = {
    "BottomLine": BottomLine,
    "ClassNumber": ClassNumber,
    "Finding": Finding,
    "Relative": Relative,
}


def written(audit):
    """What findings.json holds, as it is read."""
    return json.loads(json.dumps(findings_of(audit), allow_nan=False))


@pytest.fixture(scope="module")
def schema():
    return findings_schema()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_the_findings_of_every_kind_of_audit_are_valid(schema, kind):
    content = written(tiny_audit(kind))
    assert len(content["findings"]) > 20
    jsonschema.validate(content, schema)


@pytest.mark.parametrize("n", [1, 40])
def test_undefined_numbers_are_null_and_valid(schema, n):
    content = written(replace(make_audit(n=n), rates=packaged_rates()))
    assert any(finding["low"] is None for finding in content["findings"])
    jsonschema.validate(content, schema)


def test_the_schema_in_the_package_is_that_of_the_classes(schema):
    assert schema == made_schema(), (
        "make it again: python scripts/findings_schema.py; and raise VERSION if a key came, went or changed"
    )
    script = runpy.run_path(str(ROOT / "scripts" / "findings_schema.py"))
    assert (ROOT / "src" / "heedmap" / "runs" / SCHEMA).read_text("utf-8") == script["text"]()
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_field_is_in_the_schema_and_no_other(schema):
    for name, kind in SCHEMA_OF.items():
        said = schema["$defs"][name]
        names = {field.name for field in fields(kind)} | (
            {"sentence"} if kind is BottomLine else set()
        )
        assert set(said["properties"]) == set(said["required"]) == names
        assert said["additionalProperties"] is False
    assert schema["properties"]["schema_version"]["const"] == VERSION == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.pop("schema_version"),
        lambda content: content.update(schema_version=2),
        lambda content: content.update(more=1),
        lambda content: content["bottom_line"].update(answer="maybe"),
        lambda content: content["bottom_line"].pop("sentence"),
        lambda content: content["findings"][0].pop("edges"),
        lambda content: content["findings"][0].update(n="3"),
        lambda content: content["findings"][0].update(level="good"),
        lambda content: content["findings"][0].update(value="0.5"),
        lambda content: content["findings"][0].update(another=0),
        lambda content: content["rates"].pop("name"),
    ],
)
def test_what_the_code_would_not_write_is_invalid(schema, damage):
    content = written(replace(make_audit(), rates=packaged_rates()))
    jsonschema.validate(content, schema)
    other = copy.deepcopy(content)
    damage(other)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(other, schema)
