"""The table of all fields that have a default, which a unit test makes of the rules of all kinds."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = 'what_is_empty_is_absent'


def table(words):
    """The lines of the table, each with its name; with words, only those that have one of them."""
    # All packages, so that the dependencies have the features of every other build.
    command = ['cargo', 'test', '--locked', '--workspace', '--lib', TABLE, '--', '--nocapture']
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    lines = (line.partition('DEFAULT ') for line in run.stdout.splitlines())
    rows = [json.loads(row) for _, mark, row in lines if mark]
    named = [('%s %s' % (row['plural'], row['field']), row) for row in rows]
    return [(name, row) for name, row in named if not words or any(word in name for word in words)]
