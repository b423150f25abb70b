# SPDX-License-Identifier: Apache-2.0
"""What documents name exists: each option of each `stoup` and `stoupd` command, each file, each heading of a link.

tests/system/shown_commands.py runs the commands of shell blocks; this looks at those in running text as well, which nobody could run.
"""
import glob
import os
import re

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
OPTION = r"(?<![\w-])--[a-z][a-z-]*"
failures = []
checked = {"options": 0, "commands": 0, "files": 0, "links": 0, "documents": 0}


def check(kind, condition, text):
    checked[kind] += 1
    if not condition:
        failures.append(text)


def helps():
    """The options of each command, by its name; stoupd's under its own."""
    commands = re.findall(r"^  (\w+)", t.run([t.STOUP, "help"]).stdout, re.M)
    found = {name: set(re.findall(OPTION, t.run([t.STOUP, "help", name]).stdout)) | {"--help"} for name in commands}
    found["stoupd"] = set(re.findall(OPTION, t.run([t.STOUPD, "--help"]).stdout)) | {"--help", "--version"}
    return found


def anchors(text):
    """Of a document's headings, as they are linked to."""
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", head.lower())) for head in heads}


def calls(text):
    """Each piece of code that begins with one of the programs, to the end of its line."""
    code = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    code += re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    for piece in code:
        for line in piece.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#\s.*$", "", line)
            for part in re.split(r"\|+|&&|;|\$\(", line):
                words = part.split()
                while words and re.fullmatch(r"\w+=\S*|sudo|exec|command|\$", words[0]):
                    words.pop(0)
                if words and words[0] in ("stoup", "stoupd"):
                    yield words


known = helps()
documents = sorted([os.path.join(SOURCE, "README.md"), *glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True)])
t.true(len(documents) > 12, f"documents: {documents}")
texts = {}
for path in documents:
    with open(path, encoding="utf-8") as file:
        texts[path] = file.read()
for path, text in texts.items():
    name = os.path.relpath(path, SOURCE)
    for words in calls(text):
        command = words[0] if words[0] == "stoupd" else next((word for word in words[1:] if not word.startswith("-")), None)
        if command is None or not re.fullmatch(r"[a-z]+", command):
            continue
        check("commands", command in known or command in ("help", "version"), f"{name}: `{' '.join(words)}`: no such command")
        for option in re.findall(OPTION, " ".join(words)):
            check("options", option in known.get(command, ()), f"{name}: `{' '.join(words)}`: {command} has no {option}")
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        file, _, anchor = target.partition("#")
        if re.match(r"\w+:", file):
            continue
        there = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        check("links", os.path.exists(there), f"{name}: link to {target}, which is not there")
        if anchor and there in texts:
            check("links", anchor in anchors(texts[there]), f"{name}: link to {target}: no such heading")
    if name == "README.md":  # what stands in docs is told of there; top.txt is shown, as top_daemons.py sees
        for file in sorted(os.listdir(os.path.join(SOURCE, "docs"))):
            check("documents", f"docs/{file}" in text or file == "top.txt", f"README.md does not name docs/{file}")
    for file in re.findall(r"`((?:docs|tests|bench|shm|codec|producer|consumer)/[\w./-]+\.\w+)`", text):
        check("files", os.path.exists(os.path.join(SOURCE, file)), f"{name}: `{file}` is not there")
t.true(not failures, "\n".join(failures))
t.true(checked["options"] > 60 and checked["commands"] > 100 and checked["files"] > 20 and checked["documents"] > 20, f"what was looked at: {checked}")
print(f"ok: {checked}", flush=True)
