#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""arm64_orders.py - are the memory orders of docs/memory-model.md in the arm64 instructions?

    arm64_orders.py [--build DIR] [--include DIR]... [--verbose]
    arm64_orders.py --table

The table below says which order each operation of a tag must have, and DEMANDED which instructions carry
that order. Neither is read from the code, so that an order that was weakened there is found here:

  1. each function of shm/lease.h, compiled alone for the machines of FLAVOURS, consists of the demanded
     instructions, in this order, and of no other that orders memory;
  2. each other operation of the table, likewise, by the line that it was compiled from;
  3. with --build: so do all copies of them that were inlined into the libraries and programs of that build,
     and the helpers that the compiler calls for atomic operations have both of their forms;
  4. the table's operations are those of the source, its tags and functions those of docs/memory-model.md
     (--table: this alone, which needs no compiler);
  5. the check can fail: in a copy of the sources each order is weakened, one at a time, and each time this
     must be seen.

A sequence of instructions says what the processor promises. It says nothing of whether the algorithm needs
it: that is argued in docs/memory-model.md and model-checked in tests/race/model.

The last line is the count; exit status 0 when nothing failed.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = "aarch64-linux-gnu-"

# ---- what the orders of C11 are on arm64 -----------------------------------------------------------
# ldar after stlr (or after stlxr) is not performed before it; ldapr may be, so it is no seq_cst load.
EXCHANGE = {"swpal", "ldaxr+stlxr", "call __aarch64_swp4_acq_rel", "call __aarch64_swp8_acq_rel"}
CAS = {"casal", "ldaxr+stlxr", "call __aarch64_cas4_acq_rel", "call __aarch64_cas8_acq_rel"}
OR = {"ldsetal", "ldaxr+stlxr", "call __aarch64_ldset4_acq_rel", "call __aarch64_ldset8_acq_rel"}
DEMANDED = {
    "load acquire": {"ldar", "ldapr"},
    "load seq_cst": {"ldar"},
    "store release": {"stlr"},
    "store seq_cst": {"stlr"},
    "exchange acq_rel": EXCHANGE,
    "exchange seq_cst": EXCHANGE,
    "cas acq_rel": CAS,
    "or seq_cst": OR,
    "fence acquire": {"dmb ishld", "dmb ish"},
    "fence release": {"dmb ish"},
    "fence seq_cst": {"dmb ish"},
}
# Weaker orders that the instructions must betray. Not among them: what one instruction serves as well,
# such as seq_cst in place of release of a store (stlr), or in place of acq_rel of an exchange.
WEAKER = {
    "load": {"acquire": ["relaxed"], "seq_cst": ["relaxed"]},
    "store": {"release": ["relaxed"], "seq_cst": ["relaxed"]},
    "exchange": {"acq_rel": ["acquire", "release", "relaxed"], "seq_cst": ["acquire", "release", "relaxed"]},
    "cas": {"acq_rel": ["acquire", "release", "relaxed"]},
    "or": {"seq_cst": ["acquire", "release", "relaxed"]},
    "fence": {"acquire": ["relaxed"], "release": ["acquire", "relaxed"], "seq_cst": ["acquire", "relaxed"]},
}
# Compilers, and how each is told to emit the functions of a header that nobody calls.
GCC = [TOOLS + "gcc", "-fkeep-inline-functions"]
CLANG = ["clang", "--target=aarch64-linux-gnu", "-isystem/usr/aarch64-linux-gnu/include",
         "-Dinline=__attribute__((used))"]
FLAVOURS = {  # name: compiler and machine; what exchanges become
    "outline": GCC + ["-march=armv8-a", "-moutline-atomics"],  # Debian's default: a call, which asks the processor
    "v8.0": GCC + ["-march=armv8-a", "-mno-outline-atomics"],  # load-linked loops
    "v8.1": GCC + ["-march=armv8.1-a"],                        # instructions of their own
    "v8.3": GCC + ["-march=armv8.3-a"],                        # gcc 13 and later: ldapr for acquire loads
    "clang v8.0": CLANG + ["-march=armv8-a", "-mno-outline-atomics"],
    "clang v8.1": CLANG + ["-march=armv8.1-a"],
}

