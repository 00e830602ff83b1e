"""
Has a server run a command: `tool_client.py SOCKET COMMAND ARGUMENT ...`.

Tests start it more than a thousand times. So it imports only what is built into Python:
`socket`, `os` and `json` would take longer than all that it does.
"""

# pyright: reportPrivateUsage=false

import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket
from posix import environ, getcwd

FILES = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))

_, address, *arguments = (text.encode("utf-8", "surrogateescape") for text in sys.argv)
settings = [name + b"=" + value for name, value in environ.items()]
request = [getcwd().encode("utf-8", "surrogateescape"), b"%d" % len(settings)]

connection = socket(AF_UNIX)
connection.connect(address)
connection.sendmsg(
    [b"\0".join([*request, *settings, *arguments])], [(SOL_SOCKET, SCM_RIGHTS, FILES)]
)
code = connection.recv(1)
sys.exit(code[0] if code else "tool_client: the command ended without an exit code")
