# SPDX-License-Identifier: Apache-2.0
"""docs/trouble.md has a row for each text of the daemon and of the library, and none for a text that nobody prints.

Texts are taken from the sources. What is about a filter, a schema or an import names its own place; those files share a row each,
and a new file of the library or the daemon must be put into one of the two kinds.
"""
import glob
import os
import re

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
CALLS = (r"(?:stoup_error_(?:set|prefix)|stoup_log_(?:error|info|peer)|stoup_request_fail|stoup_client_refused|direct_refused|load_failed|"
         r"inotify_refused|stoup_publish_refused|versions_refuse|text_refused|fail|fail_at|refuse)")
AREAS = {  # files that share a row: the row begins so
    r"consumer/filter\w*|consumer/where": "filters",
    r"consumer/(range|scan|held)": "ranges and cursors",
    r"consumer/asof\w*": "as of",
    r"consumer/(merge(_ahead)?|replay|pace)": "merges and replays",
    r"consumer/bars\w*": "bars",
    r"consumer/ar(ray|row\w*)": "arrays and Arrow",
    r"consumer/require|shm/schema": "schemas",
    r"consumer/docs|shm/doc\w*|shm/message": "documents and messages",
    r"consumer/definition": "definitions",
    r"shm/timestamp": "times",
    r"producer/(bi5|block_series|chunk|csv\w*|dbn\w*|event64\w*|frames|import\w*|ingest\w*|input\w*|intake|itch\w*|json\w*|lane|lobster_book|"
    r"new_york|npy|pack|parts|preset\w*|private_decode|progress|repair|rewrite\w*|runs|schema_file|sink|source|spill|stop|stream|sums|"
    r"volume_file|store_(write|overlap|choose)|diff|block_cache)": "ingesting",
}
TOOLS = r"(consumer/(cmd|tool|exporter)_|producer/(cmd|check)(_|$)|producer/stoup_main)"  # stoup(1) prints these to who asked
LEAST = 8  # letters of a text, or part of one, that tell anything


def strings(source, at):
    """The texts of a call that begins at `at`, with those that only a macro of printf parts joined."""
    depth, text = 1, ""
    while depth:
        char = source[at]
        if char == '"':
            end = re.compile(r'"((?:[^"\\]|\\.)*)"').match(source, at)
            text, at = text + end.group(1), end.end()
            continue
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char in ",?:" and text:
            yield text
            text = ""
        at += 1
    if text:
        yield text


def texts(path):
    with open(path, encoding="utf-8") as file:
        source = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    for call in re.finditer(rf"\b{CALLS}\s*\(", source):
        for text in strings(source, call.end()):
            plain = re.sub(r"%%", "%", re.sub(r"%[-+#0-9.*]*(?:ll|l|hh|h|z|t|j)?[diouxXscgfp]?(?!%)", "\0", text)).replace('\\"', '"')
            yield plain


def tells(text):
    """Not the end of another text, by a condition; no name of a file."""
    return not re.match(r"[:;] | \(|nr_hugepages", text) and len(re.sub(r"[^a-z]", "", text, flags=re.I)) >= LEAST


def pattern(fragment):
    """A short word would be found anywhere: it begins the text."""
    begin = r"\A" if re.fullmatch(r"\S{1,7}", fragment.strip()) else ""
    return re.compile(begin + ".*".join(re.escape(part.strip(" ")) for part in fragment.split("...")), re.S)


with open(os.path.join(SOURCE, "docs", "trouble.md"), encoding="utf-8") as page:
    page = page.read()
tables = page[:page.index("## Asking and converting")]
fragments = [found for row in re.findall(r"^\| (`.*?) \| .* \| .* \|$", tables, re.M) for found in re.findall(r"`([^`]+)`", row)]
fragments += re.findall(r"`([^`]+)`", tables[tables.rindex("`stoupd` also tells"):])[1:]
asked = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| ([^|]*) \| [^|]*\|$", page[len(tables):], re.M)))
areas = [row.split(" (")[0] for row in re.findall(r"^\| ([^|]*) \|[^|]*\|$", page[len(tables):], re.M)]
for area in AREAS.values():
    t.true(area in areas, f"a row '{area}' in {areas}")
t.true(len(fragments) > 120, f"texts in the tables: {len(fragments)}")
wanted = [pattern(fragment) for fragment in fragments]

everything, missing, total = [], [], 0
for path in sorted(glob.glob(os.path.join(SOURCE, "consumer", "*.c")) + glob.glob(os.path.join(SOURCE, "producer", "*.c")) +
                   glob.glob(os.path.join(SOURCE, "shm", "*.c"))):
    name = os.path.relpath(path, SOURCE)[:-2]
    if re.match(TOOLS, name):
        continue
    found = list(texts(path))
    everything += found
    if any(re.fullmatch(files, name) for files in AREAS):
        continue
    for text in filter(tells, found):
        total += 1
        if not any(row.search(text) for row in wanted):
            missing.append(f"{name}.c: {text!r}")
t.true(not missing, "no row of docs/trouble.md is about:\n" + "\n".join(missing).replace("\\x00", "..."))
t.true(total > 200, f"texts: {total}")
stale = [fragment for fragment in fragments + asked if not any(pattern(fragment).search(text) for text in everything)]
t.true(not stale, f"docs/trouble.md has what nobody prints: {stale}")
print(f"ok: {total} texts, {len(fragments)} parts of rows", flush=True)
