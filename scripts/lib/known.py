"""Differences between two servers that are known and argued, for scripts that compare them.

A file of them has on each line a pattern, then two blanks, # and the reason.
"""

import fnmatch


def read_patterns(path):
    """Returns the patterns of a file of known differences."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return [line.partition('  # ')[0].strip() for line in lines if line and not line.startswith('#')]


def pattern_of(line, patterns):
    """Returns the first pattern that a difference matches, or None."""
    return next((it for it in patterns if fnmatch.fnmatchcase(line, it)), None)
