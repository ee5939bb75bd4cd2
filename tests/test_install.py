"""The scripts that install Java and PostgreSQL, on machines made of fake programs.

A machine is a folder: programs on a PATH of their own, and copies of the scripts that look for
Java and PostgreSQL below that folder instead of below `/`. Every fake package manager and `sudo`
writes down how it was called.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"
TOOLS = "bash cp dirname env grep head mkdir mktemp rm sed tail tee true".split()
FOLDERS = ("/usr/lib/", "/usr/local/opt/", "/opt/homebrew/", "/etc/")
WHAT = {"java": "Java 17+", "postgres": "PostgreSQL"}

FAKE_JAVA = """#!/bin/bash
echo 'openjdk version "{version}.0.1"' >&2
echo '    java.home = {home}' >&2
"""

# A manager that knows the packages in $PACKAGES, and puts down what the package brings.
FAKE_MANAGER = """#!/bin/bash
echo "{name} $*" >>"$LOG"
[[ " $* " == *" update "* ]] && exit 0
package=${{@: -1}}
if [[ " $PACKAGES " != *" $package "* ]]; then
  echo "E: Unable to locate package $package"
  exit 100
fi
mkdir -p "$BRINGS" && cp "$ROOT/packed/"* "$BRINGS/"
"""

FAKE_SUDO = """#!/bin/bash
echo "sudo $*" >>"$LOG"
[[ "$1" == -n ]] && shift
exec "$@"
"""

NO_SUDO = "#!/bin/bash\necho 'sudo: a password is required' >&2\nexit 1\n"


@dataclass
class Machine:
    """A folder that stands for a machine."""

    root: Path

    def program(self, name: str, text: str, folder: str = "bin") -> Path:
        path = self.root / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def java(self, version: int, folder: str) -> None:
        home = (self.root / folder).parent
        self.program("java", FAKE_JAVA.format(version=version, home=home), folder)

    def manager(self, *names: str) -> None:
        for name in names:
            self.program(name, FAKE_MANAGER.format(name=name))

    def user(self, number: int) -> None:
        self.program("id", f"#!/bin/bash\necho {number}\n")

    def install(self, thing: str, packages: str = "") -> subprocess.CompletedProcess[str]:
        brings = "usr/lib/jvm/java-17/bin" if thing == "java" else "usr/lib/postgresql/15/bin"
        environment = {
            "PATH": str(self.root / "bin"),
            "LOG": str(self.root / "log"),
            "ROOT": str(self.root),
            "PACKAGES": packages,
            "BRINGS": str(self.root / brings),
            "TMPDIR": str(self.root / "tmp"),
        }
        command = [str(self.root / "scripts" / f"install_{thing}.sh")]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    @property
    def calls(self) -> list[str]:
        log = self.root / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a root user and nothing to install with."""
    made = Machine(tmp_path)
    for folder in ("bin", "scripts", "tmp", "packed"):
        (tmp_path / folder).mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (tmp_path / "bin" / tool).symlink_to(found)
    for script in SCRIPTS.glob("*.sh"):
        text = script.read_text()
        for folder in FOLDERS:
            text = text.replace(f" {folder}", f" {tmp_path}{folder}")
            text = text.replace(f"={folder}", f"={tmp_path}{folder}")
        copy = tmp_path / "scripts" / script.name
        copy.write_text(text)
        copy.chmod(script.stat().st_mode)
    made.java(17, "packed")
    made.program("initdb", "#!/bin/bash\n", "packed")
    made.user(0)
    return made


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("folder", ["bin", "usr/lib/jvm/java-21/bin"])
def test_java_that_is_there_is_left_alone(machine: Machine, folder: str, user: int) -> None:
    machine.java(21, folder)
    machine.manager("apt-get", "dnf")
    machine.user(user)
    done = machine.install("java")
    assert (done.returncode, lines(done), machine.calls) == (0, [], [])


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("folder", ["bin", "usr/lib/postgresql/16/bin"])
def test_postgres_that_is_there_is_left_alone(machine: Machine, folder: str, user: int) -> None:
    machine.program("initdb", "#!/bin/bash\n", folder)
    machine.manager("apt-get")
    machine.user(user)
    done = machine.install("postgres")
    assert (done.returncode, lines(done), machine.calls) == (0, [], [])
    assert not (machine.root / "etc").exists()


