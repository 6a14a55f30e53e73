# SPDX-License-Identifier: AGPL-3.0-only
"""Prometheus's text format 0.0.4, read strictly."""

import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


def labels_of(text):
    labels = {}
    at = 0
    while at < len(text or ""):
        match = LABEL.match(text, at)
        if not match or match.group(1) in labels:
            raise ValueError(f"labels: {text}")
        labels[match.group(1)] = match.group(2)
        at = match.end()
        if at < len(text):
            if text[at] != ",":
                raise ValueError(f"labels: {text}")
            at += 1
    return labels


def family_of(name, kind_of):
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and kind_of.get(base) == "histogram":
            return base
    return name


def parse(text):
    """(types by family, samples as (name, labels, value)); raises ValueError for what is not right."""
    if text and not text.endswith("\n"):
        raise ValueError("the last line does not end")
    kind_of, helps, samples, seen, order = {}, set(), [], set(), []
    for line in text.splitlines():
        if match := re.fullmatch(rf"# HELP ({NAME}) (.*)", line):
            if match.group(1) in helps:
                raise ValueError(f"a second HELP: {line}")
            helps.add(match.group(1))
        elif match := re.fullmatch(rf"# TYPE ({NAME}) (\w+)", line):
            name, kind = match.groups()
            if kind not in TYPES or name in kind_of or name in order:
                raise ValueError(f"TYPE: {line}")
            kind_of[name] = kind
        elif match := SAMPLE.fullmatch(line):
            name, labels, value = match.group(1), labels_of(match.group(2)), float(match.group(3))
            family = family_of(name, kind_of)
            if family not in kind_of or family not in helps:
                raise ValueError(f"a sample before its heading: {line}")
            if not order or order[-1] != family:
                if family in order:
                    raise ValueError(f"a family in two pieces: {line}")
                order.append(family)
            key = (name, tuple(sorted(labels.items())))
            if key in seen:
                raise ValueError(f"twice: {line}")
            seen.add(key)
            samples.append((name, labels, value))
        else:
            raise ValueError(f"neither comment nor sample: {line}")
    check_histograms(kind_of, samples)
    return kind_of, samples


def check_histograms(kind_of, samples):
    """Buckets rise, the last one is +Inf and equals the count."""
    rows = {}
    for name, labels, value in samples:
        family = family_of(name, kind_of)
        if kind_of[family] == "counter" and value < 0:
            raise ValueError(f"{name} is negative")
        if kind_of[family] == "histogram":
            rest = tuple(sorted((key, each) for key, each in labels.items() if key != "le"))
            row = rows.setdefault((family, rest), {"buckets": []})
            if name.endswith("_bucket"):
                row["buckets"].append((float(labels["le"].replace("+Inf", "inf")), value))
            else:
                row[name.removeprefix(family)] = value
    for key, row in rows.items():
        bounds = [bound for bound, _ in row["buckets"]]
        counts = [count for _, count in row["buckets"]]
        if bounds != sorted(bounds) or counts != sorted(counts) or not math.isinf(bounds[-1]):
            raise ValueError(f"buckets of {key}: {row['buckets']}")
        if counts[-1] != row["_count"] or "_sum" not in row:
            raise ValueError(f"count of {key}")
