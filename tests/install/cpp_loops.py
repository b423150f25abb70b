# SPDX-License-Identifier: Apache-2.0
"""stoup.hpp costs nothing: the loops over a span that programs/loop.cc compiles to are no more than those of
programs/loop.c, and between two spans there is the call of stoup_next alone.

Both are disassembled. A loop is what lies between a jump backwards and its target; compared are the innermost
ones without a call, by the kinds of their instructions: registers and addresses may differ. Loops are not unrolled
for this: how often is the compiler's choice, and clang makes it by whether a loop counts or compares pointers. --show
prints them.
"""
import collections
import os
import platform
import re
import shutil
import sys

import lib_install as i
from lib_install import t

JUMP = re.compile(r"^(?:j[a-z]+|b|b\.[a-z]+|cbn?z|tbn?z)$")
FILLER = re.compile(r"^(?:nop[wl]?|xchg|cs|data16)$")
OPTIMIZED = ["-O2", "-fno-unroll-loops"]
# What the same unit of a processor does in the same time: a loop that counts down adds where one over pointers
# compares.
KINDS = dict.fromkeys(("add", "sub", "subs", "adds", "cmp", "inc", "dec", "lea"), "add")
FUNCTIONS = ("sum_mbo", "sum_tick", "sum_backward", "sum_spread")


class Instruction:
    def __init__(self, address, text):
        words = text.split(None, 1)
        self.address, self.name = address, words[0]
        self.kind = "jump" if JUMP.match(self.name) else KINDS.get(self.name, self.name)
        self.operands = words[1] if len(words) > 1 else ""
        self.callee = None
        target = re.match(r".*?\b([0-9a-f]+) <", self.operands)
        self.target = int(target.group(1), 16) if target and JUMP.match(self.name) else None


def functions(path):
    """{name: [Instruction]} of an object file, calls with the symbol of their relocation."""
    found, body = {}, []
    for line in t.run(["objdump", "-dr", "--no-show-raw-insn", path]).stdout.splitlines():
        start = re.match(r"^[0-9a-f]+ <(\w+)>:$", line)
        code = re.match(r"^ *([0-9a-f]+):\t([^\t#]+)", line)
        relocation = re.match(r"^\t+[0-9a-f]+: R_\w+\t(\w+)", line)
        if start:
            body = found.setdefault(start.group(1), [])
        elif relocation and body and body[-1].name.startswith(("call", "bl")):
            body[-1].callee = relocation.group(1)
        elif code and not relocation:
            body.append(Instruction(int(code.group(1), 16), code.group(2).strip()))
    return found


def loops(body):
    """The loops of a function as lists of instructions: one for each target of a jump backwards."""
    ends = {}
    for one in body:
        if one.target is not None and body[0].address <= one.target <= one.address:
            ends[one.target] = max(ends.get(one.target, 0), one.address)
    found = [[one for one in body if begin <= one.address <= end] for begin, end in sorted(ends.items())]
    return [loop for loop in found if not any(one.name.startswith("ret") for one in loop)]  # a jump to the end


def calls(loop):
    return [one.callee for one in loop if one.name.startswith(("call", "bl")) and one.name != "b"]


def inner(body):
    """Kinds of the instructions of each innermost loop without a call."""
    all_loops = loops(body)
    return [[one.kind for one in loop if not FILLER.match(one.name)] for loop in all_loops
            if not calls(loop) and not any(other is not loop and other[0].address >= loop[0].address and
                                           other[-1].address <= loop[-1].address for other in all_loops)]


def outer(body):
    """The calls of the smallest loop that takes the next span."""
    found = [loop for loop in loops(body) if "stoup_next" in calls(loop)]
    t.true(found, "no loop around stoup_next was found")
    return calls(min(found, key=len))


def compare(c_path, cpp_path, what):
    c, cpp = functions(c_path), functions(cpp_path)
    for name in FUNCTIONS:
        expected, found = inner(c[name]), inner(cpp[name])
        if "--show" in sys.argv:
            print(what, name, "C:", expected, "C++:", found, sep="\n  ")
        t.true(expected, f"{what}: {name} of C has no loop over the records")
        t.equal(len(found), len(expected), f"{what}: loops over the records in {name}")
        # In any order, and fewer are welcome.
        more = collections.Counter(sum(found, [])) - collections.Counter(sum(expected, []))
        t.equal(dict(more), {}, f"{what}: {name} has more instructions than in C: {found} beside {expected}")
        t.equal(outer(cpp[name]), ["stoup_next"], f"{what}: calls for each span in {name}")


i.need("objdump", "cmake")
if platform.machine() not in ("x86_64", "aarch64"):
    i.skip("reads the instructions of x86-64 and arm64 only")
pairs = [(c, cpp) for c, cpp in (("gcc", "g++"), ("clang", "clang++")) if shutil.which(c) and shutil.which(cpp)]
if not pairs:
    i.skip("needs a C and a C++ compiler of one kind (gcc and g++, clang and clang++)")
work = t.temp_dir()
include = os.path.join(i.BUILD, "consumer", "include")
for c, cpp in pairs:
    objects = [os.path.join(work, name) for name in ("c.o", "cpp.o")]
    t.run([c, *i.C_STRICT, *OPTIMIZED, "-I", include, "-c", os.path.join(i.PROGRAMS, "loop.c"), "-o", objects[0]])
    t.run([cpp, *i.CXX_STRICT, *OPTIMIZED, "-I", include, "-c", os.path.join(i.PROGRAMS, "loop.cc"), "-o", objects[1]])
    compare(*objects, c)