# ---- the table -------------------------------------------------------------------------------------
# One line for each function: its file, the object it is found in (lib: libstoup.so, daemon: stoupd), and
# its atomic operations as they stand, `-` for one that orders nothing, with the tags that rely on it.
CONSUMER, CONDUCTOR = "lib", "daemon"
ROWS = [
    ("shm/lease.h", "stoup_lease_acquire", CONSUMER,
     ["load acquire: L2", "exchange seq_cst: L1", "load seq_cst: L1", "store release:"]),
    ("shm/lease.h", "stoup_lease_release", CONSUMER, ["exchange seq_cst: R1 R2", "load seq_cst: R1"]),
    ("shm/lease.h", "stoup_lease_cell_reach", CONSUMER, ["-", "store seq_cst: L4"]),
    ("shm/lease.h", "stoup_lease_ticket", CONSUMER, ["store release: M1"]),
    ("shm/lease.h", "stoup_lease_cancel", CONSUMER, ["cas acq_rel: G1 L2"]),
    ("shm/lease.h", "stoup_request_post", CONSUMER, ["or seq_cst: M1 S1", "load seq_cst: S1"]),
    ("shm/lease.h", "stoup_residency_publish", CONDUCTOR, ["store release: L2"]),
    ("shm/lease.h", "stoup_residency_clear", CONDUCTOR, ["store release: E1"]),
    ("shm/lease.h", "stoup_evict_fence", CONDUCTOR, ["fence seq_cst: E1"]),
    ("shm/lease.h", "stoup_cell_read", CONDUCTOR, ["load acquire: E1 R2"]),
    ("shm/lease.h", "stoup_cell_high", CONDUCTOR, ["load acquire: L4"]),
    ("shm/lease.h", "stoup_lease_grant", CONDUCTOR, ["cas acq_rel: G1 L2"]),
    ("shm/lease.h", "stoup_request_take", CONDUCTOR, ["load seq_cst: S1", "exchange seq_cst: M1"]),
    ("shm/lease.h", "stoup_request_done", CONDUCTOR, ["-", "-", "exchange acq_rel: M2"]),
    ("shm/lease.h", "stoup_flag_raise", CONDUCTOR, ["store seq_cst: S1 R1", "fence seq_cst: S1 R1"]),
    ("shm/lease.h", "stoup_flag_lower", CONDUCTOR, ["-"]),
    ("producer/request.c", "stoup_requests_pending", CONDUCTOR, ["load seq_cst: S1"]),
    ("consumer/wait.c", "slots_sweep", CONSUMER, ["load acquire: M2"]),
    ("consumer/wait.c", "is_done", CONSUMER, ["load acquire: M2"]),
    ("consumer/wait.c", "doze", CONSUMER, ["cas acq_rel: M2"]),
    ("consumer/wait.c", "result", CONSUMER, ["-", "-", "load acquire: G1 L2"]),
    ("consumer/wait.c", "stoup_wait_grant", CONSUMER, ["-", "-", "-", "-", "load acquire: L2", "-", "-"]),
    ("consumer/cells.c", "shared_hit", CONSUMER, ["load acquire: L2"]),
    ("consumer/cells.c", "stoup_cells_settle", CONSUMER,
     ["-", "-", "store release: R2", "-", "store seq_cst: L4"]),
    ("consumer/snapshot.c", "stoup_snapshot_publish", CONSUMER, ["store release: V1"]),
    ("producer/snapshot.c", "oldest_of", CONDUCTOR, ["load acquire: V1"]),
    ("shm/control.c", "stoup_control_announce", CONDUCTOR, ["store release:", "store release: A1"]),
    ("shm/control.c", "stoup_control_verify", CONSUMER, ["load acquire: A1"]),
    ("producer/publish.c", "error_note", CONDUCTOR, ["-", "-", "fence release: K1", "store release: K1"]),
    ("shm/control.c", "stoup_control_error_copy", CONSUMER, ["load acquire: K1", "fence acquire: K1", "-"]),
    ("producer/holders.c", "row_write", CONDUCTOR, ["-", "-", "fence release: K1", "store release: K1"]),
    ("shm/control.c", "stoup_control_holder_copy", CONSUMER, ["load acquire: K1", "fence acquire: K1", "-"]),
]
HEADER = "shm/lease.h"

counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(condition, text):
    counts["passed" if condition else "failed"] += 1
    if not condition:
        print("FAILED:", text)


def skip(text):
    counts["skipped"] += 1
    print("skipped:", text)


class Operation:
    """An atomic operation of the table: what it must be."""

    def __init__(self, row, number, text):
        self.file, self.function, self.side, _ = row
        self.number = number
        self.plain = text == "-"
        what, _, tags = text.partition(":")
        self.what, self.tags = what, tags.split()
        self.kind, _, self.order = what.partition(" ")

    def __str__(self):
        tags = "".join(f"[{tag}] " for tag in self.tags)
        return f"{tags}{self.function} in {self.file}, operation {self.number + 1}: {self.what}"


def operations(row):
    return [Operation(row, i, text) for i, text in enumerate(row[3])]


# ---- the source: where the operations stand ----------------------------------------------------------
CALL = re.compile(r"\batomic_(load|store|exchange|compare_exchange_strong|compare_exchange_weak|thread_fence|"
                  r"fetch_\w+?)(?:_explicit)?\(")
KINDS = {"load": "load", "store": "store", "exchange": "exchange", "compare_exchange_strong": "cas",
         "compare_exchange_weak": "cas", "fetch_or": "or", "thread_fence": "fence"}


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def without_comments(text):
    """The same with blanks in place of comments: offsets and lines stay."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def closing(text, at):
    """Offset behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    raise ValueError("a parenthesis without its end")


def body(text, function):
    """Offsets of a function's body."""
    for found in re.finditer(rf"\b{function}\(", text):
        end = closing(text, found.end() - 1)
        brace = re.match(r"\s*\{", text[end:])
        if brace:
            return end, text.index("\n}", end)
    raise ValueError(f"{function} is not defined")


def places(text, function):
    """[(kind, offset, end offset)] of a function's atomic operations, as they stand."""
    begin, end = body(text, function)
    return [(KINDS.get(found.group(1), found.group(1)), found.start(), closing(text, found.end() - 1))
            for found in CALL.finditer(text, begin, end)]


def source_lines(root):
    """{(file, function): [(first line, last line)]}; the table and the source agree on what stands where."""
    lines = {}
    for row in ROWS:
        text = without_comments(read(os.path.join(root, row[0])))
        try:
            found = places(text, row[1])
        except ValueError as error:
            found = []
            check(False, f"{row[0]}: {error}")
        kinds = [op.kind for op in operations(row)]
        same = len(found) == len(kinds) and all(k in ("-", f[0]) for k, f in zip(kinds, found))
        check(same, f"{row[1]} in {row[0]} has the operations {[f[0] for f in found]}, the table {row[3]}")
        if same:
            lines[row[0], row[1]] = [(text.count("\n", 0, f[1]) + 1, text.count("\n", 0, f[2]) + 1)
                                     for f in found]
    return lines


# ---- instructions --------------------------------------------------------------------------------------
ZERO = re.compile(r"\b[wx]zr\b")


def ordering(mnemonic, operands):
    """The name of an instruction that orders memory or is part of an atomic operation; None of others."""
    name = re.sub(r"(?<=ar|pr|lr)[bh]$|(?<=xr)[bh]$", "", mnemonic)
    if name in ("ldar", "ldapr", "ldapur", "stlr", "stlur", "ldxr", "ldaxr", "stxr", "stlxr"):
        return name.replace("ldapur", "ldapr").replace("stlur", "stlr")
    if re.fullmatch(r"(swp|cas|ld(add|set|clr|eor)|st(add|set|clr|eor))(a|l|al)?[bh]?", mnemonic):
        # Without a register for its result an instruction does not acquire.
        register = operands.split(",")[0 if name.startswith(("st", "cas")) else 1]
        return f"{name} without acquire" if ZERO.search(register) else name
    if name in ("dmb", "dsb", "isb"):
        return f"{name} {operands}".strip()
    called = re.search(r"<?(__aarch64_\w+)", operands) if name in ("bl", "b") else None
    return f"call {called.group(1)}" if called else None


