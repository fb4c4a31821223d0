"""Allure's files about a whole run: its environment, who ran it, and the categories of failures.

Source of the three files: Allure's documentation of ``environment.properties``, ``executor.json``
and ``categories.json``. Allure 3 takes categories from its own configuration alone; the one that
``make allure`` uses (``ci/allure``) reads this file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from conformance.results.events.run import RunStarted
from kube.base.redaction import redact, redact_json

CATEGORIES = (
    {
        "name": "Known issue of Kubernetes",
        "matchedStatuses": ["skipped"],
        "messageRegex": ".*known issue .*",
    },
    {"name": "Product defect", "matchedStatuses": ["failed"]},
    {"name": "Test defect", "matchedStatuses": ["broken"], "messageRegex": ".*the suite failed.*"},
    {"name": "Infrastructure", "matchedStatuses": ["broken"]},
)
"""The first that fits counts. Test defect: a fault of this suite; infrastructure: what it needs."""


def write_run(folder: Path, started: RunStarted) -> None:
    """Write the files about a run into a folder of Allure results."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_properties(folder / "environment.properties", _environment(started))
    executor = redact_json(executor_of(started.run, os.environ))
    for name, value in (("executor.json", executor), ("categories.json", CATEGORIES)):
        (folder / name).write_text(json.dumps(value, indent=1), encoding="utf-8")


def _environment(started: RunStarted) -> dict[str, str]:
    """Return what a reader must know of the run's surroundings: name -> value."""
    versions = {name: text for name, text in started.versions.items() if name != "kubernetes"}
    return {
        "Driver": started.driver or "none",
        "Kubernetes": started.kubernetes_version,
        "Simulated": "; ".join(started.simulated) or "nothing",
        "Suite": started.suite_version,
        "Target": started.target,
        **dict(sorted(versions.items())),
    }


def executor_of(run: str, env: Mapping[str, str]) -> dict[str, str | int]:
    """Return who ran it: a job of GitHub, GitLab or Jenkins by its variables, else ``local``."""
    if env.get("GITHUB_ACTIONS") == "true":
        repository_url = f"{env.get('GITHUB_SERVER_URL')}/{env.get('GITHUB_REPOSITORY')}"
        url = f"{repository_url}/actions/runs/{env.get('GITHUB_RUN_ID')}"
        number = env.get("GITHUB_RUN_NUMBER", "")
        about = ("GitHub Actions", "github", url, f"{env.get('GITHUB_WORKFLOW')} #{number}")
    elif env.get("GITLAB_CI") == "true":
        url, number = env.get("CI_JOB_URL", ""), env.get("CI_PIPELINE_IID", "")
        about = ("GitLab CI", "gitlab", url, f"{env.get('CI_JOB_NAME')} #{number}")
    elif "JENKINS_URL" in env:
        url, number = env.get("BUILD_URL", ""), env.get("BUILD_NUMBER", "")
        about = ("Jenkins", "jenkins", url, f"{env.get('JOB_NAME')} #{number}")
    else:
        return {"name": "local", "type": "local", "buildName": run}
    executor: dict[str, str | int] = dict(
        zip(("name", "type", "buildUrl", "buildName"), about, strict=True)
    )
    return executor | ({"buildOrder": int(number)} if number.isdecimal() else {})


def _write_properties(file: Path, values: Mapping[str, str]) -> None:
    lines = [
        f"{_escape(name).replace(' ', chr(92) + ' ')} = {_escape(value.strip())}\n"
        for name, value in values.items()
    ]
    file.write_text("".join(lines), encoding="ascii")


def _escape(text: str) -> str:
    # A JSON string has the same escapes for what is not printable ASCII.
    return re.sub("[:=#!]", r"\\\g<0>", json.dumps(redact(text))[1:-1])
