"""The documentation. The tutorial works line by line. A real shell and the real option parsers accept all other command lines,
also those of other projects' programs (foreign.py). Generated pages are up to date, and all links have a target."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

import foreign
import tutorial
from machines import BUILD, FOREIGN, ROOT

markdown_it = pytest.importorskip("markdown_it")

PAGES = sorted([*ROOT.glob("*.md"), ROOT / "deploy/helm/allot/README.md", *(ROOT / "docs").rglob("*.md")])
OURS = ("allot", "allotd", "allot-scheduler", "allot-sim")
WITHOUT_COMMANDS = {"comparison", "concepts", "faq", "glossary", "limits", "security"}  # Of docs/guide.
LANGUAGES = {"sh", "yaml", "json", "python", "c", "text"}


def fences(page):
    """Returns [(language, text)] of a page's code blocks."""
    tokens = markdown_it.MarkdownIt("commonmark").parse(page.read_text())
    return [(token.info.strip(), token.content) for token in tokens if token.type == "fence"]


def page_name(page):
    return str(page.relative_to(ROOT))


# ---- the tutorial ----

def test_the_tutorial_works_line_by_line(tmp_path):
    (tmp_path / "build").symlink_to(BUILD)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    tutorial.follow(tmp_path, {**environment, "ALLOT_RUN_DIR": str(tmp_path / "r")}, skipped=[tutorial.BUILD_LINE])


# ---- every other command line ----

RECORDER = """#!/bin/sh
line=$(printf '%s\\037' "$0" "$@")
printf '%s\\n' "$line" >>"$RECORD" # In one write, because the other end of a pipe writes too.
"""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    """Returns a folder like the tree, in which each program only records how it was called."""
    folder = tmp_path_factory.mktemp("recorder")
    places = [f"bin/{name}" for name in (*OURS, *foreign.PROGRAMS, "sudo")]
    places += [f"build/{name}" for name in OURS]
    places += [page_name(path) for path in (ROOT / "scripts").iterdir()] + ["deploy/image/build", "bench/run"]
    for place in places:
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RECORDER)
        path.chmod(0o755)
    # Files that command lines read or write.
    (folder / "build/packages").mkdir()
    (folder / "build/packages/SHA256SUMS").touch()
    return folder


