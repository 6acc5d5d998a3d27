"""A part that sees what a file says: no file is released, else its content counts.

Sent to hosts like any other: Python 3.9 and the standard library only.
"""

from __future__ import annotations

import errno
import os
import time
from typing import Any


def ask(spec: dict[str, Any], memory: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"op": "file", "path": spec["path"]}]


def read(request: dict[str, Any]) -> dict[str, Any]:
    try:
        with open(request["path"]) as file:
            content = file.read().strip()
    except FileNotFoundError:
        return {"content": None}
    if content == "denied":
        raise OSError(errno.EACCES, "denied")
    if content == "hang":
        time.sleep(600)
    if content == "crash":
        os._exit(3)
    return {"content": content}


def judge(
    spec: dict[str, Any],
    memory: dict[str, Any],
    answers: list[dict[str, Any]],
    now: dict[str, float],
) -> dict[str, Any]:
    (answer,) = answers
    looks = int(memory.get("looks", 0)) + 1
    memory = {"looks": looks, "first_s": memory.get("first_s", now["up_s"])}
    evidence: dict[str, Any] = {"means": "toy", "path": spec["path"]}
    if "error" in answer:
        reason = ["probe_failed", {"error": str(answer["error"]["text"])}]
        evidence |= answer["error"]
        return {
            "sight": "unknown",
            "evidence": evidence,
            "memory": memory,
            "reason": reason,
        }
    content = answer["content"]
    evidence["content"] = content
    seen: dict[str, Any] = {"evidence": evidence, "memory": memory}
    if content is None:
        return {**seen, "sight": "released"}
    word, _, text = content.partition(" ")
    if word in {"PASS", "FAIL"}:
        decided = ["said", {"text": text}] if text else None
        remark = ["said", {"text": "a remark"}]
        return {
            **seen,
            "sight": "released",
            "result": word,
            "decided": decided,
            "remarks": [remark],
        }
    if word == "absent":
        return {**seen, "sight": "absent", "reason": ["said", {"text": "not there"}]}
    return {**seen, "sight": "held", "again_in_s": 0.05 if text == "fast" else 30.0}


def follows(spec: dict[str, Any], memory: dict[str, Any]) -> list[list[int]]:
    return [spec["follows"]] if spec.get("follows") else []
