"""The command line: bad input, exit statuses, ps and set; afterwards no process is left running."""


def one_line(result, status, *parts):
    """Asserts the exit status, and one line on stderr that has these parts."""
    assert result.returncode == status, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("allot: "), lines[0]
    for part in parts:
        assert part in lines[0], lines[0]
    return lines[0]
