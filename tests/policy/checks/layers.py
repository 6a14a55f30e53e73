# SPDX-License-Identifier: AGPL-3.0-only
"""The arrows of the architecture: what each layer may include, and what stays private.

The table in docs/architecture.md says the same for people; its arrows are compared with this one.
"""

import posixpath
import re

from tree import numbered

# A layer may include itself and what stands here. Order is low to high.
MAY_INCLUDE = {
    "core": [],
    "cuda": ["core"],
    "nccl": ["core", "cuda"],
    "rendezvous": ["core"],
    "supervise": ["core", "rendezvous"],
    "kernels": ["core", "cuda"],
    "comm": ["core", "cuda", "nccl", "rendezvous", "supervise"],
    "paths": ["core", "cuda", "nccl", "rendezvous", "supervise", "kernels", "comm"],
    "collectives": ["core", "cuda", "nccl", "rendezvous", "supervise", "kernels", "comm", "paths"],
    "c": ["core", "cuda", "nccl", "rendezvous", "supervise", "comm", "paths", "collectives"],
    "host": ["core"],
}
PUBLIC_ONLY = ("app", "examples", "bench")
UMBRELLAS = ("src/spark_comm/spark_comm.hpp", "src/spark_comm/spark_comm.h")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
VENDOR = re.compile(r"^(cuda|nccl|cuda_\w+|cuda_runtime\w*|nccl_\w+)\.h$|^cuda/|^cooperative_groups")
THIRD_PARTY = re.compile(r"^(asio|fmt|openssl|hwy|nlohmann|CLI)(/|\.hpp)")


def layer_of(path):
    """The layer that a file belongs to, or None for files that have none (tests)."""
    if path.startswith("src/host/"):
        return "host"
    if match := re.match(r"src/spark_comm/(\w+)/", path):
        return match.group(1)
    top = path.split("/")[0]
    return top if top in PUBLIC_ONLY else None


def includes_of(text):
    """(line, quoted, target) of each include; comments do not count."""
    for number, line in numbered(re.sub(r"//[^\n]*|/\*.*?\*/", "", text)):
        if match := INCLUDE.match(line):
            yield number, match.group(1) == '"', match.group(2)


def public_headers(tree):
    """Include paths of the headers that the layers install: those in a file set."""
    headers = set()
    for path, text in tree.matching(r"src/spark_comm/(\w+/)?CMakeLists\.txt"):
        folder = posixpath.dirname(path)[len("src/"):]
        for files in re.findall(r"FILE_SET\s+HEADERS\s+(?:BASE_DIRS\s+\S+\s+)?FILES([^)]*)", text):
            for name in re.findall(r"[\w./]+\.(?:hpp|cuh|h)\b", files):
                headers.add(posixpath.normpath(f"{folder}/{name}"))
    return headers


def include_violation(tree, path, quoted, target, public):
    layer = layer_of(path)
    if VENDOR.search(target) and layer not in (None, "kernels"):
        return f"vendor header {target}; the declarations of our own are in cuda/abi.hpp and nccl/abi.hpp"
    own_path = f"src/{target}"
    is_public = path[len("src/"):] in public if path.startswith("src/spark_comm/") else False
    if is_public and THIRD_PARTY.search(target):
        return f"public header includes {target}"
    if quoted:
        folder = posixpath.dirname(path)
        candidates = [
            posixpath.normpath(posixpath.join(folder, target)), f"src/host/{target}", f"app/{target}"
        ]
        if layer and not any(c in tree.files and layer_of(c) == layer for c in candidates):
            return f'"{target}" is no file of its own layer; write <spark_comm/layer/file.hpp>'
        return None
    if not target.startswith("spark_comm/"):
        return None
    if own_path not in tree.files:
        return f"<{target}> does not exist"
    if layer is None or path in UMBRELLAS:
        return None
    if layer in PUBLIC_ONLY or is_public:
        if target not in public:
            return f"<{target}> is private (in no FILE_SET)"
    if layer in PUBLIC_ONLY:
        return None
    other = layer_of(own_path)
    if layer not in MAY_INCLUDE:
        return f"layer {layer} is not in the table of layers"
    if other != layer and other not in MAY_INCLUDE[layer]:
        return f"layer {layer} may not include layer {other or 'none'} (<{target}>)"
    return None


def cycles(tree):
    """Headers that include each other in a ring."""
    graph = {
        path[len("src/"):]: [target for _, quoted, target in includes_of(text) if not quoted]
        for path, text in tree.matching(r"src/spark_comm/.*\.(hpp|cuh|h)")
    }
    done, trail = set(), []

    def visit(header):
        if header in trail:
            yield " -> ".join(trail[trail.index(header):] + [header])
        elif header in graph and header not in done:
            trail.append(header)
            for target in graph[header]:
                yield from visit(target)
            trail.pop()
            done.add(header)

    for header in sorted(graph):
        yield from visit(header)


def documented_arrows(text):
    """{layer: layers} from the table in docs/architecture.md: | `layer` | job | may include |."""
    table = {}
    for row in re.findall(r"^\| `(\w+)` \|[^|\n]*\|([^|\n]*)\|$", text, re.MULTILINE):
        table[row[0]] = re.findall(r"`(\w+)`", row[1])
    return table


def violations(tree):
    public = public_headers(tree)
    for path, text in tree.cpp():
        for number, quoted, target in includes_of(text):
            if problem := include_violation(tree, path, quoted, target, public):
                yield f"{path}:{number}: {problem}"
    for ring in cycles(tree):
        yield f"include cycle: {ring}"
    if documented := tree.files.get("docs/architecture.md"):
        arrows = documented_arrows(documented)
        for layer, allowed in MAY_INCLUDE.items():
            if sorted(arrows.get(layer, ["?"])) != sorted(allowed):
                yield f"docs/architecture.md: the row of layer {layer} does not say {allowed}"
