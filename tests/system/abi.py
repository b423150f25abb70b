# SPDX-License-Identifier: Apache-2.0
"""The binary interface of libstoup stays what it was: docs/abi.md has the promise, tests/golden/abi-symbols.txt and
abi-layout.txt the facts that it is about.

Each symbol with its version, each public struct with the place of each member, on arm64 as well where its compiler is
installed; abi-types.txt has the type of each member and call. What is new must be written into the files, `abi.py --add`
does that; what stands there changes with the SOVERSION alone. And the headers are digested by cffi and bindgen, where
those are installed, with the same layouts.
"""
import os
import re
import shutil
import subprocess
import sys

import lib_stoup as t

SOURCE = os.environ["STOUP_SOURCE_DIR"]
BUILD = os.environ["STOUP_BUILD_DIR"]
LIB = os.path.join(os.environ["STOUP_LIB_DIR"], "libstoup.so")
INCLUDE = os.path.join(BUILD, "consumer", "include")
SYMBOLS = os.path.join(SOURCE, "tests", "golden", "abi-symbols.txt")
LAYOUT = os.path.join(SOURCE, "tests", "golden", "abi-layout.txt")
TYPES = os.path.join(SOURCE, "tests", "golden", "abi-types.txt")
ADD = "--add" in sys.argv
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def lines(path):
    with open(path, encoding="ascii") as golden:
        return [line.split() for line in golden if line.strip() and not line.startswith("#")]


def add(path, new):
    with open(path, "a", encoding="ascii") as golden:
        golden.writelines(line + "\n" for line in new)
    print(f"added to {os.path.relpath(path, SOURCE)}: {len(new)} lines")


