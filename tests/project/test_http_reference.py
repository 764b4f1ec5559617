"""The reference of the HTTP API is what the server's OpenAPI description says.

``python tests/project/test_http_reference.py --write`` writes docs/reference/http.md anew.
"""

import json
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/http.md"
MARK = "--write`. -->\n"  # behind which the page is written
OF_DOCUMENT = ("text", "zones", "language", "date", "fields")  # described once for all requests


def description():
    from textcat.serving.store import Store
    from textcat.serving.tagging import Service

    return Service(Store({})).openapi()


def page_of(described):
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    parts = [head, mark]
    schemas = described["components"]["schemas"]
    tag = described["paths"]["/api/v1/models/{model}/tag"]["post"]["requestBody"]["content"]["application/json"]
    rows = rows_of(tag["schema"], schemas)
    parts.append("\n## A document\n\nIt has `text` or `zones`.\n")
    parts.append(table("", {name: rows[name] for name in OF_DOCUMENT}, (), schemas))
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
    forms = forms_of(schema, schemas)
    if forms[0].get("type") == "array":
        return fields(f"{title}: a list of objects", forms[0]["items"], schemas)
    rows = rows_of(schema, schemas)
    if rows.keys() >= {*OF_DOCUMENT}:
        title += ": the fields of a [document](#a-document), and"
        rows = {name: field for name, field in rows.items() if name not in OF_DOCUMENT}
    if title.startswith("Response") and {"model", "version"} < rows.keys():  # the head of the page explains them
        del rows["model"], rows["version"]
    needed = set.intersection(*({*form.get("required", ())} for form in forms))
    return table(title, rows, needed, schemas) if rows else ""


def forms_of(schema, schemas):
    return [resolved(form, schemas) for form in schema.get("oneOf", [schema])]


def rows_of(schema, schemas):
    """Return the fields of an object by name, or those of several forms of it together."""
    return {name: field for form in forms_of(schema, schemas) for name, field in form.get("properties", {}).items()}


def table(title, rows, needed, schemas):
    """Return a table of fields without its empty columns, or a sentence if only names and types are left.

    In a request, fields that are needed are marked, and others have their defaults.
    """
    of_answer, lines = title.startswith("Response"), [("field", "type", "default", "meaning")]
    for name, field in rows.items():
        kind, meaning = type_of(field, schemas), " ".join(field.get("description", "").split())
        default = field.get("default")
        told = "needed" if name in needed else "" if default in (None, "") else f"`{json.dumps(default)}`"
        lines.append((f"`{name}`", kind, "" if of_answer else told, meaning))
    columns = [k for k in range(4) if any(cells[k] for cells in lines[1:])]
    if len(columns) == 2 and of_answer:
        return f"\n{title}: {', '.join(f'{name} ({kind})' for name, kind, *_ in lines[1:])}.\n"
    written = [" | ".join(cells[k].replace("|", chr(92) + "|") for k in columns) for cells in lines]
    head = f"\n{title}:\n" if title else ""
    return f"{head}\n| {written[0]} |\n|{'---|' * len(columns)}\n" + "".join(f"| {line} |\n" for line in written[1:])


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
