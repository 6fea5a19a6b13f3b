"""Say in heedmap's words what a value should have been, of an error of pydantic's."""

from pydantic import ValidationError

_KINDS = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    # A path's bytes, which Python keeps as surrogates.
    "string_unicode": "letters in UTF-8; give the file or the folder another name",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
}


def expected(error: ValidationError) -> tuple[str, object]:
    """Return what the first invalid value should have been, as a clause, and the value that came."""
    problem = error.errors(include_url=False)[0]
    message: str = problem["msg"]
    kind = _KINDS.get(problem["type"])
    if kind is not None:
        limits = problem.get("ctx", {})
        said = "expected " + kind.format(**{k: f"{limit:.17g}" for k, limit in limits.items()})
    elif message.startswith("Input should be "):
        said = "expected " + message.removeprefix("Input should be ")
    else:
        said = f"{message[:1].lower()}{message[1:]}"
    return said, problem["input"]
