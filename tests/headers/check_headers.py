#!/usr/bin/env python3
"""Holds src/abi against one official cuda.h.

    check_headers.py INCLUDE_DIR ABSENT_FILE [--write]

Prototypes: every row of DRIVER_TABLE and of the lists of calls has exactly the type that cuda.h, cudaGL.h or
cudaVDPAU.h declares.
Layouts: every structure, field, enumerator and constant of cuda_abi.h has cuda.h's size, place, value.
Versions: of a name that cudaTypedefs.h and its like have (PFN_<base>_v<version>, with _ptsz or
_ptds), driver_versions.h has forms of these versions and no others, as far as these headers are new
enough; each is a symbol that the driver exports, and its prototype is the type of its version.
What this version of cuda.h lacks must be what ABSENT_FILE lists, a name a line; --write writes it.

Prints "ok NAME" or "not ok NAME" for each, reasons below it, and ends with 1 when one is not.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CC = os.environ.get("CC", "cc").split()
STUBS = ROOT / "tests/headers/stubs"
EXPORTS = ROOT / "tests/headers/exports-580.txt"
OFFICIAL = """#define __CUDA_API_VERSION_INTERNAL
#include <vdpau/vdpau.h>
#include <cuda.h>
#include <cudaGL.h>
#include <cudaVDPAU.h>
"""

WITH_OFFICIAL = ("cudaTypedefs.h", "cudaGLTypedefs.h", "cudaVDPAUTypedefs.h")
# The others' own headers are not there.
TYPEDEFS = WITH_OFFICIAL + ("cudaProfilerTypedefs.h", "cudaEGLTypedefs.h")

PRINT_ROWS = """
#include "abi/driver_table.h"
#define HOOK_ROW(symbol, hook, params, args) @row@ symbol @:@ params @end@
#define WORK_ROW(symbol, streams, params, args, work) @row@ symbol @:@ params @end@
#define CALL_ROW(symbol, params) @row@ symbol @:@ params @end@
DRIVER_TABLE(HOOK_ROW, WORK_ROW)
DRIVER_CALLS(CALL_ROW)
DRIVER_CHECKPOINT_CALLS(CALL_ROW)
"""


def run_cc(text, *options):
    return subprocess.run(
        CC + ["-std=gnu11", "-x", "c", *options, "-"],
        input=text, capture_output=True, text=True, check=False)


def preprocess(text, include):
    result = run_cc(text, "-E", "-P", f"-I{include}", f"-I{STUBS}")
    if result.returncode:
        sys.exit(f"check_headers: {result.stderr.strip()}")
    return result.stdout


def table_rows():
    """[(symbol, params)], in order, each once."""
    text = preprocess(PRINT_ROWS, ROOT / "src")
    rows = re.findall(r"@row@\s*(\w+)\s*@:@\s*(.*?)\s*@end@", text, re.DOTALL)
    return list(dict((symbol, " ".join(params.split())) for symbol, params in rows).items())


def version_rows():
    """(the newest version that is known, {(base, version, "", _ptsz or _ptds): [symbols]})"""
    text = preprocess('#include "abi/driver_versions.h"\n'
                      "#define SINCE(version, symbol) @row@ version symbol @end@\n"
                      "@newest@ DRIVER_VERSIONS_NEWEST @end@ DRIVER_VERSIONS(SINCE)\n",
                      ROOT / "src")
    rows = {}
    for version, symbol in re.findall(r"@row@ (\d+) (\w+) @end@", text):
        base, twin = re.fullmatch(r"(\w+?)(?:_v\d+)?(_ptsz|_ptds)?", symbol).groups("")
        rows.setdefault((base, int(version), twin), []).append(symbol)
    return int(re.search(r"@newest@ (\d+) @end@", text)[1]), rows


def own_facts():
    """[(name, C expression, its value by our own header)] of all that cuda_abi.h lays down."""
    text = (ROOT / "src/abi/cuda_abi.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    expressions = []
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)^\} (\w+);", text,
                                 re.DOTALL | re.MULTILINE):
        expressions.append((name, f"sizeof({name})"))
        flat = re.sub(r"struct \{(.*?)\} (\w+);", lambda m: nested(m[1], m[2]), body,
                      flags=re.DOTALL)
        for declaration in flat.split(";"):
            field = re.search(r"([\w.]+)\s*(\[\w+\])?\s*$", declaration.strip())
            if field and not field[1].split(".")[-1].startswith("reserved"):
                expressions.append((f"{name}.{field[1]}", f"offsetof({name}, {field[1]})"))
                expressions.append((f"{name}.{field[1]}", f"sizeof((({name} *)0)->{field[1]})"))
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", text, re.DOTALL):
        expressions += [(name, name) for name in re.findall(r"\b(CU\w+)\s*=", body)]
    expressions += [(name, f"(size_t){name}")
                    for name in re.findall(r"#define (CU\w+) (?!\\)\S", text)]
    program = '#include <stdio.h>\n#include "abi/cuda_abi.h"\nint main(void)\n{\n'
    program += "".join(f'printf("%llu\\n", (unsigned long long)({e}));\n' for _, e in expressions)
    program += "return 0;\n}\n"
    with tempfile.TemporaryDirectory() as scratch:
        binary = f"{scratch}/facts"
        result = run_cc(program, f"-I{ROOT}/src", "-o", binary)
        if result.returncode:
            sys.exit(f"check_headers: {result.stderr.strip()}")
        values = subprocess.run([binary], capture_output=True, text=True, check=True).stdout.split()
    return [(name, expression, value) for (name, expression), value in zip(expressions, values)]


def nested(body, outer):
    return "".join(re.sub(r"(\w+)(\s*(?:\[\w+\])?)\s*$", rf"{outer}.\1\2", part.strip()) + ";"
                   for part in body.split(";") if part.strip())


def failures(include, lines, headers=""):
    """Compiles one statement a line after the official headers; {line index: first error}."""
    found = {}
    text = OFFICIAL + headers + '#include <stddef.h>\n#line 1 "checks"\n' + "\n".join(lines) + "\n"
    result = run_cc(text, "-fsyntax-only", "-w", f"-I{include}", f"-I{STUBS}",
                    "-fdiagnostics-color=never",
                    "-ferror-limit=0" if "clang" in CC[0] else "-fmax-errors=0")
    for match in re.finditer(r"^checks:(\d+):\d+: (?:fatal )?error: (.*)$", result.stderr,
                             re.MULTILINE):
        found.setdefault(int(match[1]) - 1, match[2])
    if result.returncode and not found:
        sys.exit(f"check_headers: {result.stderr.strip()}")
    return found


def check_prototypes(include, absent):
    declared = set(re.findall(r"\b(cu[A-Z]\w*)\s*\(", preprocess(OFFICIAL, include)))
    rows = table_rows()
    if len(rows) < 100:
        return [f"only {len(rows)} rows read: the table's form has changed"]
    absent.update(symbol for symbol, _ in rows if symbol not in declared)
    present = [row for row in rows if row[0] in declared]
    lines = [f"_Static_assert(__builtin_types_compatible_p(__typeof__(&{symbol}), "
             f"CUresult (*){params}), \"\");" for symbol, params in present]
    return [f"{present[i][0]}{present[i][1]}: not as cuda.h declares it ({error})"
            for i, error in sorted(failures(include, lines).items())]


def check_layouts(include, absent):
    facts = own_facts()
    if len(facts) < 200:
        return [f"only {len(facts)} facts read: cuda_abi.h's form has changed"]
    lines = [f'_Static_assert({expression} == {value}ULL, "");' for _, expression, value in facts]
    wrong = []
    for i, error in sorted(failures(include, lines).items()):
        name, expression, value = facts[i]
        if "." in name and name.split(".")[0] in absent:
            continue    # of a structure that is not there, told before
        if "no member" in error or "undeclared" in error or "unknown type" in error:
            absent.add(name)
        else:
            wrong.append(f"{expression} is {value} here and not in cuda.h ({error})")
    return wrong


def typed_names(include):
    """{(base, version, twin): the header} of the PFN_ types."""
    names = {}
    for name in TYPEDEFS:
        path = include / name
        for base, version, twin in re.findall(r"\*\s*PFN_(\w+?)_v(\d+)(_ptsz|_ptds)?\)\(",
                                              path.read_text() if path.exists() else ""):
            names[base, int(version), twin] = name
    return names


def check_types(include, rows, typed):
    """That each form has the type that is named for its version."""
    declared = set(re.findall(r"\b(cu[A-Z]\w*)\s*\(", preprocess(OFFICIAL, include)))
    both = [(symbols[0], "PFN_{}_v{}{}".format(*row)) for row, symbols in rows.items()
            if typed.get(row) in WITH_OFFICIAL and symbols[0] in declared]
    if len(both) < 400:
        return [f"only {len(both)} types compared"]
    headers = "".join(f"#include <{name}>\n" for name in WITH_OFFICIAL)
    lines = [f"_Static_assert(__builtin_types_compatible_p(__typeof__(&{symbol}), {name}), \"\");"
             for symbol, name in both]
    return [f"{both[i][0]}: not of the type {both[i][1]} ({error})"
            for i, error in sorted(failures(include, lines, headers).items())]


def check_versions(include, version):
    """`version` is that of the headers."""
    newest, rows = version_rows()
    typed = typed_names(include)
    if len(rows) < 400 or len(typed) < 400:
        return [f"only {len(rows)} rows and {len(typed)} types read: their form has changed"]
    exported = set(EXPORTS.read_text().split())
    bases = {base for base, _, _ in typed}
    wrong = [f"{' '.join(symbols)}: of the same version" for symbols in rows.values()
             if len(symbols) > 1]
    wrong += [f"{symbol}: no driver has it" for symbols in rows.values() for symbol in symbols
              if symbol not in exported]
    wrong += ["PFN_{}_v{}{}: driver_versions.h has no such form".format(*row)
              for row in sorted(set(typed) - set(rows)) if row[1] <= newest and row[0] in exported]
    wrong += ["{}: the headers have no PFN_{}_v{}{}".format(rows[row][0], *row)
              for row in sorted(set(rows) - set(typed)) if row[0] in bases and row[1] <= version]
    return wrong + check_types(include, rows, typed)


def compare_absent(path, absent, write):
    if write:
        path.write_text("".join(f"{name}\n" for name in sorted(absent)))
    known = set(path.read_text().split()) if path.exists() else set()
    return ([f"{name}: absent from this cuda.h, and not in {path.name}"
             for name in sorted(absent - known)] +
            [f"{name}: in {path.name}, but this cuda.h has it" for name in sorted(known - absent)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("absent", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    absent = set()
    version = re.search(r"#define CUDA_VERSION (\d+)", (options.include / "cuda.h").read_text())[1]
    results = [("prototypes", check_prototypes(options.include, absent)),
               ("layouts", check_layouts(options.include, absent)),
               ("versions", check_versions(options.include, int(version)))]
    results.append(("absences", compare_absent(options.absent, absent, options.write)))
    for name, wrong in results:
        print(f"{'not ok' if wrong else 'ok'} cuda.h {version}: {name}")
        for line in wrong:
            print(f"    {line}")
    print(f"    absent from cuda.h {version}: {' '.join(sorted(absent)) or 'nothing'}")
    sys.exit(1 if any(wrong for _, wrong in results) else 0)


main()