def joined(names):
    """Load-linked loops as one: ldaxr+stlxr."""
    result = []
    for name in names:
        if name in ("stxr", "stlxr") and result and result[-1] in ("ldxr", "ldaxr"):
            result[-1] += "+" + name
        else:
            result.append(name)
    return result


class Disassembly:
    """functions: {symbol: [name]}; lines: {line: {file as compiled: [name]}}; names as of ordering()."""

    def __init__(self, path):
        self.functions, self.lines = {}, {}
        text = subprocess.run([TOOLS + "objdump", "-drl", "--no-show-raw-insn", path], check=True,
                              capture_output=True, text=True).stdout
        symbol, line = None, None
        rows = text.splitlines()
        for i, row in enumerate(rows):
            if found := re.match(r"[0-9a-f]+ <(.+)>:$", row):
                symbol, line = found.group(1), None
                self.functions.setdefault(symbol, [])
            elif found := re.match(r"\s+[0-9a-f]+:\t(\S+)\s*(.*)", row):
                mnemonic, operands = found.groups()
                if mnemonic in ("b", "bl") and i + 1 < len(rows) and "R_AARCH64_" in rows[i + 1]:
                    operands = f"<{rows[i + 1].split()[-1]}>"  # who is called, before it is linked
                self._add(symbol, line, ordering(mnemonic, operands))
            elif found := re.match(r"(/?\S+):(\d+)(?: \(discriminator \d+\))?$", row):
                line = (found.group(1), int(found.group(2)))

    def _add(self, symbol, line, name):
        if name:
            self.functions[symbol].append(name)
            if line:
                self.lines.setdefault(line[1], {}).setdefault(line[0], []).append(name)

    def of_function(self, function):
        return joined(self.functions.get(function, []))

    def of_lines(self, file, first, last):
        names = []
        for line in range(first, last + 1):
            for path, found in self.lines.get(line, {}).items():
                if path == file or path.endswith("/" + file):
                    names += found
        return joined(names)


