# SPDX-License-Identifier: AGPL-3.0-only
"""Every public function is named in some test.

Naming is not testing, but a function that no test names is not tested.
"""

import re

from checks.layers import public_headers
from declarations import public_functions


def violations(tree):
    words = set()
    for _, text in tree.matching(r"tests/.*\.(cpp|hpp|cu|cuh|c)"):
        words.update(re.findall(r"\w+", text))
    for header in sorted(public_headers(tree)):
        text = tree.files.get(f"src/{header}")
        if text is None:
            yield f"src/{header}: in a FILE_SET, but not there"
            continue
        for name in public_functions(text):
            if name not in words:
                yield f"src/{header}: {name} is named in no test"