def cached(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
        found = re.search(rf"^{name}:[A-Z]+=(.*)$", cache.read(), re.M)
    return found.group(1) if found else ""


CC = cached("CMAKE_C_COMPILER")
work = t.temp_dir()

# ---- symbols ----------------------------------------------------------------------------------------------
golden = {name for (name,) in lines(SYMBOLS)}
shown = t.run(["nm", "-D", "--defined-only", "--with-symbol-versions", LIB]).stdout
symbols = {line.split()[-1] for line in shown.splitlines() if line.split()[1] != "A"}
if os.environ.get("STOUP_SANITIZED"):
    symbols = {name for name in symbols if name.startswith("stoup_")}
if ADD and symbols - golden:
    add(SYMBOLS, sorted(symbols - golden))
    golden |= symbols
check(len(golden) >= 30, f"{SYMBOLS} has {len(golden)} lines")
check(golden <= symbols, f"gone from libstoup.so, or of another version: {sorted(golden - symbols)}")
check(symbols <= golden, f"new in libstoup.so, run tests/system/abi.py --add: {sorted(symbols - golden)}")

# ---- structs: what the headers declare --------------------------------------------------------------------
empty = os.path.join(work, "empty")
os.mkdir(empty)
for name in ("stddef.h", "stdint.h"):
    with open(os.path.join(empty, name), "w", encoding="ascii"):
        pass
headers = sorted(name for name in os.listdir(INCLUDE) if name.endswith(".h"))
with open(os.path.join(work, "all.h"), "w", encoding="ascii") as out:
    out.writelines(f'#include "{name}"\n' for name in headers)
# The headers alone, without attributes and assertions: what a parser of plain C digests. docs/abi.md has this line.
plain = t.run([CC, "-E", "-P", "-nostdinc", "-I", empty, "-I", INCLUDE, "-DSTOUP_NO_INLINE", "-D__attribute__(x)=",
               "-D_Static_assert(...)=struct stoup_unused", os.path.join(work, "all.h")]).stdout


def members(body):
    for declaration in filter(str.strip, body.split(";")):
        first, *others = declaration.split(",")
        for one in [first.split()[-1], *others]:
            yield re.match(r"\s*\**(\w+)", one).group(1)


declared = {name: list(members(body)) for name, body in re.findall(r"struct (stoup_\w+)\s*\{(.*?)\}", plain, re.S)}
check(len(declared) > 35, f"structs found in the headers: {sorted(declared)}")

# ---- constants: their values are compiled into programs -----------------------------------------------------
macros = t.run([CC, "-E", "-dM", "-I", INCLUDE, os.path.join(work, "all.h")]).stdout
constants = dict(re.findall(r"^#define (STOUP_\w+) (.*\S) *$", macros, re.M))
constants.pop("STOUP_TYPE_LAST", None)  # may grow
constants.pop("STOUP_API", None)  # no number
for name, value in constants.items():
    value = re.sub(r"\b(0x[0-9a-f]+|\d+)u?l*\b", r"\1", value)  # as Python has them
    plain_number = re.fullmatch(r"(?:0x)?[0-9a-f]+", value)
    if not plain_number:
        check(re.fullmatch(r"[\da-fx()<>|+* -]+", value), f"no number: {name} {value}")
        value = str(eval(value))  # of numbers and operators alone
    constants[name] = value
table = {words[0]: words[1:] for words in lines(LAYOUT)}
written = {name: value for name, (value, *_) in table.items() if name.startswith("STOUP_")}
if ADD and set(constants) - set(written):
    fresh = {name: value for name, value in constants.items() if name not in written}
    add(LAYOUT, [f"{name} {value}" for name, value in fresh.items()])
    written |= fresh
check(len(constants) > 25, f"constants found in the headers: {sorted(constants)}")
check(constants == written, "constants differ from tests/golden/abi-layout.txt (new ones: tests/system/abi.py --add): "
                            f"{sorted(set(constants.items()) ^ set(written.items()))}")

# ---- structs: the table holds ------------------------------------------------------------------------------
table = {name: numbers for name, numbers in table.items() if name.startswith("stoup_")}
ordered = [name for struct, found in declared.items() for name in (struct, *(f"{struct}.{one}" for one in found))]
names = set(ordered)
new = [name for name in ordered if name not in table]
if ADD and new:
    program = os.path.join(work, "layout")
    with open(program + ".c", "w", encoding="ascii") as out:
        out.write("#include <stdio.h>\n" + "".join(f'#include "{name}"\n' for name in headers) + "int main(void)\n{\n")
        for name in new:
            struct, _, member = name.partition(".")
            place = (f"offsetof(struct {struct}, {member}), sizeof(((struct {struct} *)0)->{member})" if member else
                     f"sizeof(struct {struct}), _Alignof(struct {struct})")
            grows = " grows" if not member and declared[struct][0] == "struct_len" else ""
            out.write(f'\tprintf("{name} %zu %zu{grows}\\n", {place});\n')
        out.write("\treturn 0;\n}\n")
    t.run([CC, "-std=c17", "-I", INCLUDE, program + ".c", "-o", program])
    text = t.run([program]).stdout.splitlines()
    add(LAYOUT, text)
    table |= {line.split()[0]: line.split()[1:] for line in text}
check(set(table) <= names, f"gone from the headers: {sorted(set(table) - names)}")
check(names <= set(table), f"new in the headers, run tests/system/abi.py --add: {sorted(names - set(table))}")
# ---- types: of members and calls, the names of arguments left out ---------------------------------------------
def squeezed(text):
    return re.sub(r" ?\* ?", "*", re.sub(r"\s+", " ", text)).strip()


def types_of_members(struct, body):
    for declaration in filter(str.strip, body.split(";")):
        first, *others = squeezed(declaration).split(",")
        base = re.match(r"(?:const |unsigned |struct )*\w+(?: const)?", first).group(0)
        for one in [first[len(base):], *others]:
            name = re.search(r"\w+", one).group(0)
            yield f"{struct}.{name} {squeezed(base + one.replace(name, '', 1))}"


def type_of_call(result, name, arguments):
    def unnamed(argument):
        return re.sub(r"(?<=[ *])\w+$", "", squeezed(argument)).strip()

    return f"{name} {squeezed(result)}({', '.join(unnamed(one) for one in arguments.split(','))})"


flat = re.sub(r"\{[^{}]*\}", "", plain)
types = [line for name, body in re.findall(r"struct (stoup_\w+)\s*\{(.*?)\}", plain, re.S)
         if name in declared for line in types_of_members(name, body)]
types += [type_of_call(*call) for call in re.findall(r"([\w\s*]+?)\b(stoup_\w+)\(([^()]*)\)\s*;", flat)]
kept = {" ".join(words) for words in lines(TYPES)}
if ADD and {line.split()[0] for line in types} - {line.split()[0] for line in kept}:
    fresh = [line for line in types if line.split()[0] not in {old.split()[0] for old in kept}]
    add(TYPES, fresh)
    kept |= set(fresh)
check(sum("(" in line for line in types) == len({name.split("@")[0] for name in golden}),
      f"calls found in the headers: {[line for line in types if '(' in line]}")
check(set(types) == kept, "types differ from tests/golden/abi-types.txt (new ones: tests/system/abi.py --add): "
                          f"{sorted(set(types) ^ kept)}")

with open(os.path.join(work, "assert.c"), "w", encoding="ascii") as out:
    out.write("".join(f'#include "{name}"\n' for name in headers))
    for name, numbers in table.items():
        struct, _, member = name.partition(".")
        if name not in names:
            continue
        first, second = numbers[:2]
        if member:
            claims = [(f"offsetof(struct {struct}, {member}) == {first}", "offset"),
                      (f"sizeof(((struct {struct} *)0)->{member}) == {second}", "length")]
        else:
            relation = ">=" if numbers[2:] == ["grows"] else "=="  # structs with struct_len grow at their end
            claims = [(f"sizeof(struct {struct}) {relation} {first}", "size"),
                      (f"_Alignof(struct {struct}) == {second}", "alignment")]
        out.writelines(f'_Static_assert({claim}, "{what} of {name}");\n' for claim, what in claims)
for compiler in (CC, shutil.which("aarch64-linux-gnu-gcc")):
    if not compiler:
        print("note: no compiler for arm64: the layouts are those of this machine alone")
        continue
    done = t.run([compiler, "-std=c17", "-fsyntax-only", "-I", INCLUDE, os.path.join(work, "assert.c")], expect=None)
    broken = re.findall(r'(?:size|alignment|offset|length) of [\w.]+', done.stderr)
    check(done.returncode == 0, f"{compiler}: not where tests/golden/abi-layout.txt has it: "
                                f"{sorted(set(broken)) or done.stderr[:600]}")

# ---- cffi: the plain text, and a scan by it ------------------------------------------------------------------
CFFI = '''
import sys
import cffi
text, lib, store, *names = sys.argv[1:]
ffi = cffi.FFI()
ffi.cdef(open(text, encoding="ascii").read())
stoup = ffi.dlopen(lib)
for name in names:
    print(name, ffi.sizeof("struct " + name))
print("version", ffi.string(stoup.stoup_version()).decode())
st, cur, err = ffi.new("struct stoup **"), ffi.new("struct stoup_cursor **"), ffi.new("struct stoup_error *")
series, span = ffi.new("struct stoup_series *"), ffi.new("struct stoup_span *")
assert stoup.stoup_attach(store.encode(), ffi.NULL, st, err) == 0, ffi.string(err.text)
assert stoup.stoup_series_find(st[0], b"XTST.TEST/AAA/mbo", series, err) == 0, ffi.string(err.text)
assert stoup.stoup_schema_require(series, b"mbo", ffi.sizeof("struct stoup_mbo"), err) == 0, ffi.string(err.text)
assert stoup.stoup_scan(st[0], series, ffi.NULL, cur, err) == 0, ffi.string(err.text)
total = 0
while stoup.stoup_next(cur[0], span) > 0:
    records = ffi.cast("struct stoup_mbo *", span.base)
    total += sum(records[i].price * records[i].size for i in range(span.record_cnt))
stoup.stoup_cursor_close(cur[0])
assert stoup.stoup_detach(st[0]) == 0
print("sum", total)
'''


def cffi_python():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import cffi"], capture_output=True).returncode == 0:
            return python
    return None


python = cffi_python()
if python and not os.environ.get("STOUP_SANITIZED"):
    store, totals = t.make_store(3000)
    rows = list(t.mbo_records(3000, {"AAA": 11}))
    with open(os.path.join(work, "plain.h"), "w", encoding="ascii") as out:
        out.write(plain)
    done = t.run([python, "-B", "-c", CFFI, os.path.join(work, "plain.h"), LIB, store + "/", *sorted(declared)],
                 env=os.environ | {"XDG_RUNTIME_DIR": t.temp_dir()})
    found = dict(line.split() for line in done.stdout.splitlines())
    check(found.pop("sum") == str(sum(price * size for _, _, price, size in rows)), "the sum through cffi")
    check(found.pop("version") == cached("CMAKE_PROJECT_VERSION"), "the version through cffi")
    for name, size in found.items():
        check(name not in table or table[name][0] == size or table[name][2:] == ["grows"], f"cffi: {name}: {size} bytes")
    check(len(found) == len(declared), f"cffi saw {len(found)} structs")
else:
    print("note: no python with cffi (python3-cffi), or a sanitized library: the headers are not tried with it")

# ---- bindgen: every struct with its layout, every call -------------------------------------------------------
with open(os.path.join(work, "all_calls.h"), "w", encoding="ascii") as out:
    out.writelines(f'#include "{name}"\n' for name in headers)
with open(os.path.join(work, "empty.h"), "w", encoding="ascii") as out:
    out.write("int nothing;\n")
# It loads libclang at run time, which its package only recommends.
if shutil.which("bindgen") and subprocess.run(["bindgen", os.path.join(work, "empty.h")],
                                              capture_output=True).returncode == 0:
    done = t.run(["bindgen", "--no-rustfmt-bindings", "--allowlist-type", "stoup.*", "--allowlist-function", "stoup_.*",
                  "--allowlist-var", "STOUP_.*", os.path.join(work, "all_calls.h"), "--", "-DSTOUP_NO_INLINE", "-I", INCLUDE])
    rust = re.sub(r"\s+", " ", done.stdout)
    sizes = dict(re.findall(r"size_of :: < (stoup_\w+) > \(\) , (\d+)usize", rust))
    for name in declared:
        check(f"pub struct {name} " in rust, f"bindgen: {name} is missing")
        if name in sizes and name in table:
            check(sizes[name] == table[name][0] or table[name][2:] == ["grows"], f"bindgen: {name}: {sizes[name]} bytes")
    check(len(sizes) > 30, f"bindgen: layouts of {len(sizes)} structs")
    calls = set(re.findall(r"pub fn (stoup_\w+) \(", rust))
    check(calls == {name.split("@")[0] for name in symbols}, f"bindgen: calls {sorted(calls)}")
    check("pub const STOUP_TYPE_I64 : u32 = 8" in rust, "bindgen: constants")
else:
    print("note: bindgen or libclang is not installed: the headers are not tried with it")

for text in failures:
    print("FAILED:", text)
sys.exit(1 if failures else 0)
