"""Read options of commands from environment variables and from a configuration file.

The command line takes precedence over the environment, and the environment over the file.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from textcat.base.errors import TextcatError, did_you_mean

_FLAGS = {"help"}  # options that cannot be set elsewhere
_PRECEDENCE = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP")  # names of click's sources; the last one is the file
_Command = TypeVar("_Command", bound=Callable[..., Any])


def name_variables(command: Any, path: list[str]) -> None:
    """Set the environment variables of a command's options and arguments: TEXTCAT_SERVE_PORT for `serve --port`.

    `path` has the names of the command and its groups. A TextcatError is raised if a variable begins with the command's
    name but matches none of its options. The help does not list the variables.
    """
    start, variables = _variable("TEXTCAT", *path, ""), set()
    for key, parameter in keys_of(command).items():
        parameter.envvar, parameter.show_envvar = _variable("TEXTCAT", *path, key), False
        variables.add(parameter.envvar)
    for variable in sorted(os.environ):
        if variable.startswith(start) and variable not in variables:
            similar = did_you_mean(variable, variables)
            raise TextcatError(
                f"`textcat {' '.join(path)}` has no option for the variable {variable}: unset it.{similar}"
            )


def alternatives(*pairs: str) -> Callable[[_Command], _Command]:
    """Return a decorator of a command, given pairs of its parameters that exclude each other, such as "out stdout"."""

    def decorate(command: _Command) -> _Command:
        command.alternatives = [pair.split() for pair in pairs]  # type: ignore[attr-defined]
        return command

    return decorate


def drop_overridden(context: Any) -> None:
    """Reset a parameter to its default if one that excludes it comes from a source of higher precedence.

    If both come from the same source, neither changes, and the command refuses them.
    """
    parameters = {parameter.name: parameter for parameter in context.command.params}
    for pair in getattr(context.command.callback, "alternatives", ()):
        given = [name for name in pair if context.params[name] not in (parameters[name].default, None, [], ())]
        ranks = [_PRECEDENCE.index(context.get_parameter_source(name).name) for name in given]
        if len({*ranks}) == 2:
            name = given[ranks.index(max(ranks))]
            context.params[name] = parameters[name].default


def _variable(*names: str) -> str:
    return "_".join(names).upper().replace("-", "_")


def keys_of(command: Any) -> dict[str, Any]:
    """Return the options and arguments of a command, by the keys that a configuration file uses for them."""
    return {_key(parameter): parameter for parameter in command.params if parameter.name not in _FLAGS}


def origin_of(error: Any) -> str:
    """Return the origin of a usage error's value (a variable or the configuration file), to append to the message.

    "" stands for the command line.
    """
    context, parameter = error.ctx, getattr(error, "param", None)
    source = context and parameter and context.get_parameter_source(parameter.name)
    name = source.name if source else ""
    origins = {"ENVIRONMENT": f" (in {parameter and parameter.envvar}).", "DEFAULT_MAP": " (in the configuration)."}
    return origins.get(name, "")


def read_configuration(path: Path, program: Any) -> dict[str, Any]:
    """Return the values of a configuration file as click's `default_map`: by command, and by the parameter's name.

    The file is TOML: a table per command, in which a key is the name of an option without its dashes, or of an
    argument. All values are returned as texts, so that they are checked as on a command line; empty paths are left out.
    """
    from textcat.base.settings import read_toml

    return _values(read_toml(path, "configuration"), program, str(path), "")


def _values(table: Mapping[str, Any], group: Any, file: str, path: str) -> dict[str, Any]:
    commands, values = getattr(group, "commands", {}), dict[str, Any]()
    keys = keys_of(group) if path else {}
    for key, value in table.items():
        if key in commands and isinstance(value, Mapping):
            values[key] = _values(value, commands[key], file, f"{path} {key}")
        elif key in keys and value == "" and keys[key].type_descriptor.annotation is Path:
            continue  # no file
        elif key in keys:
            values[keys[key].name] = _as_texts(value, keys[key], f"{file}: {key} of `textcat{path}`")
        elif path:
            raise TextcatError(f"{file}: `textcat{path}` has no option {key}.{did_you_mean(key, [*keys, *commands])}")
        else:
            similar = did_you_mean(key, commands)
            raise TextcatError(f"{file}: {key} is not the table of a command, as [serve] is: mend it.{similar}")
    return values


def _as_texts(value: Any, parameter: Any, place: str) -> Any:
    several = parameter.multiple or parameter.nargs == -1
    if several and isinstance(value, list):
        return [_as_text(part, place) for part in value]
    return [_as_text(value, place)] if several else _as_text(value, place)


def _as_text(value: Any, place: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise TextcatError(f"{place} is {value!r:.80}: give a text, a number, or true or false.")


def _key(parameter: Any) -> str:
    """Return the name of an option or argument in a configuration file."""
    names: Iterator[str] = (name.removeprefix("--") for name in parameter.opts if name.startswith("--"))
    return next(names, str(parameter.name))
