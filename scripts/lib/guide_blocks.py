"""Blocks of a page of docs/ that are run, and the shell that runs them, for scripts that run pages from their own text.

Python's standard library is enough.
"""

import dataclasses
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The longest that a block may run.
BLOCK_SECONDS_MAX = 60
# The longest that what it prints is waited for.
OUTPUT_SECONDS_MAX = 30
# The longest that what is left may take to end by itself.
END_SECONDS_MAX = 10
# The most that a block may print.
OUTPUT_BYTES_MAX = 4 << 20
END = re.compile(r'^<end of block (\d+)>$')
IN_USE = 'address already in use'


class Failed(Exception):
    """A page does not do what it says."""


@dataclasses.dataclass
class Block:
    """A fenced block, or one that only the runner sees."""

    kind: str  # sh, output or excerpt
    line: int
    text: str
    file: str = ''


def blocks(path, text):
    """The blocks of a page that are run or compared."""
    found, lines = [], enumerate(text.splitlines(), 1)
    excerpt = None
    for number, line in lines:
        if line.strip() == '<!-- run':
            found.append(Block('sh', number, until(path, lines, '-->')))
        elif named := re.fullmatch(r'<!-- excerpt of (\S+) -->', line.strip()):
            excerpt = named[1]
        elif line.startswith('```'):
            body = until(path, lines, '```')
            kind = line[3:].strip()
            if excerpt:
                found.append(Block('excerpt', number, body, excerpt))
                excerpt = None
            elif kind in ('sh', 'output'):
                found.append(Block(kind, number, body))
    return found


def until(path, lines, end):
    """The lines up to one that is `end`."""
    body = []
    for _, line in lines:
        if line.strip() == end:
            return ''.join(f'{line}\n' for line in body)
        body.append(line)
    raise Failed(f'{path}: the last block has no end')


class Session:
    """A bash that runs block after block, in a process group of its own. With the option -e it ends with a command
    that fails."""

    def __init__(self, folder, environment, options='-eu'):
        self.options = options
        self.lines = queue.Queue()
        self.folder, self.count, self.printed, self.said_in_use = folder, 0, 0, False
        self.bash = subprocess.Popen(
            ['bash', '--norc', '--noprofile'],
            cwd=folder['work'],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            errors='replace',
            start_new_session=True,
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.bash.stdout:
            self.said_in_use |= IN_USE in line.lower()
            self.lines.put(line)
        self.lines.put(None)

    def run(self, text, seconds):
        """Runs commands to their end, and gives what has been printed until then."""
        self.count += 1
        script = self.folder['blocks'] / f'{self.count}.sh'
        script.write_text(text)
        try:
            self.bash.stdin.write(
                f"set {self.options}; . '{script}' < /dev/null; printf '\\n<end of block {self.count}>\\n'\n"
            )
        except BrokenPipeError:
            raise Failed('the shell has ended') from None
        printed, deadline = [], time.monotonic() + seconds
        while True:
            line = self.line(deadline, printed)
            if line is None:
                raise Failed(f'a command failed, with exit code {self.bash.wait()}:\n{"".join(printed)}')
            end = END.match(line)
            if end and int(end[1]) == self.count:
                # The line break before the end is no output.
                if printed and printed[-1] == '\n':
                    printed.pop()
                return printed
            printed.append(line)

    def line(self, deadline, printed):
        try:
            line = self.lines.get(timeout=max(0, deadline - time.monotonic()))
        except queue.Empty:
            raise Failed(f'not within the time allowed; it printed:\n{"".join(printed)}') from None
        self.printed += len(line or '')
        if self.printed > OUTPUT_BYTES_MAX:
            raise Failed('it prints without end')
        return line

    def expect(self, expected, printed, seconds):
        """Waits until what has been printed is what is expected."""
        deadline = time.monotonic() + seconds
        while not prints(expected, ''.join(printed)):
            try:
                line = self.line(deadline, printed)
            except Failed:
                line = None
            if line is None:
                raise Failed(f'expected:\n{expected}\nprinted:\n{"".join(printed)}')
            printed.append(line)

    def end(self):
        """Ends what runs, in order if it can."""
        group = self.bash.pid
        for sent in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(group, sent)
            except ProcessLookupError:
                return
            deadline = time.monotonic() + END_SECONDS_MAX
            while time.monotonic() < deadline:
                self.bash.poll()
                try:
                    os.killpg(group, 0)
                except ProcessLookupError:
                    return
                time.sleep(0.02)


def prints(expected, printed):
    """True if what is printed is what a block of output says."""
    return bool(pattern_of(expected).fullmatch(plain(printed)))


def plain(text):
    """A text whose blanks are single ones, without empty lines."""
    lines = (' '.join(line.split()) for line in text.splitlines())
    return ''.join(f'{line}\n' for line in lines if line)


def pattern_of(expected):
    """The expression of a block of output."""
    parts = []
    for line in plain(expected).splitlines():
        if line == '…':
            parts.append(r'(?:.*\n)*?')
        else:
            parts.append('.*?'.join(re.escape(part) for part in line.split('…')) + r'\n')
    return re.compile(''.join(parts))


def path_of(extra):
    return f'{extra.resolve()}:{ROOT}/.tools/bin:{os.environ.get("PATH", "")}'


# Stands before cargo on PATH: an example that has been built is run as it is, in any other way cargo is cargo.
BUILT_CARGO = """#!/bin/sh
for word; do
  [ "${before-}" != --example ] || exec "%s/$word"
  before=$word
done
exec "%s" "$@"
"""


def environment_of(folder, binary, extra, built=None):
    """The environment of the commands: `ringwatch` is the binary, and nothing is known of other clusters. Examples
    that lie in `built` are not built."""
    bins = folder['blocks'] / 'bin'
    bins.mkdir()
    if binary.is_file():
        (bins / 'ringwatch').symlink_to(binary)
    if built:
        (bins / 'cargo').write_text(BUILT_CARGO % (built, shutil.which('cargo', path=path_of(extra))))
        (bins / 'cargo').chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != 'KUBECONFIG'}
    return {
        **environment,
        'PATH': f'{bins}:{path_of(extra)}',
        'HOME': str(folder['home']),
        'CHECKOUT': str(ROOT),
        'CARGO_HOME': os.environ.get('CARGO_HOME', str(pathlib.Path.home() / '.cargo')),
        'RUSTUP_HOME': os.environ.get('RUSTUP_HOME', str(pathlib.Path.home() / '.rustup')),
    }
