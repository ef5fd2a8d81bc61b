"""Checks of what `allot` prints."""


def assert_one_error(result, status, *parts):
    """Asserts the exit status, and that stderr is one line of allot's with these parts. Returns the line."""
    assert result.returncode == status, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("allot: "), lines[0]
    for part in parts:
        assert part in lines[0], lines[0]
    return lines[0]
