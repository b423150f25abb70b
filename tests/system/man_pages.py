# SPDX-License-Identifier: Apache-2.0
"""The manual is whole: a page for each export, each option of each program, structs as the headers have them."""
import os
import re
import shutil
import subprocess
import sys

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
MAN = os.path.join(SOURCE, "docs", "man")
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def read(*names):
    with open(os.path.join(SOURCE, *names), encoding="utf-8") as source:
        return source.read()


def page(name):
    """The text of a page, behind its alias, as it is printed: without escapes of '-' and fonts."""
    text = read("docs", "man", name)
    alias = re.fullmatch(r"\.so man\d/(\S+)\n", text)
    if alias:
        text = read("docs", "man", alias.group(1))
    return re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-")


pages = sorted(name for name in os.listdir(MAN) if re.search(r"\.\d$", name))

# ---- every export has a page, whose NAME section or synopsis is about it ------------------------------
exports = re.findall(r"^\t(stoup_\w+);$", read("consumer", "libstoup.map"), re.M)
check(len(exports) > 20, f"exports found: {exports}")
for name in exports:
    if name + ".3" not in pages:
        failures.append(f"{name} has no page in docs/man")
        continue
    check(re.search(rf"\b{name}\(", page(name + ".3")), f"{name}.3 shows no prototype of it")
for name in pages:
    target = re.fullmatch(r"\.so man3/(\S+)\n", read("docs", "man", name))
    check(not target or name[:-2] in exports, f"{name} is an alias of nothing that is exported")
    for other, section in re.findall(r"\b(stoupd?(?:[-_]\w+)?) ?\((\d)\)", page(name)):
        check(f"{other}.{section}" in pages, f"{name} refers to {other}({section}), which is no page")

# ---- every option that a help text names, and no other ------------------------------------------------
OPTION = r"(?<![\w-])--[a-z][a-z-]*"
stoup, stoupd = (set(re.findall(OPTION, "".join(page(name) for name in names)))
                 for names in ([name for name in pages if name.endswith(".1")], ["stoupd.8"]))
commands = re.findall(r"^  (\w+)", t.run([t.STOUP, "help"]).stdout, re.M)
t.true(len(commands) >= 6, f"commands found: {commands}")
known = {"--help", "--version"}
for command in commands:
    options = set(re.findall(OPTION, t.run([t.STOUP, "help", command]).stdout))
    known |= options
    if f"stoup-{command}.1" not in pages:
        failures.append(f"stoup {command} has no page in docs/man")
        continue
    there = set(re.findall(OPTION, page(f"stoup-{command}.1")))
    check(options <= there, f"stoup help {command}: not in stoup-{command}.1: {sorted(options - there)}")
    check(f"stoup-{command}(1)" in re.sub(r"(?m)^\.BR (\S+) \((\d)\)", r"\1(\2)", page("stoup.1")), f"{command} is not in stoup.1")
check(stoup <= known | {"--system"}, f"in the pages of stoup and in no help: {sorted(stoup - known)}")
options = set(re.findall(OPTION, t.run([t.STOUPD, "--help"]).stdout))
check(len(options) > 15 and options <= stoupd, f"not in stoupd.8: {sorted(options - stoupd)}")
EXAMPLE = {"--system"}  # of groupadd
check(stoupd <= options | EXAMPLE, f"in stoupd.8 and not in its help: {sorted(stoupd - options - EXAMPLE)}")
for name in ("stoup.1", "stoupd.8"):
    for section in ("EXAMPLES", "FILES", "ENVIRONMENT"):
        check(f"\n.SH {section}\n" in page(name), f"{name} has no section {section}")
    check(all(word in page(name) for word in ("STOUPD", "XDG_RUNTIME_DIR")), f"{name}: environment")


# ---- structs are shown as they are declared ------------------------------------------------------------

def members(body):
    """The members without comments and layout."""
    return [" ".join(m.split()).replace("* ", "*") for m in re.sub(r"/\*.*?\*/", " ", body, flags=re.S).split(";")
            if m.strip()]


STRUCT = re.compile(r"\bstruct (stoup_\w+) \{\n(.*?)\n\s*\};", re.S)
declared = {}
for header in ("consumer/stoup.h", "consumer/stoup_filter.h", "consumer/stoup_bars.h", "consumer/stoup_merge.h",
               "shm/stoup_types.h", "shm/stoup_doc.h", "shm/stoup_text.h"):
    declared |= {name: members(body) for name, body in STRUCT.findall(read(*header.split("/")))}
shown = set()
for name in pages:
    for struct, body in STRUCT.findall(page(name)):
        shown.add(struct)
        found, expected = members(body), declared.get(struct, [])
        if "what follows is private" in body:
            expected = expected[:len(found)]
        check(found == expected, f"{name}: struct {struct} has {found}, declared is {expected}")
missing = {"stoup_series", "stoup_span", "stoup_range", "stoup_require", "stoup_stats", "stoup_schema",
           "stoup_field", "stoup_error"} - shown
check(not missing, f"shown on no page: {sorted(missing)}")

# ---- the formatter has nothing to say -------------------------------------------------------------------
if shutil.which("man"):
    root = t.temp_dir()
    for name in pages:
        os.makedirs(os.path.join(root, "man" + name[-1]), exist_ok=True)
        shutil.copy(os.path.join(MAN, name), os.path.join(root, "man" + name[-1], name))
    environment = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANROFFSEQ": "t"}
    for name in pages:
        path = os.path.join(root, "man" + name[-1], name)
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path], cwd=root,
                              env=environment, capture_output=True, text=True)
        check(done.returncode == 0 and not done.stderr, f"man --warnings {name}: {done.stderr}")
        check(len(done.stdout) > 1000, f"{name} is empty")
else:
    print("note: man is not installed: the pages are not formatted")

for text in failures:
    print("FAILED:", text)
sys.exit(1 if failures else 0)