def calls_of(recorder, text):
    """Runs text in a shell whose programs only record calls. Returns [[program, argument, ...]]; programs of the tree are named
    by their path."""
    record = recorder / "record"
    record.write_text("")
    environment = {"PATH": str(recorder / "bin"), "RECORD": str(record), "USER": "alice", "HOME": str(recorder),
                   "SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_SHARDS_ON_NODE": "30"}
    done = subprocess.run(["/bin/bash", "-c", f"{text}\nwait", "bash", "true"], cwd=recorder, env=environment,
                          capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    assert not done.stderr, f"{text}\n{done.stderr}"
    calls = [line.split("\x1f")[:-1] for line in record.read_text().split("\n") if line]
    calls = [call[1:] if call[0].endswith("bin/sudo") else call for call in calls]
    return [[re.sub(f"^({re.escape(str(recorder))}/bin/|(\\./)?build/(?=allot))", "", call[0]), *call[1:]] for call in calls]


def command_lines(page):
    """Yields a page's shell blocks, which a reader would paste."""
    for language, text in fences(page):
        if language == "sh":
            yield text


def commands_in_sentences(page):
    """Yields command lines in a page's sentences and tables."""
    reader = markdown_it.MarkdownIt("commonmark").enable("table")
    for token in reader.parse(page.read_text()):
        for child in token.children or []:
            found = child.type == "code_inline" and re.match(r"(?:sudo )?(?:build/)?([\w-]+) [\w-]", child.content)
            if found and found[1] in (*OURS, *foreign.PROGRAMS):
                yield child.content


def lines_of_manual(path):
    """Yields a manual's command lines: those of its examples, and those in bold in its sentences."""
    text = path.read_text().replace("\\-", "-").replace("\\(aq", "'")
    programs = "|".join(map(re.escape, (*OURS, *foreign.PROGRAMS)))
    for block in re.findall(r"^\.nf\n(.*?)^\.fi", text, re.M | re.S):
        for line in block.splitlines():
            if re.match(rf" *(?:{programs}|scripts/[\w-]+) -?-?\w", line):
                yield line.strip()
    for macro, arguments in re.findall(r"^\.(B|BR|BI|RB) (.*)", text, re.M):
        words = re.findall(r'"([^"]*)"|(\S+)', arguments)
        bold = [arguments.replace('"', "")] if macro == "B" else ["".join(word) for word in words][macro == "RB"::2]
        for line in bold:
            if re.match(rf"(?:{programs}) -?-?[a-z]", line):
                yield line


def check_script(program, *arguments):
    if any(word.startswith("--") for word in arguments):
        done = subprocess.run([ROOT / program, "--help"], capture_output=True, text=True, check=True, timeout=60)
        for word in arguments:
            assert not word.startswith("--") or re.search(rf"{word.partition('=')[0]}\b", done.stdout), (program, word)


def check_call(machine, call):
    """Asserts that the real program accepts these options and values. Returns False, without a check, if it is not
    installed."""
    if call[0] in foreign.PROGRAMS:
        return foreign.check_call(call)
    if call[0] not in OURS:
        return check_script(*call)
    program, *arguments = (re.sub("^(/etc/allot/.*|FILE)$", os.devnull, word) for word in call)
    if program == "allot" and arguments[:1] == ["run"] and "--" in arguments:
        options = arguments[1:arguments.index("--")]
        # Readers have more host memory than the test machine.
        if "swap" in options and "--swap-arena" not in options:
            options += ["--swap-arena", "64MiB"]
        done = machine.allot("run", *(options if "--sim" in options else [*machine.sim, *options]), "--", "true")
    else:
        more = [] if arguments[:1] in (["help"], ["--version"]) else ["--help"]
        done = subprocess.run([BUILD / program, *arguments, *more], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=20)
    assert done.returncode == 0, f"{' '.join(call)}: {done.stderr}"


def check_named(machine, call):
    """Like check_call(), for a call in a sentence, whose last option may be named without its value."""
    *before, last = call
    if call[0] not in OURS or not last.startswith("--"):
        check_call(machine, call)
        return
    check_call(machine, before)
    help_text = subprocess.run([BUILD / before[0], *before[1:], "--help"], capture_output=True, text=True, check=True).stdout
    assert re.search(rf"{last[2:]}\b", help_text), call


@pytest.mark.parametrize("page", [page for page in PAGES if page != tutorial.TUTORIAL], ids=page_name)
def test_command_lines(recorder, machine2, page):
    seen = 0
    for text in command_lines(page):
        for call in calls_of(recorder, text):
            check_call(machine2, call)
            seen += 1
    if page.parent.name == "guide" and page.stem not in WITHOUT_COMMANDS:
        assert seen, "a guide without a command"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_in_sentences(recorder, machine2, page):
    for text in commands_in_sentences(page):
        for call in calls_of(recorder, re.sub(r"[<>]|\.\.\.", "", text)):
            check_named(machine2, call)


def test_command_lines_of_manuals(recorder, machine2):
    seen = 0
    for path in sorted((ROOT / "docs/reference").glob("*.[1-8]")):
        for line in lines_of_manual(path):
            for call in calls_of(recorder, line):
                check_named(machine2, call)
                seen += 1
    assert seen > 60


def test_wrong_lines_are_found(recorder, machine2):
    for line in ("allot run --memry 4GiB -- true", "allot run --memory 4GB2 -- true", "allotd --chek-config x",
                 "allot cordn GPU", "allot set eval --core 3", "scripts/package --quik deb", "sleep --forever",
                 "nvidia-ctk cdi generate --outputs=x", "srun --gress=shard:1 shared python3 x"):
        call, = calls_of(recorder, line)
        with pytest.raises(AssertionError):
            check_call(machine2, call)
    for line in ("alot ps", "scripts/biuld", "if then"):
        with pytest.raises(AssertionError):
            calls_of(recorder, line)


@pytest.mark.parametrize("line", ["kubectl lable node NODE x=y", "kubectl label node NODE x=y --overwite",
                                  "podman run --devices x IMAGE", "systemctl enabel allotd", "systemctl enable --new allotd"])
def test_wrong_lines_of_other_programs_are_found(recorder, line):
    call, = calls_of(recorder, line)
    if not shutil.which(call[0]):
        pytest.skip(f"no {call[0]} here")
    with pytest.raises(AssertionError):
        foreign.check_call(call)


READERS = {"yaml": lambda text: list(yaml.safe_load_all(text)), "json": json.loads,
           "python": lambda text: compile(text, "block", "exec")}


def test_blocks_of_a_language_are_well_formed():
    seen = set()
    for page in PAGES:
        for language, text in fences(page):
            assert language in LANGUAGES, f"{page_name(page)}: a block must say its language:\n{text}"
            if language in READERS:
                READERS[language](text)
                seen.add(language)
    assert seen == READERS.keys()


# ---- the site ----

def test_the_site_has_no_wrong_links(python, tmp_path):
    done = subprocess.run([python, ROOT / "scripts/docs", "--links", tmp_path / "site"], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong links" in done.stdout
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 25
    text = (tmp_path / "site/guide/tutorial.html").read_text()
    assert "<title>Three jobs on one GPU" in text and "<script" not in text


def test_a_wrong_link_is_found(tmp_path):
    site = pathlib.Path(tmp_path / "site")
    site.mkdir()
    (site / "style.css").write_text("a { color: red }")
    (site / "a.html").write_text('<h1 id="x">x</h1><a href="#x">a</a><a href="b.html">b</a><a href="#y">c</a>'
                                 '<img src="https://example.com/x.png"><script>x</script>')
    code = ("import importlib.machinery, pathlib, sys; docs = importlib.machinery.SourceFileLoader('docs', sys.argv[1])"
            ".load_module(); print(*docs.check(pathlib.Path(sys.argv[2])), sep='\\n')")
    done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", code, ROOT / "scripts/docs", site], check=True,
                          capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == 4, done.stdout
    for what in ("leads nowhere: b.html", "no such heading: #y", "asks another machine: https://example.com/x.png"):
        assert what in done.stdout


def test_pages_of_settings_are_up_to_date():
    made = subprocess.run([ROOT / "scripts/settings-page", BUILD], capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "docs/reference/settings.md").read_text(), "scripts/settings-page >docs/reference/settings.md"
    done = subprocess.run([ROOT / "scripts/manual-pages", "--check", BUILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_figures_of_the_comparison_are_in_the_evaluation():
    """The comparison's table of shares, except the column with figures from other measurements."""
    measured = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", (ROOT / "docs/reference/evaluation.md").read_text())]
    text = (ROOT / "docs/guide/comparison.md").read_text().split("## Shares that were asked for, and got")[1].split("##")[0]
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    columns = [i for i, name in enumerate(head) if name.endswith("(E)")]
    numbers = [number for row in rows for i in columns for number in re.findall(r"\d+(?:\.\d+)?", row[i])]
    assert len(columns) == 3 and len(numbers) > 20
    for number in numbers:
        decimals = len(number.partition(".")[2])
        assert any(abs(round(one, decimals) - float(number)) < 1e-9 for one in measured), number


def test_figures_of_the_comparison_in_a_cluster_are_in_the_evaluation():
    measured = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", (ROOT / "docs/reference/evaluation.md").read_text())]
    text = (ROOT / "docs/guide/comparison.md").read_text().split("## In a cluster")[1].split("##")[0]
    row, = (line for line in text.splitlines() if "`servers`" in line)
    numbers = re.findall(r"\d+(?:\.\d+)?", re.sub(r"\[\[\d\]\]|99th", "", row))
    numbers += re.findall(r"it got (\d+\.\d+) % \(E:", text)
    assert len(numbers) == 11
    for number in numbers:
        decimals = len(number.partition(".")[2])
        assert any(abs(round(one, decimals) - float(number)) < 1e-9 for one in measured), number


def test_links_between_files_have_a_target():
    """Links as readers of the files see them, because README.md and the chart's are not pages of the site."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not re.match(r"\w+:", target):
                assert (page.parent / target).exists(), f"{page_name(page)}: {target}"
