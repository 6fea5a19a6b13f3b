"""findings.json: what it holds, and the JSON schema that says so, made from the classes that are written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from heedmap.experiments.bottom_line import BottomLine, bottom_line
from heedmap.experiments.findings import AuditResult, Finding, to_json

VERSION: Literal[1] = 1
"""Raised whenever a key of findings.json comes, goes or changes its meaning."""
SCHEMA = "findings.schema.json"  # beside this file; made by scripts/findings_schema.py


@dataclass(frozen=True)
class RatesUsed:
    """The error rates that the answer is judged by: the version of the rule, and what they were measured on."""

    rules: int
    name: str


@dataclass(frozen=True)
class Findings:
    """The content of findings.json: the answer, facts about the run, a finding per question, and the rates.

    Numbers that are undefined, NaN in Python, are null.
    """

    schema_version: Literal[1]
    bottom_line: BottomLine
    about: dict[str, Any]
    findings: list[Finding]
    rates: RatesUsed


def findings_of(audit: AuditResult) -> dict[str, Any]:
    """Return the content of findings.json as JSON values; undefined numbers are null."""
    assert audit.rates is not None
    return {
        "schema_version": VERSION,
        "bottom_line": bottom_line(audit, audit.rates).to_json(),
        "about": audit.about,
        "findings": to_json(audit.findings),
        "rates": {"rules": audit.rates.rules, "name": audit.rates.name},
    }


def findings_schema() -> dict[str, Any]:
    """Return the JSON schema of findings.json, read from the package."""
    text = files("heedmap.runs").joinpath(SCHEMA).read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def made_schema() -> dict[str, Any]:
    """Make the schema from the classes: every key is required, and there is no other."""
    schema = TypeAdapter(Findings).json_schema(
        mode="serialization", schema_generator=_Strict, ref_template="#/$defs/{model}"
    )
    # The sentence is made of the other parts when it is written.
    line = schema["$defs"]["BottomLine"]
    line["properties"]["sentence"] = {"type": "string"}
    line["required"].append("sentence")
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": f"findings.json of heedmap, version {VERSION}",
        **{key: value for key, value in schema.items() if key != "title"},
    }


class _Strict(GenerateJsonSchema):
    """A schema that allows no further keys, and null for a number that is undefined."""

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        tidied: JsonSchemaValue = _tidy(super().generate(schema, mode))
        return tidied

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return {"type": ["number", "null"]}


def _tidy(schema: Any) -> Any:
    """Close every object with named properties, and drop the titles and defaults that only repeat names."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    tidied = {
        key: {name: _tidy(part) for name, part in value.items()}
        if key in ("properties", "$defs")
        else _tidy(value)
        for key, value in schema.items()
        if key not in ("title", "default")
    }
    if "properties" not in schema:
        return tidied
    # Fields with defaults are written like the others.
    return {**tidied, "required": [*schema["properties"]], "additionalProperties": False}
