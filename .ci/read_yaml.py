#!/usr/bin/env python3
"""Reads the YAML of the book, the README and the examples: each piece parses, and a Kubernetes job names only volumes and options that
there are.

    .ci/read_yaml.py MEMLINT

It needs PyYAML. Kubernetes's own schema is not asked: it is that of a cluster."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^( *)```ya?ml\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"{{#include (.+?)}}")


class Loader(yaml.SafeLoader):
    """Tags of a program's own, as GitLab's `!reference`, are values like others; a key twice is an error, as for kubectl."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.constructor.ConstructorError(None, None, f"a key is there twice: {keys}", node.start_mark)
        return super().construct_mapping(node, deep=deep)


Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def pieces():
    """Every piece of YAML with its name."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs" / "src").glob("*.md"))]:
        whole = INCLUDE.sub(lambda file, page=page: (page.parent / file[1]).read_text(), page.read_text())
        for at, (_, text) in enumerate(BLOCK.findall(whole), 1):
            yield f"{page.name}, piece {at}", text
    for pattern in ["*.yml", ".*.yaml", "examples/**/*.yml", "examples/**/*.yaml"]:
        for file in sorted(ROOT.glob(pattern)):
            yield str(file.relative_to(ROOT)), file.read_text()


def complaints_of_job(job, memlint):
    """What kubectl or memlint would refuse of a job."""
    spec = job["spec"]["template"]["spec"]
    if spec["restartPolicy"] not in ("Never", "OnFailure"):
        yield "a job's pods restart never or on failure"
    indexed = job["spec"].get("completionMode") == "Indexed"
    if "backoffLimitPerIndex" in job["spec"] and not indexed:
        yield "only an indexed job counts per index"
    if "podFailurePolicy" in job["spec"] and spec["restartPolicy"] != "Never":
        yield "a policy of failures needs pods that never restart"
    names = {container["name"] for container in spec["containers"]}
    for rule in job["spec"].get("podFailurePolicy", {}).get("rules", []):
        if rule["onExitCodes"]["containerName"] not in names:
            yield "a policy names a container that is not there"
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in spec["containers"]:
        yield from (f"no volume {one['name']}" for one in container["volumeMounts"] if one["name"] not in volumes)
        words = " ".join([*container["command"], *container["args"]])
        if "JOB_COMPLETION_INDEX" in words and not indexed:
            yield "only an indexed job has an index"
        for command, rest in re.findall(r"\bmemlint (examine|conclude) (.*)", words, re.DOTALL):
            told = subprocess.run([memlint, command, "--help"], capture_output=True, text=True, check=True).stdout
            known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", told))
            options = re.findall(r"(?<=\s)--?[a-z][\w-]*", f" {rest}")
            yield from (f"memlint {command} has no {one}" for one in options if one not in known)


def main():
    (memlint,) = sys.argv[1:]
    wrong, jobs, read = [], 0, 0
    for name, text in pieces():
        try:
            documents = list(yaml.load_all(text, Loader))
        except yaml.YAMLError as error:
            wrong.append(f"{name}: {error}")
            continue
        read += 1
        for document in documents:
            if isinstance(document, dict) and document.get("kind") == "Job":
                jobs += 1
                wrong += [f"{name}: {complaint}" for complaint in complaints_of_job(document, memlint)]
    if jobs < 2:
        wrong.append("the book's jobs are not there")
    print(f"{read} pieces of YAML, {jobs} jobs", *wrong, sep="\n")
    sys.exit(bool(wrong))


main()
