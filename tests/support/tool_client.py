"""Has a server run a command: `tool_client.py SOCKET COMMAND ARGUMENT ...`."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    request = json.dumps([os.getcwd(), dict(os.environ), *sys.argv[2:]]).encode()
    socket.send_fds(connection, [request], [0, 1, 2])
    code = connection.recv(1)
sys.exit(code[0] if code else "tool_client: the command ended without an exit code")
