"""Writes a page's files down as C: embed.py OUT PATH... -- FILE..., a path for each file."""

import pathlib
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",
}


def literal(data):
    """Strings of 2,000 bytes, in octal where a byte is not plain: a compiler reads them faster than numbers."""
    for begin in range(0, len(data), 2000):
        text = "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
                       for byte in data[begin:begin + 2000])
        yield f'\t"{text}"'


def main(out, *words):
    lines = ['#include "http/dashboard/files.h"', ""]
    rows = []
    middle = words.index("--")
    for number, (path, name) in enumerate(zip(words[:middle], words[middle + 1:], strict=True)):
        data = pathlib.Path(name).read_bytes()
        lines += [f"static const char file_{number}[] =", *literal(data), ";", ""]
        rows.append(f'\t{{ "{path}", "{TYPES[pathlib.Path(name).suffix]}", (const unsigned char *)file_{number}, '
                    f'sizeof(file_{number}) - 1 }},')
    lines += ["const struct page_file page_files[] = {", *rows, "};",
              "const size_t page_file_count = sizeof(page_files) / sizeof(page_files[0]);", ""]
    pathlib.Path(out).write_text("\n".join(lines))


main(*sys.argv[1:])
