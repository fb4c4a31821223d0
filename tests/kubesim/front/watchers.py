"""Many watches in one process, that each read until an object comes: what they have seen.

Usage: watchers.py KUBECONFIG PATH NUMBER LAST; PATH is of the watch, LAST the name of that object.
Prints ``ready`` once all have begun, then a line of JSON with, for each watch, how many events it
had and a digest of them all, and the names of the first watch's.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import sys
from pathlib import Path

import yaml


async def follow(
    reader: asyncio.StreamReader, last: bytes, lines: list[bytes] | None
) -> tuple[int, str]:
    """Read the chunks of an answer until a name comes; returns how many lines, and their digest."""
    digest, number, end = hashlib.sha256(), 0, b""
    while True:
        length = int(await reader.readline(), 16)
        if length == 0:
            return number, "ended by the server"
        chunk = await reader.readexactly(length)
        await reader.readline()
        digest.update(chunk)
        number += chunk.count(b"\n")
        if lines is not None:
            lines.append(chunk)
        end = end[-len(last) :] + chunk
        if last in end:
            return number, digest.hexdigest()


async def begin(kubeconfig: Path, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Begin a watch; returns what its events are read from, and what ends it when it is dropped."""
    config = yaml.safe_load(kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]["server"]
    token = config["users"][0]["user"]["token"]
    context = ssl.create_default_context(cafile=str(kubeconfig.parent / "pki" / "ca.crt"))
    port = int(server.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(head.encode())
    while await reader.readline() != b"\r\n":
        pass
    return reader, writer


async def main(kubeconfig: str, path: str, number: str, last: str) -> None:
    connections = [await begin(Path(kubeconfig), path) for _ in range(int(number))]
    print("ready", flush=True)
    chunks: list[bytes] = []
    wanted = f'"name":"{last}"'.encode()
    results = await asyncio.gather(
        *(
            follow(reader, wanted, chunks if index == 0 else None)
            for index, (reader, _) in enumerate(connections)
        )
    )
    names = [
        json.loads(line)["object"]["metadata"]["name"] for line in b"".join(chunks).splitlines()
    ]
    print(json.dumps({"watches": results, "names": names}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
