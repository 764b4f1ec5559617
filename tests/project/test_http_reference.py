"""The reference of the HTTP API is what the server's OpenAPI description says.

``python tests/project/test_http_reference.py --write`` writes docs/reference/http.md anew.
"""

import json
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/http.md"
MARK = "--write`. -->\n"  # behind which the page is written


def description():
    from textcat.serving.store import Store
    from textcat.serving.tagging import Service

    return Service(Store({})).openapi()


def page_of(described):
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    parts = [head, mark]
    schemas = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            parts.append(f"\n## `{method.upper()} {path}`\n\n{' '.join(route['description'].split())}\n")
            parameters = [one for one in route.get("parameters", ()) if one["in"] != "path"]
            if parameters:
                rows = {one["name"]: one["schema"] | {"description": one.get("description", "")} for one in parameters}
                needed = {one["name"] for one in parameters if one.get("required")}
                parts.append(table("In the URL", rows, needed, schemas))
            content = route.get("requestBody", {}).get("content", {})
            for kind, body in content.items():
                parts.append(fields(f"Request, `{kind}`", body["schema"], schemas))
            for body in route["responses"]["200"].get("content", {}).values():
                parts.append(fields("Response", body["schema"], schemas))
    return "".join(filter(None, parts))


def fields(title, schema, schemas):
    """Return a table of the fields of an object, or of those of several forms of it together."""
    forms = [resolved(form, schemas) for form in schema.get("oneOf", [schema])]
    if forms[0].get("type") == "array":
        return fields(f"{title}: a list of objects", forms[0]["items"], schemas)
    rows = {name: field for form in forms for name, field in form.get("properties", {}).items()}
    if title.startswith("Response") and {"model", "version"} < rows.keys():  # the head of the page explains them
        del rows["model"], rows["version"]
    needed = set.intersection(*({*form.get("required", ())} for form in forms))
    return table(title, rows, needed, schemas) if rows else ""


def table(title, rows, needed, schemas):
    """Return a table of fields; in a request, those that are needed are marked, and others have their defaults."""
    of_answer = title.startswith("Response")
    columns = ["field", "type", *([] if of_answer else ["default"]), "meaning"]
    lines = [f"\n{title}:\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"]
    for name, field in rows.items():
        kind, meaning = type_of(field, schemas), " ".join(field.get("description", "").split())
        default = field.get("default")
        told = "needed" if name in needed else "" if default in (None, "") else f"`{json.dumps(default)}`"
        cells = [f"`{name}`", kind, *([] if of_answer else [told]), meaning]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n")
    return "".join(lines)


def type_of(field, schemas):
    for choice in ("anyOf", "oneOf"):
        if choice in field:
            return " or ".join(dict.fromkeys(type_of(one, schemas) for one in field[choice]))
    field = resolved(field, schemas)
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {type_of(field.get('items', {}), schemas)}"
    if kind == "object" and "properties" in field:
        return f"object: {', '.join(f'`{name}`' for name in field['properties'])}"
    return kind


def resolved(schema, schemas):
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def test_the_page_is_what_the_server_says_of_itself():
    for package in ("fastapi", "prometheus_client", "uvicorn"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    assert PAGE.read_text(encoding="utf-8") == page_of(description()), f"run `python {Path(__file__).name} --write`"


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page_of(description()), encoding="utf-8")
