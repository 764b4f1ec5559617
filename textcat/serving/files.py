"""Read the texts of an uploaded file in a separate process, with limits on its memory and time.

``python -m textcat.serving.files NAME [--main-text]`` reads the file from standard input, and writes its zones (named
texts, such as title and body) as JSON.
"""

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

import orjson

from textcat.base.errors import TextcatError
from textcat.serving.http.problems import Problem

# A file name for each content type: if the client sends no name, the extension of this one determines the format.
NAMES = {
    b"text/html": "file.html",
    b"message/rfc822": "file.eml",
    b"text/markdown": "file.md",
    b"application/pdf": "file.pdf",
    **dict.fromkeys((b"application/xml", b"application/alto+xml", b"application/nitf+xml", b"text/xml"), "file.xml"),
    b"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "file.docx",
}
MEMORY = 1 << 30
_MAIN_TEXT = "--main-text"
_ANSWER = 1 << 26  # maximum bytes of a file's texts
_AT_ONCE = 2  # maximum number of files that are read at the same time
_turns: "dict[asyncio.AbstractEventLoop, asyncio.Semaphore]" = {}


async def read_texts(name: str, data: bytes, seconds: float, *, main_text: bool) -> dict[str, str]:
    """Read a file in a child process; return its texts by zone, such as title and body.

    Raise a Problem if the file cannot be read, or not within `seconds`.

    The extension of `name` indicates the format of the file; `data` is the content of the file. If `main_text` is True,
    the text of a web page is its main text.
    """
    loop = asyncio.get_running_loop()
    turn = _turns.setdefault(loop, asyncio.Semaphore(_AT_ONCE))
    async with turn:
        command = (sys.executable, "-m", __name__, name.replace("\0", ""), *([_MAIN_TEXT] if main_text else []))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            answer, _ = await asyncio.wait_for(process.communicate(data), seconds)
        except asyncio.TimeoutError:
            raise Problem(
                503, f"The file could not be read within {seconds:g} seconds.", {"Retry-After": "1"}
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())
    if process.returncode != 0 or not answer:
        raise Problem(422, "The file cannot be read: it is damaged, or takes more memory than there is for one.")
    result = orjson.loads(answer)
    if "error" in result:
        raise Problem(422, result["error"])
    return dict(result["zones"])


def main() -> None:
    """Read a file from standard input; write its texts by zone, or an error, to standard output as JSON."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    from textcat.reading import text_of_file

    data = sys.stdin.buffer.read()
    try:
        answer: dict[str, Any] = {"zones": text_of_file(sys.argv[1], data, main_text=_MAIN_TEXT in sys.argv[2:])}
    except TextcatError as error:
        answer = {"error": str(error)}
    encoded = json.dumps(answer).encode()
    if len(encoded) > _ANSWER:
        encoded = json.dumps({"error": f"The texts of the file have more than {_ANSWER:,} bytes."}).encode()
    sys.stdout.buffer.write(encoded)


if __name__ == "__main__":
    main()
