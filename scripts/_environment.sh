# Sourced by the scripts beside it: an environment with textcat built in it, and the data beside the checkout.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
venv=${TEXTCAT_VENV:-.venv}

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Prints the first Python that runs and is new enough: a name on the PATH may be a stub that only prints an error.
find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11 python3.10; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "No Python 3.10 or newer found: install one, or name it with PYTHON=/path/to/python3."
}

compiled_sources() { find textcat \( -name '*.pyx' -o -name '*.pxd' -o -name '*.h' \) | LC_ALL=C sort; }

# What an installation depends on. An editable one follows the Python files by itself.
fingerprint() {
    pwd
    "$venv/bin/python" --version
    compiled_sources | tr '\n' '\0' | xargs -0 cksum pyproject.toml setup.py
}

# True if every extension is there and none is older than any compiled source.
extensions_are_fresh() {
    local source built other
    while IFS= read -r source; do
        built=$(find "$(dirname "$source")" -name "$(basename "${source%.pyx}").*.so" | head -n 1)
        [[ -n $built ]] || return 1
        while IFS= read -r other; do
            [[ ! $other -nt $built ]] || return 1
        done < <(compiled_sources)
    done < <(compiled_sources | grep '\.pyx$' && echo textcat/_cython.pyx)
}

# Without network: what an earlier installation left may be all that is needed.
works_already() {
    extensions_are_fresh && "$venv/bin/python" -c 'import importlib, sys
for name in sys.argv[1:]: importlib.import_module(name)' "$@" 2>>"$venv/install.log"
}

install_into_venv() {
    local target=$1 stamp=$2
    shift 2
    local pip=("$venv/bin/python" -m pip --disable-pip-version-check install --quiet --retries 2 --editable "$target")
    say "Installing $target into $venv; the first time takes a minute or two ..."
    if "${pip[@]}" </dev/null >"$venv/install.log" 2>&1 ||
        "${pip[@]}" --no-index --no-build-isolation </dev/null >>"$venv/install.log" 2>&1; then
        fingerprint >"$stamp"
    elif works_already "$@"; then
        say "Could not install (see $venv/install.log); continuing with what $venv already has."
    else
        tail -n 30 "$venv/install.log" >&2
        die "Could not install textcat: the messages above and $venv/install.log say why."
    fi
}

# True if all of these modules are there: a package may have been removed since the installation.
has_modules() {
    "$venv/bin/python" -c 'import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "$@"
}

# ensure_installed TARGET MODULE...: TARGET is "." or ".[extra]"; the modules are those the caller cannot do without.
# Where CI is set, the target is all that there is: each target would compile the modules anew.
ensure_installed() {
    local target=$1
    if [[ ${CI:-false} != false ]]; then target='.[ci]'; fi
    local stamp=$venv/installed-${target//[^a-z]/}
    mkdir -p "$venv"
    (
        # One script at a time builds; where there is no flock (macOS) they take their chance.
        if command -v flock >/dev/null; then flock 9; fi
        if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
            python=$(find_python)
            say "Making $venv with $("$python" --version) ..."
            "$python" -m venv "$venv" >&2 ||
                die "'$python -m venv' failed: where Python comes without it, install it (Debian, Ubuntu: apt install python3-venv)."
        fi
        shift
        if [[ ! -f $stamp ]] || [[ $(fingerprint) != "$(<"$stamp")" ]] || ! extensions_are_fresh || ! has_modules "$@"; then
            install_into_venv "$target" "$stamp" "$@"
        fi
    ) 9>"$venv/lock"
}

# Corpora and data sets that lie beside the checkout are used where they are, unless the caller says otherwise.
use_data_beside_the_checkout() {
    local beside
    beside=$(cd .. && pwd)/shared
    if [[ -d $beside/corpora ]]; then export TEXTCAT_CORPORA=${TEXTCAT_CORPORA-$beside/corpora}; fi
    if [[ -d $beside/datasets ]]; then export TEXTCAT_DATASETS=${TEXTCAT_DATASETS-$beside/datasets}; fi
    if [[ -d $beside/screening ]]; then export TEXTCAT_SCREENING=${TEXTCAT_SCREENING-$beside/screening}; fi
    if [[ -d $beside/news ]]; then export TEXTCAT_NEWS=${TEXTCAT_NEWS-$beside/news}; fi
}

# --- textcat as a user would have it, in an environment of its own: $venv -----------------------------------------------

# What a wheel is made of.
sources=(LICENSE README.md corpora models pyproject.toml setup.py textcat)

pip_install() { "$venv/bin/python" -m pip --disable-pip-version-check install --quiet "$@" </dev/null >"$venv/install.log" 2>&1; }

state() {
    "$venv/bin/python" --version
    find "${sources[@]}" -type f \( -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.toml' -o -name '*.sgm' \) -print0 |
        LC_ALL=C sort -z | xargs -0 cksum
}

# install_copy [EXTRAS]: from a copy, as setuptools leaves a build folder behind, and what lies in there would get into the
# next wheel.
install_copy() {
    local copy
    copy=$(mktemp -d)
    cp -Rp "${sources[@]}" "$copy"
    find "$copy/textcat" \( -name '*.so' -o -name '*.c' \) -delete
    say "Installing textcat into $venv; this takes a minute or two ..."
    if pip_install "$copy${1-}"; then
        state >"$venv/installed"
    else
        tail -n 30 "$venv/install.log" >&2
        rm -rf "$copy"
        die "Could not install textcat: the messages above and $venv/install.log say why."
    fi
    rm -rf "$copy"
}

# ensure_copy_installed [EXTRAS]: EXTRAS such as "[parquet,zst]".
ensure_copy_installed() {
    local python
    if [[ ! -x "$venv/bin/python" ]]; then
        python=$(find_python)
        "$python" -m venv "$venv" >&2 || die "'$python -m venv' failed: where Python comes without it, install it."
    fi
    if [[ ! -f $venv/installed ]] || [[ $(state) != "$(<"$venv/installed")" ]]; then install_copy "${1-}"; fi
}
