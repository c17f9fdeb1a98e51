"""The commands of docs/alerts.md, which are run while the alert of their section fires.

Python's standard library is enough.
"""

import pathlib
import re
import tempfile
import time

from beside import RINGWATCH
from guide_blocks import BLOCK_SECONDS_MAX, ROOT, Failed, Session, blocks, environment_of, prints

PAGE = ROOT / 'docs/alerts.md'
# How long commands are repeated that do not print what the page says: some show a moment.
REPEAT_SECONDS_MAX = 60
REPEAT_SECONDS = 1
# The certificate of a client in the page, on its host.
CLIENT_CERTIFICATE = '/var/lib/kubelet/pki/kubelet-client-current.pem'


def sections():
    """Returns for each alert the blocks of its commands, each with the block of what they print."""
    text = PAGE.read_text()
    lines = text.splitlines()
    found = {line[4:]: [] for line in lines if line.startswith('### ')}
    for block in blocks(PAGE, text):
        titles = [line[4:] for line in lines[: block.line] if line.startswith('### ')]
        if titles:
            found[titles[-1]].append(block)
    for alert, parts in found.items():
        kinds = [it.kind for it in parts]
        if not kinds or kinds != ['sh', 'output'] * (len(kinds) // 2):
            raise Failed(f'{PAGE}: {alert} does not have commands, each with what they print')
    return {alert: list(zip(parts[::2], parts[1::2])) for alert, parts in found.items()}


class AlertGuide:
    """The page, and the servers that its commands are run against."""

    def __init__(self, folder, replaced, environments):
        """Takes texts of the page that stand for others here, and the variables of commands by server."""
        self.sections, self.replaced, self.environments = sections(), replaced, environments
        self.folder = folder

    def differences(self, alert, instance, seconds=REPEAT_SECONDS_MAX):
        """Returns how what the commands of a section print is not what the page says, though repeated for so long."""
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            folder = {name: pathlib.Path(temporary) / name for name in ('work', 'home', 'blocks')}
            for path in folder.values():
                path.mkdir()
            environment = (
                environment_of(folder, pathlib.Path(RINGWATCH), ROOT / '.tools/bin') | self.environments[instance]
            )
            # Commands fail that ask a server which is away.
            session = Session(folder, environment, '-u')
            try:
                return [
                    it
                    for pair in self.sections[alert]
                    if (it := self.difference(session, *pair, time.monotonic() + seconds))
                ]
            finally:
                session.end()

    def difference(self, session, commands, output, deadline):
        text = re.sub('|'.join(map(re.escape, self.replaced)), lambda it: str(self.replaced[it[0]]), commands.text)
        while True:
            printed = ''.join(session.run(text, BLOCK_SECONDS_MAX))
            if prints(output.text, printed):
                return None
            if time.monotonic() > deadline:
                return f'docs/alerts.md:{commands.line}: expected:\n{output.text}printed:\n{printed}'
            time.sleep(REPEAT_SECONDS)
