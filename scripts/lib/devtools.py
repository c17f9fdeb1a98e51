"""A page in a headless Chromium, read and photographed over the DevTools protocol, by pipes. Python's standard library
is enough."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome')
FLAGS = (
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--hide-scrollbars',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-sync',
    '--disable-component-update',
    '--ignore-certificate-errors',
    '--remote-debugging-pipe',
)
# The browser reads calls from the first and writes answers to the second of these descriptors.
CALLS, ANSWERS = 3, 4
SECONDS_MAX = 60
LOOK_SECONDS = 0.1


class Page:
    """An open page, whose requests have a bearer token."""

    def __init__(self, token):
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None:
            sys.exit('no Chromium; run scripts/setup test')
        self.profile = tempfile.TemporaryDirectory()
        calls, self.calls = os.pipe()
        self.answers, answers = os.pipe()
        # A shell puts the descriptors where the browser looks for them.
        command = 'exec "$0" "$@" %d<&%d %d>&%d' % (CALLS, calls, ANSWERS, answers)
        self.process = subprocess.Popen(
            ['bash', '-c', command, program, *FLAGS, '--user-data-dir=' + self.profile.name],
            pass_fds=(calls, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(calls)
        os.close(answers)
        self.last, self.session, self.rest = 0, None, b''
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        self.call('Network.enable')
        self.call('Network.setExtraHTTPHeaders', headers={'Authorization': 'Bearer ' + token})

    def call(self, method, **parameters):
        self.last += 1
        call = {'id': self.last, 'method': method, 'params': parameters}
        if self.session:
            call['sessionId'] = self.session
        os.write(self.calls, json.dumps(call).encode() + b'\0')
        while True:
            message = json.loads(self.message())
            if message.get('id') == self.last:
                if 'error' in message:
                    sys.exit('%s: %s' % (method, message['error']))
                return message['result']

    def message(self):
        while b'\0' not in self.rest:
            more = os.read(self.answers, 1 << 16)
            if not more:
                sys.exit('the browser has ended')
            self.rest += more
        message, _, self.rest = self.rest.partition(b'\0')
        return message

    def read(self, expression):
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            sys.exit('%s: %s' % (expression, answer['exceptionDetails']))
        return answer['result'].get('value')

    def until(self, expression):
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            value = self.read(expression)
            if value:
                return value
            time.sleep(LOOK_SECONDS)
        sys.exit('no page for which ' + expression)

    def look(self, width, height, is_dark=False, is_touched=False):
        """Sets the size of the page, its colour scheme, and whether fingers touch it."""
        self.call(
            'Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=is_touched
        )
        self.call('Emulation.setTouchEmulationEnabled', enabled=is_touched)
        scheme = {'name': 'prefers-color-scheme', 'value': 'dark' if is_dark else 'light'}
        self.call('Emulation.setEmulatedMedia', features=[scheme])

    def go(self, url):
        self.call('Page.navigate', url=url)

    def save(self, path):
        picture = self.call('Page.captureScreenshot', format='png')
        path.write_bytes(base64.b64decode(picture['data']))

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.calls)
        os.close(self.answers)
        self.profile.cleanup()