# ---- compiling one file alone ---------------------------------------------------------------------------
def compiled(root, file, compiler, includes, work):
    """Disassembly of a file; of a header, all its functions, called or not. None: it does not compile."""
    out = os.path.join(work, re.sub(r"\W", "_", file + "".join(compiler)) + ".o")
    source = os.path.join(root, file)
    if file.endswith(".h"):
        source = os.path.join(work, "header.c")
        if not os.path.exists(source):
            with open(source, "w", encoding="utf-8") as text:
                text.write(f'#include "{file}"\n')
    done = subprocess.run([*compiler, "-std=c17", "-D_GNU_SOURCE", '-DSTOUP_VERSION="0"', "-O2", "-g", "-fPIC", "-w",
                           '-DSTOUP_INSTALL_DAEMON="/"', "-fno-strict-aliasing", f"-I{root}",
                           *[f"-I{path}" for path in includes], "-c", source, "-o", out],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    return Disassembly(out)


def faults_of_header(dis):
    """{operation: fault} of the functions of shm/lease.h, compiled alone; a fault of the whole is under None."""
    faults = {}
    for row in ROWS:
        if row[0] != HEADER:
            continue
        wanted = [op for op in operations(row) if not op.plain]
        found = dis.of_function(row[1])
        if len(found) != len(wanted):
            faults[row[1], None] = f"{row[1]}: {found or 'nothing that orders'} for {[op.what for op in wanted]}"
            continue
        for op, name in zip(wanted, found):
            if name not in DEMANDED[op.what]:
                faults[row[1], op.number] = f"{op}: found {name}"
    return faults


def faults_of_lines(dis, rows, lines, what):
    """[fault] of operations by their lines."""
    faults = []
    for row in rows:
        for op, (first, last) in zip(operations(row), lines.get((row[0], row[1]), [])):
            if op.plain:
                continue
            found = dis.of_lines(row[0], first, last)
            if not found:
                faults.append(f"{op}: nothing that orders at line {first} in {what}")
            for name in sorted(set(found) - DEMANDED[op.what]):
                faults.append(f"{op}: {name} at line {first} in {what}")
    return faults


def is_or_calls(name, file, function):
    """Is `name` a function of the table, or one in the same file that calls it?"""
    if name == function:
        return True
    text = without_comments(read(os.path.join(SOURCE, file)))
    try:
        begin, end = body(text, name)
    except ValueError:
        return False
    return re.search(rf"\b{function}\(", text[begin:end]) is not None


# ---- the checks -------------------------------------------------------------------------------------------
def check_document():
    text = read(os.path.join(SOURCE, "docs/memory-model.md"))
    rows = re.findall(r"^\| ([A-Z]\d) \| (.*?) \| (.*?) \|", text, re.M)
    here = {}
    for row in ROWS:
        for op in operations(row):
            for tag in op.tags:
                here.setdefault(tag, set()).add(row[:2])
    check(set(here) == {row[0] for row in rows},
          f"tags of the table and of docs/memory-model.md: {sorted(set(here) ^ {row[0] for row in rows})}")
    for tag, *ends in rows:
        for name in sorted(set(re.findall(r"`(stoup_\w+)", " ".join(ends)))):
            check(any(is_or_calls(name, file, function) for file, function in here.get(tag, ())),
                  f"docs/memory-model.md has {name} for {tag}, the table has not")


def check_header(work, verbose):
    """The functions of shm/lease.h alone, for each kind of machine."""
    shown = {}
    for flavour, compiler in FLAVOURS.items():
        dis = compiled(SOURCE, HEADER, compiler, [], work)
        if not dis:
            check(False, f"{HEADER} does not compile with {' '.join(compiler)}")
            continue
        faults = faults_of_header(dis)
        for row in ROWS:
            if row[0] == HEADER:
                mine = [text for (function, _), text in faults.items() if function == row[1]]
                check(not mine, f"{flavour}: {'; '.join(mine)}")
                shown.setdefault(row[1], {})[flavour] = dis.of_function(row[1])
    if verbose:
        for function, by in shown.items():
            print(f"{function}")
            for flavour, names in by.items():
                print(f"    {flavour:10} {', '.join(names) or 'plain'}")


def check_files(work, lines, includes):
    """The other operations, from the file that has them. Returns the files that could not be compiled."""
    absent = []
    for file in sorted({row[0] for row in ROWS} - {HEADER}):
        for flavour, compiler in FLAVOURS.items():
            dis = compiled(SOURCE, file, compiler, includes, work)
            if not dis:
                absent.append(file)
                break
            rows = [row for row in ROWS if row[0] == file]
            faults = faults_of_lines(dis, rows, lines, f"{file}, {flavour}")
            for row in rows:
                mine = [text for text in faults if f"{row[1]} in" in text]
                check(not mine, "; ".join(mine))
    return absent


def check_build(build, lines):
    """All copies in what was built, and the compiler's helpers."""
    for side, path in ((CONSUMER, "lib/libstoup.so"), (CONDUCTOR, "bin/stoupd")):
        full = os.path.join(build, path)
        if not os.path.exists(full):
            skip(f"{path} was not built: its copies of the operations are not looked at")
            continue
        dis = Disassembly(full)
        rows = [row for row in ROWS if row[2] == side]
        faults = faults_of_lines(dis, rows, lines, path)
        for row in rows:
            mine = [text for text in faults if f"{row[1]} in" in text]
            check(not mine, "; ".join(mine))
        helpers = [name for name in dis.functions if re.fullmatch(r"__aarch64_(swp|cas|ldset)\d_acq_rel", name)]
        for name in helpers:
            stem = re.match(r"__aarch64_([a-z]+)", name).group(1)
            found = dis.of_function(name)
            check(sorted(found) == sorted([stem + "al", "ldaxr+stlxr"]), f"{name} in {path} is {found}")
        print(f"{path}: {', '.join(sorted(helpers)) or 'no helpers'}: swpal, casal or ldsetal, and ldaxr+stlxr")


# ---- can it fail? -------------------------------------------------------------------------------------------
def weakened(text, function, number, order):
    """The text with one operation's orders replaced."""
    _, begin, end = places(without_comments(text), function)[number]
    once = text[begin:end]
    changed = re.sub(r"memory_order_\w+", f"memory_order_{order}", once)
    if "compare_exchange" in once:  # the order of a failure has no release
        failure = "relaxed" if order in ("relaxed", "release") else "acquire"
        changed = re.sub(r"memory_order_\w+(?=\s*\)$)", f"memory_order_{failure}", changed)
    return text[:begin] + changed + text[end:]


def mutant_seen(op, order, includes, lines):
    """[flavour that betrays the weaker order], of one mutant in a copy of its own."""
    with tempfile.TemporaryDirectory(prefix="stoup-orders-") as work:
        root = os.path.join(work, "source")
        for folder in ("shm", "codec", "consumer", "producer"):
            shutil.copytree(os.path.join(SOURCE, folder), os.path.join(root, folder))
        path = os.path.join(root, op.file)
        text = read(path)
        with open(path, "w", encoding="utf-8") as out:
            out.write(weakened(text, op.function, op.number, order))
        seen = []
        for flavour, compiler in FLAVOURS.items():
            dis = compiled(root, op.file, compiler, includes, work)
            if dis is None:
                return None
            if op.file == HEADER:
                faults = {key for key in faults_of_header(dis) if key[0] == op.function}
            else:
                rows = [row for row in ROWS if row[:2] == (op.file, op.function)]
                faults = faults_of_lines(dis, rows, lines, "the copy")
            if faults:
                seen.append(flavour)
        return seen


def check_mutants(includes, lines, absent, verbose):
    """Each weaker order of WEAKER is seen by every flavour; those that one instruction serves are told."""
    mutants = [(op, order, True) for row in ROWS if row[0] not in absent for op in operations(row) if not op.plain
               for order in WEAKER[op.kind][op.order]]
    mutants += [(op, "acquire", False) for row in ROWS if row[0] not in absent for op in operations(row)
                if op.what == "load seq_cst"]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = list(pool.map(lambda m: mutant_seen(m[0], m[1], includes, lines), mutants))
    told = []
    for (op, order, must), seen in zip(mutants, results):
        if must:
            check(seen == list(FLAVOURS), f"{op}: weakened to {order} in a copy, and seen by {seen} alone")
            if verbose:
                print(f"weakened to {order}: {op}: seen by {', '.join(seen or ['nobody'])}")
        else:
            told.append(seen)
    print(f"{sum(1 for m in mutants if m[2])} orders weakened, one at a time, in a copy of the sources")
    if not all(told):
        print(f"note: acquire in place of seq_cst of a load is not seen in {sum(not seen for seen in told)} of "
              f"{len(told)} places: this compiler has ldar for both")


def check_instructions(args, lines):
    for tool in ("gcc", "objdump"):
        if not shutil.which(TOOLS + tool):
            sys.exit(f"arm64_orders.py: {TOOLS}{tool} is absent: apt-get install gcc-aarch64-linux-gnu")
    if not shutil.which(CLANG[0]):
        skip("clang is absent: its instructions are not looked at")
        for flavour in [name for name, compiler in FLAVOURS.items() if compiler[0] == CLANG[0]]:
            del FLAVOURS[flavour]
    with tempfile.TemporaryDirectory(prefix="stoup-orders-") as work:
        check_header(work, args.verbose)
        absent = check_files(work, lines, args.include)
    for file in absent:
        skip(f"{file} needs headers of a library that is not here: it is not compiled alone")
    if args.build:
        check_build(args.build, lines)
    check_mutants(args.include, lines, absent, args.verbose)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", help="a build for arm64: its libstoup.so and stoupd are looked at too")
    parser.add_argument("--include", action="append", default=[], help="headers of the core's libraries")
    parser.add_argument("--verbose", action="store_true", help="show what was found")
    parser.add_argument("--table", action="store_true", help="compare the table with source and document alone")
    args = parser.parse_args()
    lines = source_lines(SOURCE)
    check_document()
    if args.table:
        pass
    elif counts["failed"]:
        skip("the instructions: the table has to be that of the source first")
    else:
        check_instructions(args, lines)
    print(f"orders: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