APT = "apt-get -o DPkg::Lock::Timeout=120"
INSTALLATIONS = [
    ("java", "apt-get", "openjdk-17-jre-headless"),
    ("java", "dnf", "java-17-openjdk-headless"),
    ("java", "apk", "openjdk17-jre-headless"),
    ("java", "brew", "openjdk@17"),
    ("postgres", "apt-get", "postgresql"),
    ("postgres", "dnf", "postgresql-server"),
    ("postgres", "apk", "postgresql"),
    ("postgres", "brew", "postgresql@17"),
]
COMMANDS = {
    "apt-get": [f"{APT} update -qq", f"{APT} install -y -qq --no-install-recommends {{}}"],
    "dnf": ["dnf install -y -q {}"],
    "apk": ["apk update --quiet", "apk add --quiet {}"],
    "brew": ["brew install --quiet {}"],
}


@pytest.mark.parametrize(("thing", "manager", "package"), INSTALLATIONS)
def test_missing_is_installed_once(
    machine: Machine, thing: str, manager: str, package: str
) -> None:
    machine.manager(manager)
    machine.user(1000 if manager == "brew" else 0)
    done = machine.install(thing, packages=package)
    assert done.returncode == 0, lines(done)
    assert lines(done) == [f"Installing {WHAT[thing]} with {manager} …"]
    assert machine.calls == [command.format(package) for command in COMMANDS[manager]]
    assert lines(machine.install(thing)) == []
    assert list((machine.root / "tmp").iterdir()) == []


def test_newer_java_where_the_system_no_longer_has_17(machine: Machine) -> None:
    machine.manager("apt-get")
    done = machine.install("java", packages="openjdk-21-jre-headless")
    assert done.returncode == 0, lines(done)
    assert [call.split()[-1] for call in machine.calls] == [
        "-qq",
        "openjdk-17-jre-headless",
        "openjdk-21-jre-headless",
    ]


def test_old_java_does_not_count(machine: Machine) -> None:
    machine.java(11, "bin")
    machine.manager("apt-get")
    assert machine.install("java", packages="openjdk-17-jre-headless").returncode == 0
    assert len(machine.calls) == 2


def test_package_that_brings_an_old_java_is_not_enough(machine: Machine) -> None:
    machine.java(11, "packed")
    machine.manager("dnf")
    done = machine.install("java", packages="java-17-openjdk-headless")
    assert done.returncode == 1
    assert "sudo dnf install java-17-openjdk-headless" in lines(done)[-1]


def test_sudo_is_used_and_passes_the_environment_on(machine: Machine) -> None:
    machine.manager("apt-get")
    machine.user(1000)
    machine.program("sudo", FAKE_SUDO)
    assert machine.install("java", packages="openjdk-17-jre-headless").returncode == 0
    assert [c for c in machine.calls if c.startswith("sudo")] == [
        "sudo -n true",
        f"sudo -n {APT} update -qq",
        f"sudo -n env DEBIAN_FRONTEND=noninteractive {APT} install -y -qq "
        "--no-install-recommends openjdk-17-jre-headless",
    ]


def test_debian_starts_no_server_of_its_own(machine: Machine) -> None:
    machine.manager("apt-get")
    assert machine.install("postgres", packages="postgresql").returncode == 0
    settings = machine.root / "etc/postgresql-common/createcluster.conf"
    assert settings.read_text() == "create_main_cluster = false\n"


@pytest.mark.parametrize("sudo", [None, NO_SUDO])
@pytest.mark.parametrize(
    ("thing", "manager", "package"), [i for i in INSTALLATIONS if i[1] != "brew"]
)
def test_not_allowed_says_how_in_one_line(
    machine: Machine, thing: str, manager: str, package: str, sudo: str | None
) -> None:
    machine.manager(manager)
    machine.user(1000)
    if sudo is not None:
        machine.program("sudo", sudo)
    done = machine.install(thing, packages=package)
    assert done.returncode != 0
    assert machine.calls == []
    (line,) = lines(done)
    assert line.startswith(f"{WHAT[thing]} was not found")
    assert f" {package}" in line
    assert not (machine.root / "etc").exists()


@pytest.mark.parametrize("thing", WHAT)
def test_no_package_manager_says_so_in_one_line(machine: Machine, thing: str) -> None:
    done = machine.install(thing)
    (line,) = lines(done)
    assert done.returncode != 0
    assert line.startswith(f"{WHAT[thing]} was not found, and no package manager is known here.")


def test_failed_installation_tells_the_managers_last_words(machine: Machine) -> None:
    machine.manager("apt-get")
    done = machine.install("postgres")
    assert done.returncode != 0
    assert "apt-get failed (E: Unable to locate package postgresql)" in lines(done)[-1]
    assert len(lines(done)) == 2  # what it begins, and how it ended


def test_scripts_can_be_run() -> None:
    for name in ("find_java.sh", "install_java.sh", "install_postgres.sh"):
        assert os.access(SCRIPTS / name, os.X_OK), name
