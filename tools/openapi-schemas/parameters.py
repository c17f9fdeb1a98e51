#!/usr/bin/env python3
"""Print the descriptions of the query parameters of Kubernetes' API, one a line.

Usage: parameters.py PROTO > parameters.txt

PROTO is a folder with the `generated.proto` files of Kubernetes' Go modules. Query parameters are the fields of the
options of requests, which are messages there, and are described by the comments of these fields. A line is

    MESSAGE FIELD TEXT

with the text in JSON.
"""

import json
import re
import sys

# The file of each message, and the fields that are no parameters: those of bodies, and that a message has in common
# with all.
META, CORE = 'apimachinery/pkg/apis/meta/v1', 'api/core/v1'
MESSAGES = {
    'ListOptions': META,
    'CreateOptions': META,
    'UpdateOptions': META,
    'PatchOptions': META,
    'DeleteOptions': META,
    'NodeProxyOptions': CORE,
    'PodAttachOptions': CORE,
    'PodExecOptions': CORE,
    'PodLogOptions': CORE,
    'PodPortForwardOptions': CORE,
    'PodProxyOptions': CORE,
    'ServiceProxyOptions': CORE,
}
NO_PARAMETERS = {'DeleteOptions': ('preconditions',), 'PodLogOptions': ('sinceTime',)}
FIELD = re.compile(r'\s*(?:optional|repeated) \S+ (\w+) = \d+;')


def described(lines):
    """The text of a comment: lines are joined, empty ones end paragraphs, and indented ones stand alone."""
    text = ''
    for line in lines:
        line = line.rstrip()
        if line == '---':
            break
        bare = line.lstrip()
        if not line:
            text = text[:-1] + '\n\n'
        elif bare.startswith(('TODO', '+')):
            continue
        elif line != bare:
            text = text[:-1] + '\n' + line + '\n'
        else:
            text += line + ' '
    return text.rstrip('\n').strip(' ')


def fields(text, message):
    """The fields of a message with their comments."""
    body = re.search(r'^message %s \{\n(.*?)^\}' % message, text, re.MULTILINE | re.DOTALL).group(1)
    comment = []
    for line in body.split('\n'):
        bare = line.strip()
        if bare.startswith('//'):
            comment.append(bare[2:].removeprefix(' '))
        elif found := FIELD.match(line):
            yield found.group(1), described(comment)
            comment = []
        else:
            comment = []


def main():
    (folder,) = sys.argv[1:]
    for message, package in sorted(MESSAGES.items()):
        with open('%s/%s/generated.proto' % (folder, package), encoding='utf-8') as file:
            text = file.read()
        for field, description in sorted(fields(text, message)):
            if field not in NO_PARAMETERS.get(message, ()):
                print(message, field, json.dumps(description, ensure_ascii=False))


if __name__ == '__main__':
    main()
