# SPDX-License-Identifier: AGPL-3.0-only
"""Recordings of machines, as folders and with changes."""

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "machines")
FIRST_LINE = "spark-comm machine recording 1"


def path_of(shape):
    return os.path.join(FOLDER, f"{shape}.machine")


def read(shape):
    """Texts by path."""
    with open(path_of(shape), encoding="utf-8") as file:
        first, *lines = file.read().splitlines()
    assert first == FIRST_LINE
    texts = {}
    for line in lines:
        if line.startswith("== "):
            current = texts.setdefault(line[3:], [])
        else:
            current.append(line)
    return {path: "\n".join(text) + "\n" for path, text in texts.items()}


def write(texts, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(FIRST_LINE + "\n")
        for name, text in sorted(texts.items()):
            file.write(f"== {name}\n{text.rstrip()}\n")


def unpack(texts, folder):
    """As the machine's own files are: libraries hold their version, variables end with a zero."""
    for name, text in texts.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if name == "proc/self/environ":
            text = text.rstrip().replace("\n", "\0") + "\0"
        elif "libnccl" in name:
            version = next(line for line in text.splitlines() if line.startswith("version "))
            text = "NCCL " + version
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
