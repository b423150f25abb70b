# SPDX-License-Identifier: Apache-2.0
"""stoup: market data that one daemon decoded once, read in place by any number of processes.

    import stoup

    with stoup.open("ticks/") as client:                # a store's path, or the name of a pool
        total = 0
        for trades in client.scan("GLBX.MDP3/ESH4/trades", "2024-01-02", "2024-01-03"):
            total += int((trades["price"] * trades["size"]).sum())

What a scan yields are NumPy structured arrays, one per run of consecutive records, with the names of the
schema's fields. They are views of shared memory: nothing is copied or parsed, and 64 processes that read the
same series share one copy.

Ownership. An array keeps the bytes it shows, like any NumPy view: as long as the array or a view of it lives,
its lease keeps the block in the pool, whatever becomes of the cursor, the client, or the daemon. When the last
view goes the lease is given back, at once. So keep what you work on, not everything: what one process may keep is
limited (a quarter of the pool; `Exhausted` says so), and a copy (`array.copy()`, `client.read`) costs nothing there.
`client.close()` ends its cursors and refuses further calls; arrays stay readable, and the attachment to the pool
goes with the last of them. Arrays are read-only: writing to one raises ValueError.

Times are int nanoseconds since 1970-01-01T00:00:00Z. Where a time is asked for, an int, an aware or naive datetime
(naive is UTC), a date, a numpy.datetime64, a pandas.Timestamp or an ISO 8601 text will do, all exactly; floats are
refused. A range is [start, end): records at `start` are in, those at `end` are out. `times(array)` gives
datetime64[ns]; `prices(array)` floats, or the exact integers and their scale.

Processes. After os.fork (multiprocessing, concurrent.futures) the child has what its parent had: arrays, cursors and
clients go on, with leases of its own. (Where they could not be copied, for want of a place for another consumer,
reading an inherited array ends the child by SIGSEGV: it would show other records. The client attaches anew.) Clients
and series can be pickled: where they arrive, in a spawned process, they attach anew, once per process. Arrays are
pickled as copies.

Threads. Clients and series may be used by all threads, and arrays die in any. A cursor belongs to one thread at a
time. The library's waiting does not hold the GIL.

Errors are `stoup.Error`, an OSError with `errno` and the library's text, which says what happened, where, and what
mends it; subclasses: NotFound, Timeout, Gone, Damaged, Exhausted, Stale, Inherited.

When the daemon ends, what is held stays readable; a scan waits for the one that comes after it and goes on at its
next record, nothing lost and nothing twice. Ctrl-C leaves no lease behind; it is noticed when the library returns: at
once for what is in the pool, within a second while it waits for a pool, later while an automatic daemon starts.

Series of variable-length messages (`series.schema.messages`) are scanned the same way; a scan yields `Messages`:
sequences of memoryviews of the messages' bytes, with keys(). Where the messages are JSON documents (schema bipf),
`client.documents(series, where="data.e = 'trade'", paths=["data.p"])` finds and reads them in place.

Without NumPy a scan yields read-only memoryviews of the records; `series.schema.unpack(view)` makes tuples.

Needs CPython 3.9 or later and libstoup of the same version, found at $STOUP_LIB (a file or a directory), near this
file, or where the system's loader looks.
"""
from __future__ import annotations

import collections.abc
import ctypes
import datetime
import decimal
import errno
import fnmatch
import functools
import operator
import os
import re
import struct
import sys
import time
import weakref
from typing import Any, Callable, Dict, Generator, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

np: Any  # the module, or None
try:
    import numpy as np
except ImportError:
    np = None

__version__ = "0.1.0"
__all__ = ["open", "Client", "Series", "Cursor", "Merge", "Replay", "Bars", "Where", "Count", "Messages", "Document", "Documents", "Path", "Filter",
           "ArrowScan", "Schema", "Field", "times", "prices", "to_ns",
           "to_pandas", "to_arrow", "Error", "NotFound", "Timeout", "Gone", "Damaged", "Exhausted", "Stale",
           "Inherited"]

Time = Union[int, str, datetime.datetime, datetime.date, Any]
Target = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Array = Any  # a read-only structured numpy.ndarray; without NumPy a read-only memoryview; of messages: Messages

_INT64_MAX = 2**63 - 1


# ---- errors ------------------------------------------------------------------------------------------------

class Error(OSError):
    """A call of the library failed: `errno`, and `strerror`, which says what, where, and what mends it."""

    def __str__(self) -> str:
        return str(self.strerror or OSError.__str__(self))


class NotFound(Error, KeyError):
    """No such pool, store or series; the text names near ones."""


class Timeout(Error, TimeoutError):
    """Nothing came in time. A cursor stays where it is: go on with it."""


class Gone(Error, ConnectionError):
    """The daemon is dead, stopped or silent, and no other one came. A cursor stays where it is."""


class Damaged(Error):
    """A block cannot be read; the text names file and offset. `cursor.skip()` steps over it."""


class Exhausted(Error):
    """A limit is reached: what this process may keep, its lease cells, room in the pool, places for consumers."""


class Stale(Error):
    """The store changed underneath a scan: open another one."""


class Inherited(Error):
    """It belongs to the parent process, and the fork could not be prepared."""


_CLASSES = {errno.ENOENT: NotFound, errno.ETIMEDOUT: Timeout, errno.EPIPE: Gone, errno.ETIME: Gone,
            errno.ECONNREFUSED: Gone, errno.ECONNABORTED: Gone, errno.EBADMSG: Damaged, errno.EIO: Damaged,
            errno.EFBIG: Damaged, errno.EDQUOT: Exhausted, errno.EMFILE: Exhausted, errno.ENOBUFS: Exhausted,
            errno.EUSERS: Exhausted, errno.ESTALE: Stale, errno.ECHILD: Inherited}


def _error(code: int, text: str) -> Error:
    return _CLASSES.get(-code, Error)(-code, text or os.strerror(-code))


def _c_text(what: str, text: bytes) -> bytes:
    """Text for C, which would take it as ended at its first NUL."""
    if b"\0" in text:
        raise ValueError(f"{what} has a NUL byte: {text!r}")
    return text


def _refused(code: int, err: "_Error") -> Exception:
    """Of a call that was given what is not understood: a ValueError, which says what."""
    text = err.text.decode(errors="replace")
    return ValueError(text) if code == -errno.EINVAL else _error(code, text)


def _seconds(what: str, value: Any) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} must be seconds (0 or more; float('inf') for ever), not {type(value).__name__}")
    if not value >= 0:
        raise ValueError(f"{what}={value!r}: seconds are 0 or more")
    return float(value)


def _count(what: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}")
    if not 0 <= value.__index__() < 2**63:
        raise ValueError(f"{what}={value!r} is negative, or too large")
    return int(value.__index__())


# ---- the library -------------------------------------------------------------------------------------------

_U8, _U16, _U32, _U64, _I64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 256)]


class _Options(ctypes.Structure):
    _fields_ = [("struct_len", ctypes.c_size_t), ("wait", _U32), ("flags", _U32), ("timeout_ns", _U64),
                ("spin_ns", _U64), ("ahead_cnt", _U32), ("zero", _U32), ("pool_len", _U64),
                ("daemon", ctypes.c_char_p), ("reconnect_ns", _U64)]


class _Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 36), ("off", _U32), ("cnt", _U16), ("type", _U8), ("flags", _U8),
                ("exp10", ctypes.c_int8), ("zero", _U8 * 3), ("null_bits", _U64), ("unit", ctypes.c_char * 8)]


class _Schema(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 32), ("stride", _U32), ("align", _U32), ("key_off", _U32), ("flags", _U32),
                ("interval_ns", _U64), ("hash", _U64), ("field_cnt", _U32), ("zero", _U32),
                ("fields", ctypes.POINTER(_Field))]


class _Series(ctypes.Structure):
    _fields_ = [("id", _U64), ("name", ctypes.c_char_p), ("schema", ctypes.POINTER(_Schema)), ("record_cnt", _U64),
                ("first_key", _I64), ("last_key", _I64), ("flags", _U32), ("volume_cnt", _U32)]


class _Range(ctypes.Structure):
    _fields_ = [("from_ns", _I64), ("to_ns", _I64), ("flags", _U32), ("limit", _U32)]


class _Span(ctypes.Structure):
    _fields_ = [("base", _U64), ("record_cnt", _U64), ("stride", _U64), ("ordinal", _U64), ("first_key", _I64),
                ("last_key", _I64), ("schema", _U64), ("span_client", _U64), ("cell_use", _U64), ("cell_idx", _U32),
                ("session_no", _U32)]


class _Held(ctypes.Structure):
    # The lease, then the span. Gives its lease back when it goes: see _Own.
    _fields_ = [("client", _U64), ("use", _U64), ("idx", _U32), ("source", _U32), *_Span._fields_]

    def span(self) -> int:
        """Address of the span."""
        return ctypes.addressof(self) + _SPAN_OFF


_SPAN_OFF: int = _Held.base.offset


class _Count(ctypes.Structure):
    _fields_ = [("record_min", _U64), ("record_max", _U64), ("ordinal_min", _U64), ("ordinal_max", _U64),
                ("segment_cnt", _U64), ("raw_len", _U64), ("first_key", _I64), ("last_key", _I64), ("volume_cnt", _U32),
                ("exact", _U32)]


class _BarsSpec(ctypes.Structure):
    _fields_ = [("struct_len", ctypes.c_size_t), ("kind", _U32), ("flags", _U32), ("step", _U64),
                ("step_exp10", ctypes.c_int32), ("zero", _U32), ("offset_ns", _I64), ("end_ns", _I64),
                *[(name, ctypes.c_char_p) for name in ("price", "size", "side", "action", "action_values")]]


class _ReplayOptions(ctypes.Structure):
    _fields_ = [("struct_len", ctypes.c_size_t), ("speed", ctypes.c_double), ("start_ns", _I64), ("begin_ns", _U64),
                ("max_gap_ns", _U64), ("flags", _U32), ("zero", _U32)]


class _ReplayState(ctypes.Structure):
    _fields_ = [("struct_len", ctypes.c_size_t)] + [(name, _U64) for name in (
        "record_cnt", "span_cnt", "late_cnt", "late_max_ns", "late_p50_ns", "late_p99_ns")] + [
        ("data_ns", _I64), ("skipped_ns", _U64), ("due_ns", _U64), ("paused", _U32), ("zero", _U32)]


class _Doc(ctypes.Structure):
    _fields_ = [("payload", _U64), ("payload_len", _U32), ("type", _U8), ("tag_len", _U8), ("zero", _U8 * 2)]


class _Buffer(ctypes.Structure):
    # Py_buffer, of which the first member counts: where the bytes are.
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_void_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


class _ArrowStream(ctypes.Structure):
    _fields_ = [("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p), ("get_last_error", ctypes.c_void_p),
                ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class _Stats(ctypes.Structure):
    _fields_ = [("struct_len", ctypes.c_size_t)] + [(name, _U64) for name in (
        "hit_cnt", "miss_cnt", "timeout_cnt", "wait_ns", "record_cnt", "doorbell_cnt", "lease_cnt", "leased_bytes",
        "reconnect_cnt", "direct_cnt", "direct_alone_cnt")]


class _Instrument(ctypes.Structure):
    # As struct stoup_instrument; texts are bytes up to their NUL.
    _fields_ = [("struct_len", ctypes.c_size_t), ("key", _I64), ("ts_event", _U64), ("expiration", _U64),
                ("activation", _U64), ("min_price_increment", _I64), ("min_price_increment_amount", _I64),
                ("display_factor", _I64), ("unit_of_measure_qty", _I64), ("strike_price", _I64),
                ("price_ratio", _I64), ("high_limit_price", _I64), ("low_limit_price", _I64),
                ("max_price_variation", _I64), ("trading_reference_price", _I64), ("raw_instrument_id", _U64),
                ("instrument_id", _U32), ("underlying_id", _U32), ("contract_multiplier", ctypes.c_int32),
                ("original_contract_size", ctypes.c_int32), ("market_depth", ctypes.c_int32),
                ("market_depth_implied", ctypes.c_int32), ("min_lot_size", ctypes.c_int32),
                ("min_lot_size_block", ctypes.c_int32), ("min_lot_size_round_lot", ctypes.c_int32),
                ("min_trade_vol", _U32), ("max_trade_vol", _U32), ("market_segment_id", _U32),
                ("inst_attrib_value", ctypes.c_int32), ("publisher_id", _U16), ("channel_id", _U16),
                ("maturity_year", _U16), ("leg_count", _U16), ("leg_index", _U16), ("maturity_month", _U8),
                ("maturity_day", _U8), ("maturity_week", _U8), ("main_fraction", _U8), ("sub_fraction", _U8),
                ("price_display_format", _U8), ("version", _U8), ("instrument_class", ctypes.c_char),
                ("security_update_action", ctypes.c_char), ("match_algorithm", ctypes.c_char),
                ("user_defined_instrument", ctypes.c_char), ("contract_multiplier_unit", ctypes.c_int8),
                ("raw_symbol", ctypes.c_char * 72), ("underlying", ctypes.c_char * 24), ("group", ctypes.c_char * 24),
                ("asset", ctypes.c_char * 16), ("exchange", ctypes.c_char * 8), ("currency", ctypes.c_char * 8),
                ("settl_currency", ctypes.c_char * 8), ("strike_price_currency", ctypes.c_char * 8),
                ("security_type", ctypes.c_char * 8), ("secsubtype", ctypes.c_char * 8), ("cfi", ctypes.c_char * 8),
                ("unit_of_measure", ctypes.c_char * 32)]


def _library_paths() -> Iterator[str]:
    """Where libstoup may be, best first."""
    given = os.environ.get("STOUP_LIB")
    if given:
        yield os.path.join(given, "libstoup.so.1") if os.path.isdir(given) else given
        return
    here = os.path.dirname(os.path.realpath(__file__))
    multiarch = getattr(sys.implementation, "_multiarch", "")
    # PREFIX/lib/python3/dist-packages, a source tree beside its build, the loader's own places.
    near = [here, os.path.join(here, "..", ".."), os.path.join(here, "..", "..", multiarch)]
    near += [os.path.join(here, "..", "..", "build", *more) for more in (("lib",), ("gcc", "lib"))]
    for folder in near:
        path = os.path.normpath(os.path.join(folder, "libstoup.so.1"))
        if os.path.exists(path):
            yield path
    yield "libstoup.so.1"


def _load() -> ctypes.CDLL:
    said = []
    for path in _library_paths():
        try:
            return _declare(ctypes.CDLL(path), path)
        except OSError as error:
            said.append(str(error))
    raise ImportError("stoup needs libstoup.so.1: install it (cmake --install), or set STOUP_LIB to its file or "
                      "directory. Tried: " + "; ".join(said))


def _daemon_beside(path: str) -> Optional[bytes]:
    """The stoupd of the same installation, which need not be in $PATH: PREFIX/bin beside PREFIX/lib. None: the library
    looks for one, in $STOUPD first."""
    folder = "" if os.environ.get("STOUPD") else os.path.dirname(path)
    for up in ([os.path.join(folder, ".."), os.path.join(folder, "..", "..")] if folder else ()):
        found = os.path.abspath(os.path.join(os.path.realpath(up), "bin", "stoupd"))
        if os.access(found, os.X_OK):
            return os.fsencode(found)
    return None


def _declare(lib: ctypes.CDLL, path: str) -> ctypes.CDLL:
    """Prototypes, and whether the library is the one that this module was written for."""
    pointer, byte_p, void_p, size, integer = ctypes.POINTER, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, \
        ctypes.c_int
    error_p, series_p = pointer(_Error), pointer(_Series)
    calls = {
        "version": (byte_p,),
        "struct_len": (size, byte_p),
        "options_init": (None, pointer(_Options)),
        "attach": (integer, byte_p, pointer(_Options), pointer(void_p), error_p),
        "leave": (integer, void_p),
        "use_cnt": (_I64, void_p),
        "refresh": (integer, void_p, error_p),
        "health": (integer, void_p, error_p),
        "stats": (integer, void_p, pointer(_Stats)),
        "series_cnt": (_I64, void_p),
        "series_at": (integer, void_p, _U64, series_p),
        "series_find": (integer, void_p, byte_p, series_p, error_p),
        "definition_at": (integer, void_p, byte_p, _I64, pointer(_Instrument), error_p),
        "scan": (integer, void_p, series_p, pointer(_Range), pointer(void_p), error_p),
        "scan_where": (integer, void_p, series_p, pointer(_Range), void_p, pointer(void_p), error_p),
        "merge": (integer, void_p, series_p, size, pointer(_Range), pointer(void_p), error_p),
        "cursor_source": (_U32, void_p),
        "seek": (integer, void_p, _I64),
        "next_held": (_I64, void_p, void_p, size, _U64),
        "hold": (integer, void_p, pointer(_Held)),
        "asof": (integer, void_p, _I64, void_p),
        "asof_before": (integer, void_p, _I64, void_p),
        "asof_all": (_I64, void_p, size, _I64, void_p),
        "count": (integer, void_p, series_p, pointer(_Range), integer, pointer(_Count), error_p),
        "wait_news": (integer, void_p, _U64, error_p),
        "filter_create": (integer, pointer(_Schema), byte_p, pointer(void_p), error_p),
        "filter_destroy": (None, void_p),
        "filter_span": (_I64, void_p, void_p, _U64, void_p, size),
        "bars_spec_parse": (integer, byte_p, pointer(_BarsSpec), error_p),
        "bars_open": (integer, void_p, pointer(_BarsSpec), pointer(void_p), error_p),
        "bars_next": (integer, void_p, void_p),
        "bars_next_f64": (integer, void_p, void_p),
        "bars_next_span": (integer, void_p, pointer(_Span)),
        "bars_schema": (pointer(_Schema), void_p),
        "bars_error": (error_p, void_p),
        "bars_close": (None, void_p),
        "replay_open": (integer, void_p, pointer(_ReplayOptions), pointer(void_p), error_p),
        "replay_next": (integer, void_p, _U64, void_p),
        "replay_fd": (integer, void_p),
        "replay_pause": (integer, void_p),
        "replay_resume": (integer, void_p),
        "replay_speed": (integer, void_p, ctypes.c_double),
        "replay_stats": (integer, void_p, pointer(_ReplayState)),
        "replay_close": (None, void_p),
        "cursor_skip": (_I64, void_p),
        "cursor_error": (error_p, void_p),
        "cursor_close": (None, void_p),
        "release": (integer, pointer(_Held)),
        "arrow_stream": (integer, void_p, _U32, pointer(_ArrowStream), error_p),
        "fork_auto": (integer, void_p),
        "doc_open": (integer, void_p, size, pointer(_Doc)),
        "doc_path_create": (integer, byte_p, pointer(void_p), error_p),
        "doc_path_destroy": (None, void_p),
        "doc_seek": (integer, pointer(_Doc), void_p, pointer(_Doc)),
        "doc_filter_create": (integer, byte_p, pointer(void_p), error_p),
        "doc_filter_destroy": (None, void_p),
        "doc_match": (integer, void_p, pointer(_Doc)),
        "doc_filter_span": (_I64, void_p, void_p, _U64, void_p, size, pointer(_U64)),
    }
    if not hasattr(lib, "stoup_version"):
        raise ImportError(f"{path} is another library than libstoup.so.1")
    for name, (result, *arguments) in calls.items():
        if not hasattr(lib, "stoup_" + name):
            raise ImportError(f"{path} has no stoup_{name}: it is older than this module ({__version__})")
        call = getattr(lib, "stoup_" + name)
        call.restype, call.argtypes = result, arguments
    version = lib.stoup_version().decode()
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"{path} is stoup {version}, and this module is for {__version__}: install the two together, "
                          "or set STOUP_LIB to the right one")
    for name, mine in (("error", _Error), ("options", _Options), ("field", _Field), ("schema", _Schema),
                       ("series", _Series), ("range", _Range), ("span", _Span), ("held", _Held), ("stats", _Stats),
                       ("instrument", _Instrument), ("count", _Count), ("bars_spec", _BarsSpec),
                       ("replay_options", _ReplayOptions), ("replay_state", _ReplayState)):
        found = lib.stoup_struct_len(b"stoup_" + name.encode())
        if found != ctypes.sizeof(mine):
            raise ImportError(f"{path}: struct stoup_{name} has {found} bytes, and {ctypes.sizeof(mine)} in this "
                              "module: install the two together")
    return lib


_lib = _load()


class _Own:
    """One thing of the library's, and the C function that gives it back when this object goes.

    The finalizer is a partial of a C function in the instance itself: finding and calling it runs no bytecode, and
    signals are handled between bytecodes alone, so that no KeyboardInterrupt can come before or within it. It is made
    before the call that writes the thing into `it`: whatever that call brings has its owner already.
    """
    __slots__ = ("it", "below", "__del__", "__weakref__")

    def __init__(self, free: Any, it: Any, below: Optional[_Own] = None) -> None:
        self.it, self.below = it, below  # what this thing stands on goes after it
        self.__del__ = functools.partial(free, it)


# The same for spans, of which there are many: a method that is the C function itself, bound by C.
_method = ctypes.pythonapi["PyInstanceMethod_New"]
_method.restype, _method.argtypes = ctypes.py_object, [ctypes.py_object]
setattr(_Held, "__del__", _method(_lib.stoup_release))


# ---- times -------------------------------------------------------------------------------------------------

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*"
                  r"(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_UNITS = {"W": 604800 * 10**9, "D": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6,
          "us": 10**3, "ns": 1}


def _iso_ns(text: str) -> int:
    match = _ISO.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is no ISO 8601 time such as 2024-01-02T14:30:00.000000001Z")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    whole = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.timezone.utc)
    zone, ns = match.group(8) or "Z", int((match.group(7) or "0").ljust(9, "0"))
    if zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        if int(digits[:2]) > 23 or int(digits[2:]) > 59:
            raise ValueError(f"{text!r}: no zone is {digits[:2]} hours and {digits[2:]} minutes from UTC")
        shift = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        whole = whole - shift if zone[0] == "+" else whole + shift
    return to_ns(whole) + ns


def to_ns(when: Time) -> int:
    """A time as int nanoseconds since 1970-01-01T00:00:00Z, exactly.

    Takes int, ISO 8601 text (up to 9 digits behind the second, zone or UTC), datetime and date (naive is UTC),
    numpy.datetime64 of any unit, pandas.Timestamp. TypeError for a float, which cannot hold today's nanoseconds;
    ValueError for what is no time, such as NaT.
    """
    if hasattr(when, "to_datetime64"):  # pandas.Timestamp, a datetime that has nanoseconds
        when = when.to_datetime64()
    if isinstance(when, str):
        return _iso_ns(when)
    if isinstance(when, datetime.datetime):
        since = (when if when.tzinfo else when.replace(tzinfo=datetime.timezone.utc)) - _EPOCH
        return (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000
    if isinstance(when, datetime.date):
        return (when.toordinal() - _EPOCH.toordinal()) * 86400 * 10**9
    if np is not None and isinstance(when, np.datetime64):
        unit, count = np.datetime_data(when.dtype)
        if np.isnat(when) or unit == "generic":
            raise ValueError("NaT is no time")
        if unit in ("Y", "M"):
            unit, count, when = "D", 1, when.astype("M8[D]")
        value: int = int(when.astype("i8")) * count
        if unit in _UNITS:
            return value * _UNITS[unit]
        value, rest = divmod(value, {"ps": 10**3, "fs": 10**6, "as": 10**9}[unit])
        if rest:
            raise ValueError(f"{when} is no whole number of nanoseconds")
        return value
    if isinstance(when, (float, complex)) or not hasattr(when, "__index__") or isinstance(when, bool):
        raise TypeError(f"a time must be int nanoseconds, datetime, datetime64 or ISO text, not {type(when).__name__}")
    return int(when.__index__())


_BACKWARD, _DIRECT, _DIRECT_OR_POOL, _ORDINALS, _LAST, _FOLLOW, _AVAILABLE, _AT_OPEN = 1, 2, 4, 32, 64, 128, 256, 0x8000
_INCLUSIVE = {"left": (0, 0), "both": (0, 1), "right": (1, 1), "neither": (1, 0)}


def _key(when: Time) -> int:
    """A time as the library takes one; no key is beyond."""
    return max(-2**63, min(to_ns(when), _INT64_MAX))


def _bounds(start: Optional[Time], end: Optional[Time], inclusive: str = "left") -> Tuple[int, int]:
    """The library's from_ns and to_ns, for which 0 is open; keys are positive, and integers: behind one is at the next."""
    if inclusive not in _INCLUSIVE:
        raise ValueError(f"inclusive={inclusive!r}: it is one of {', '.join(map(repr, _INCLUSIVE))}")
    behind, to = _INCLUSIVE[inclusive]
    low = 0 if start is None else max(0, to_ns(start) + behind)
    high = 0 if end is None else max(1, to_ns(end) + to)
    if low > _INT64_MAX:
        low, high = 1, 1  # no key is as late
    if end is not None and start is not None and low > high > 0:
        if to_ns(start) > to_ns(end):
            raise _error(-errno.EINVAL, f"the range ends at {end}, before it begins at {start}")
        high = low
    return low, 0 if high > _INT64_MAX else high


def _ordinals(which: Any, count: int) -> Tuple[int, int]:
    """The library's from and to of record numbers, for which 0 is open."""
    begin, end = (which.start, which.stop) if isinstance(which, (slice, range)) else which
    if getattr(which, "step", None) not in (None, 1):
        raise ValueError("ordinals have no step: scan, and step within the arrays")
    begin, end = (None if one is None else operator.index(one) for one in (begin, end))
    low = 0 if begin is None else max(0, begin + count if begin < 0 else begin)
    high = _INT64_MAX if end is None else end + count if end < 0 else end
    if low >= min(high, _INT64_MAX):
        return 1, 1  # nothing
    return low, 0 if high >= _INT64_MAX else high


def _range(series: Optional[Series], start: Optional[Time], end: Optional[Time], backward: bool = False,
           direct: Union[bool, str] = False, inclusive: str = "left", ordinals: Any = None, limit: Optional[int] = None,
           last: Optional[int] = None, follow: Union[None, bool, float] = None, available: bool = False) -> _Range:
    """What the arguments of a scan mean."""
    if direct not in (False, True, "auto"):
        raise ValueError("direct is False, True or 'auto'")
    flags = _BACKWARD if backward else 0
    flags |= _DIRECT_OR_POOL if direct == "auto" else _DIRECT if direct else 0
    flags |= (_AVAILABLE if available else 0) | (0 if _patient(follow) is None else _FOLLOW)
    if ordinals is None:
        low, high = _bounds(start, end, inclusive)
    elif start is not None or end is not None or inclusive != "left" or available:
        raise ValueError("ordinals stand in the place of start, end, inclusive and available")
    else:
        low, high = _ordinals(ordinals, series.count if series else 0)
        flags |= _ORDINALS
    if limit is not None and last is not None:
        raise ValueError("limit counts from the first record, last from the last one: say one of them")
    cnt = 0
    for what, value in (("limit", limit), ("last", last)):
        if value is not None:
            cnt = _count(what, value)
            if not 0 < cnt < 2**32:
                raise ValueError(f"{what}={value!r}: it is from 1 to 4294967295, None for all")
    return _Range(low, high, flags | (_LAST if last is not None else 0), cnt)


def _patient(follow: Union[None, bool, float]) -> Optional[float]:
    """Seconds that a scan waits for news at its end; None: it ends there."""
    if follow is None or follow is False:
        return None
    return float("inf") if follow is True else _seconds("follow", follow)


# ---- schemas -----------------------------------------------------------------------------------------------

_NULL, _TIME, _KEY, _HIDDEN, _DURATION = 1, 2, 4, 8, 16
_VARIABLE, _BAR = 1, 2
_KEEP_ORDER = 1
_CODES = ("", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")  # by STOUP_TYPE_*
_STRUCT_CODES = ("", "B", "b", "H", "h", "I", "i", "Q", "q", "f", "d")
_CHAR, _BYTES = 11, 12
_NAN = float("nan")


class Field(NamedTuple):
    """One field of a schema. value = integer * 10**exp10; `null` is the undefined value, or None."""
    name: str
    offset: int
    format: str  # NumPy's: "<i8", "S6" (text, NUL-padded), "V4" (opaque bytes)
    exp10: int
    null: Any
    unit: str
    is_time: bool
    is_duration: bool
    is_key: bool
    hidden: bool  # reserved bytes: in the record, in no array's dtype


class Schema:
    """What the bytes of one record mean.

    name, stride (bytes per record), fields (tuple of Field), key (name of the field that orders the series),
    interval_ns (bars: length; a bar is available at key + interval), hash (of the layout), dtype (NumPy's; None
    without NumPy), names (of the fields that are not hidden), messages (True: records are messages of variable
    length, which have no fields, and stride is 0).
    """

    def __init__(self, raw: _Schema) -> None:
        self.name: str = raw.name.decode()
        self.stride, self.hash = raw.stride, raw.hash
        self.messages = bool(raw.flags & _VARIABLE)
        self.interval_ns: int = raw.interval_ns if raw.flags & _BAR else 0
        self.fields: Tuple[Field, ...] = tuple(self._field(raw.fields[i]) for i in range(raw.field_cnt))
        shown = [field for field in self.fields if not field.hidden]
        self.names: Tuple[str, ...] = tuple(field.name for field in shown)
        self.key: str = next((field.name for field in self.fields if field.is_key), "")
        self._by_name = {field.name: field for field in self.fields}
        self._key_off = raw.key_off
        self.dtype = None
        if np is not None and not self.messages:
            self.dtype = np.dtype({"names": list(self.names), "formats": [field.format for field in shown],
                                   "offsets": [field.offset for field in shown], "itemsize": self.stride})
        self._void = f"V{self.stride}"

    @staticmethod
    def _field(raw: _Field) -> Field:
        null = None
        if raw.type in (_CHAR, _BYTES):
            form = f"{'S' if raw.type == _CHAR else 'V'}{raw.cnt}"
        else:
            form = "<" + _CODES[raw.type]
            if raw.flags & _NULL:
                code = "<" + _STRUCT_CODES[raw.type]
                null = struct.unpack_from(code, struct.pack("<Q", raw.null_bits))[0]
                null = _NAN if null != null else null  # one object: fields that mean the same are equal
        return Field(raw.name.decode(), raw.off, form, raw.exp10, null, raw.unit.decode(errors="replace"),
                     bool(raw.flags & _TIME), bool(raw.flags & _DURATION), bool(raw.flags & _KEY),
                     bool(raw.flags & _HIDDEN))

    def field(self, name: str) -> Field:
        """A field by its name; NotFound, naming those there are."""
        if name not in self._by_name:
            raise NotFound(errno.ENOENT, f"schema {self.name} has no field '{name}', it has " + ", ".join(self.names))
        return self._by_name[name]

    def unpack(self, view: Any) -> Iterator[Tuple[Any, ...]]:
        """Records of a memoryview (or array) as tuples in the order of `names` by offset, without NumPy. Text is
        bytes with its padding."""
        at, code = 0, "<"
        for field in sorted((field for field in self.fields if not field.hidden), key=lambda field: field.offset):
            kind = field.format[0]
            one = field.format[1:] + "s" if kind in "SV" else _STRUCT_CODES[_CODES.index(field.format[1:])]
            code += f"{field.offset - at}x{one}" if field.offset > at else one
            at = field.offset + struct.calcsize("<" + one)
        return struct.iter_unpack(code + (f"{self.stride - at}x" if self.stride > at else ""), view)

    def __repr__(self) -> str:
        if self.messages:
            return f"<stoup.Schema {self.name}: messages>"
        return f"<stoup.Schema {self.name}: {len(self.names)} fields, {self.stride} bytes>"


_schemas: Dict[Tuple[str, int], Schema] = {}


def _schema_of(raw: Any) -> Schema:
    key = (raw.contents.name.decode(), raw.contents.hash)
    if key not in _schemas:
        _schemas.setdefault(key, Schema(raw.contents))
    return _schemas[key]


def _records(array: Array) -> Array:
    """An array of records, or a single record as an array of one."""
    if np is None:
        raise ImportError("this needs NumPy (Debian: python3-numpy); without it use series.schema.unpack(view)")
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype.names is None:
        raise TypeError("an array of records is asked for (what scan, read, last or asof give), not " +
                        (f"a column ({dtype})" if dtype is not None else type(array).__name__))
    return np.atleast_1d(array)


def _meaning(array: Array, name: Optional[str], schema: Optional[Schema]) -> Field:
    """What a field of an array means: by the dtype object, which views share, else by an equal one."""
    dtype = _records(array).dtype
    every = list(_schemas.values())
    known = [schema] if schema else [one for one in every if one.dtype is dtype] or \
        [one for one in every if one.dtype == dtype]
    if not known:
        raise ValueError("this array's dtype is of no series that was opened here: say schema=series.schema")
    found = {one.field(name if name is not None else one.key) for one in known}
    if len(found) > 1:
        raise ValueError(f"several schemas have this dtype ({', '.join(one.name for one in known)}) and differ in "
                         f"'{name}': say schema=series.schema")
    return found.pop()


def _undefined(column: Any, meaning: Field) -> Any:
    """Where a column is undefined; None where it cannot be."""
    if meaning.null is None:
        return None
    return column == meaning.null if meaning.null == meaning.null else np.isnan(column)


def times(array: Array, field: Optional[str] = None, schema: Optional[Schema] = None) -> Array:
    """A time field (default: the key) of an array as datetime64[ns], UTC. A view, read-only like the array; only where
    times are undefined, a copy with NaT in their places."""
    meaning = _meaning(array, field, schema)
    if not (meaning.is_time or meaning.is_duration):
        raise ValueError(f"'{meaning.name}' is no time")
    kind = "M8[ns]" if meaning.is_time else "m8[ns]"
    column = array[meaning.name]
    if column.dtype.itemsize != 8:
        column = column.astype("i8")
    found = column.view(kind)
    undefined = _undefined(array[meaning.name], meaning)
    if undefined is not None and undefined.any():
        found = np.where(undefined, np.array("NaT", kind), found)[()]  # of one record a scalar
    return found


def prices(array: Array, field: str = "price", exact: bool = False, schema: Optional[Schema] = None) -> Any:
    """A scaled field as float64 (a copy; undefined values are NaN), the nearest float to each decimal.

    exact=True: (integers, exp10) instead, a view of the field as it is: value = integer * 10**exp10, undefined values
    are schema.field(field).null.
    """
    meaning = _meaning(array, field, schema)
    if meaning.format[0] in "SV":
        raise ValueError(f"'{meaning.name}' is {'text' if meaning.format[0] == 'S' else 'opaque bytes'}, no number")
    column = array[meaning.name]
    if exact:
        return column, meaning.exp10
    integers = np.atleast_1d(column)  # of one record, too
    found, undefined = integers.astype("f8"), _undefined(integers, meaning)
    large = meaning.exp10 and integers.dtype.itemsize == 8 and found.size and \
        (found.max() >= 2.0**53 or found.min() <= -2.0**53)
    if meaning.exp10 < 0:  # 10**9 is a float, 10**-9 is not
        found /= 10.0 ** -meaning.exp10
    elif meaning.exp10 > 0:
        found *= 10.0 ** meaning.exp10
    if large:
        # No float is such an integer, and to round twice is not to round once: Python's integers divide exactly.
        far = (integers > 2**53) | (integers < -2**53 if integers.dtype.kind == "i" else False)
        if undefined is not None:
            far &= ~undefined
        if far.any():
            over, by = 10 ** max(0, -meaning.exp10), 10 ** max(0, meaning.exp10)
            found[far] = [value * by / over for value in integers[far].tolist()]
    if undefined is not None:
        found[undefined] = np.nan
    return found.reshape(column.shape)[()]


def to_pandas(array: Array, schema: Optional[Schema] = None) -> Any:
    """A pandas.DataFrame with the key's times as its index (where the array has the key). Every column is a copy: a
    frame stores columns, a record its fields side by side. Times become datetime64[ns, UTC], scaled integers floats,
    text str."""
    import pandas  # type: ignore
    array, columns = _records(array), {}
    for name in array.dtype.names:
        meaning = _meaning(array, name, schema)
        if meaning.is_time or meaning.is_duration:
            # A copy at once: pandas makes cycles of its objects, which would keep the lease.
            column = np.array(times(array, name, schema))
            columns[name] = pandas.DatetimeIndex(column, tz="UTC") if meaning.is_time else column
        elif meaning.exp10:
            columns[name] = prices(array, name, schema=schema)
        elif meaning.format[0] == "S":
            columns[name] = np.char.decode(array[name], "latin-1")
        elif meaning.format[0] == "V":
            columns[name] = [bytes(value) for value in array[name]]
        else:
            columns[name] = array[name].copy()
    frame = pandas.DataFrame(columns)
    key = next((name for name in columns if _meaning(array, name, schema).is_key), None)
    return frame if key is None else frame.set_index(key)


def to_arrow(array: Array, schema: Optional[Schema] = None) -> Any:
    """A pyarrow.Table of one array; of a whole scan, and for all else that speaks Arrow, see Cursor.arrow. Every column
    is a copy: Arrow's columns are contiguous, a record's fields are not. Times become timestamp[ns, UTC] and undefined
    values null; scaled integers float64, or as they are where there is no scale."""
    import pyarrow  # type: ignore
    array, arrays, names = _records(array), [], []
    for name in array.dtype.names:
        meaning = _meaning(array, name, schema)
        column = np.ascontiguousarray(array[name])
        null = _undefined(column, meaning)
        if meaning.is_time:
            one = pyarrow.array(column.view("i8") if column.dtype.itemsize == 8 else column.astype("i8"),
                                mask=null).cast(pyarrow.timestamp("ns", tz="UTC"))
        elif meaning.exp10:
            one = pyarrow.array(prices(array, name, schema=schema), mask=null)
        elif meaning.format[0] == "S":
            one = pyarrow.array(np.char.decode(column, "latin-1"))
        elif meaning.format[0] == "V":
            one = pyarrow.array([bytes(value) for value in column], pyarrow.binary())
        else:
            one = pyarrow.array(column, mask=null)
        arrays.append(one)
        names.append(name)
    return pyarrow.Table.from_arrays(arrays, names)


# ---- scans -------------------------------------------------------------------------------------------------

_BATCH = 64  # spans per call of the library, at most
_BATCH_SPAN = 128 << 10  # bytes of a span beyond which the call costs nothing beside it


_blocks = [ctypes.c_ubyte * (1 << power) for power in range(40)]


def _view(held: _Held, schema: Schema) -> Array:
    """The records of a span, owned by whoever has the view: it keeps the memoryview, that the block, that the lease.
    (A type of ctypes for each length would cost more than all the rest, so the block's is a power of two.)"""
    if schema.messages:
        return _messages(held)
    length = held.record_cnt * schema.stride
    block = _blocks[length.bit_length()].from_address(held.base)
    block.held = held
    view = memoryview(block).toreadonly()[:length]
    return view.cast("B") if np is None else np.frombuffer(view, schema.dtype)


# ---- messages ----------------------------------------------------------------------------------------------

class Messages(collections.abc.Sequence[memoryview]):
    """Consecutive messages of a series, in place: messages[i] is a read-only memoryview of message i's bytes. It and
    each memoryview keep the lease, like an array. A slice of it is a Messages too."""
    __slots__ = ("_run", "_table", "_cnt", "_begin", "_schema", "__weakref__")

    def __init__(self, run: memoryview, table: int, cnt: int, begin: int, schema: int) -> None:
        self._run, self._table, self._cnt, self._begin, self._schema = run, table, cnt, begin, schema

    def _head(self, i: int) -> int:
        if not 0 <= i < self._cnt:
            raise IndexError(f"message {i} of {self._cnt}")
        at = self._table + 4 * i
        return at - int(_U32_AT.unpack_from(self._run, at)[0])

    def __len__(self) -> int:
        return self._cnt

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            begin, end, step = i.indices(self._cnt)
            if step != 1:
                raise ValueError("a slice of messages has no step: backward, iterate over reversed(messages)")
            return Messages(self._run, self._table + 4 * begin, max(0, end - begin), self._begin, self._schema)
        head = self._head(i + self._cnt if i < 0 else i)
        return self._run[head + 16:head + 16 + int(_U32_AT.unpack_from(self._run, head + 8)[0])]

    def key(self, i: int) -> int:
        """Time of message i: int nanoseconds."""
        return int(_I64_AT.unpack_from(self._run, self._head(i + self._cnt if i < 0 else i))[0])

    def keys(self) -> Any:
        """Times of all messages: an int64 array (a list without NumPy), yours to write to."""
        return self._gathered(0, "<i8", _I64_AT)

    def lengths(self) -> Any:
        """Bytes of each message: a uint32 array (a list without NumPy)."""
        return self._gathered(8, "<u4", _U32_AT)

    def _gathered(self, off: int, kind: str, one: struct.Struct) -> Any:
        if np is None:
            return [one.unpack_from(self._run, self._head(i) + off)[0] for i in range(self._cnt)]
        places = np.arange(self._table, self._table + 4 * self._cnt, 4)
        heads = places - np.frombuffer(self._run, "<u4", self._cnt, self._table)
        values = np.frombuffer(self._run, kind, len(self._run) // one.size)
        return values[(heads + off) // one.size]  # heads lie at multiples of 8 of the run

    def bound(self, when: Time) -> int:
        """The first message at or after a time, len() where there is none: bisected. Not for a series that was
        ingested with --order=keep."""
        key, low, high = to_ns(when), 0, self._cnt
        while low < high:
            middle = (low + high) // 2
            if self.key(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def items(self) -> Iterator[Tuple[int, memoryview]]:
        """(key, bytes) of each message."""
        for i in range(self._cnt):
            yield self.key(i), self[i]

    def copies(self) -> List[Tuple[int, bytes]]:
        """The same as copies, which keep no lease."""
        return [(key, bytes(view)) for key, view in self.items()]

    def __repr__(self) -> str:
        return f"<stoup.Messages: {self._cnt}>"

    def __reduce__(self) -> Any:
        raise TypeError("messages cannot be pickled: pickle copies()")


_U32_AT, _I64_AT = struct.Struct("<I"), struct.Struct("<q")


def _messages(held: _Held) -> Messages:
    """The messages of a span lie in front of the table that its base points to, from where the first entry says."""
    begin = held.base - ctypes.c_uint32.from_address(held.base).value
    length = held.base - begin + 4 * held.record_cnt
    block = _blocks[length.bit_length()].from_address(begin)
    block.held = held
    view = memoryview(block).toreadonly()[:length].cast("B")
    return Messages(view, held.base - begin, held.record_cnt, begin, held.schema)


# ---- documents ---------------------------------------------------------------------------------------------

_STRING, _BUFFER, _INT, _DOUBLE, _LIST, _OBJECT, _ATOM, _EXTENDED = range(8)
_DEPTH = 128  # containers inside each other
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN,
                         traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Underflow])
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")  # of JSON
_get_buffer, _release_buffer = ctypes.pythonapi["PyObject_GetBuffer"], ctypes.pythonapi["PyBuffer_Release"]
_get_buffer.restype, _get_buffer.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release_buffer.restype, _release_buffer.argtypes = None, [ctypes.POINTER(_Buffer)]


def _broken(view: memoryview, what: str) -> Error:
    return _error(-errno.EBADMSG, f"{what} in {len(view)} bytes that are no document")


def _tag(view: memoryview, at: int) -> Tuple[int, int, int]:
    """Type, begin and end of the value at `at`, which lies within `view`."""
    tag = shift = 0
    while True:
        if at >= len(view) or shift > 28:
            raise _broken(view, "a tag that does not end")
        tag |= (view[at] & 0x7f) << shift
        shift += 7
        at += 1
        if view[at - 1] < 0x80:
            break
    if tag >> 3 > len(view) - at:
        raise _broken(view, "a length that reaches beyond its container")
    return tag & 7, at, at + (tag >> 3)


def _string(payload: memoryview) -> str:
    try:
        return str(payload, "utf-8")
    except UnicodeDecodeError:
        raise _broken(payload, "a string that is not UTF-8") from None


def _decimal(text: str) -> Any:
    try:
        return _EXACT.create_decimal(text)
    except decimal.DecimalException:  # an exponent that Decimal has not
        return text


def _scalar(kind: int, payload: memoryview) -> Any:
    """int, Decimal, str, bytes, bool or None."""
    length = len(payload)
    if kind == _STRING:
        return _string(payload)
    if kind == _BUFFER:
        return bytes(payload)
    if kind == _INT and length == 4 or kind == _EXTENDED and length == 9 and payload[0] in (1, 2):
        return int.from_bytes(payload[length % 4:], "little", signed=kind == _INT or payload[0] == 1)
    if kind == _DOUBLE and length == 8:
        number: float = struct.unpack("<d", payload)[0]
        if number - number != 0:
            raise _broken(payload, "a double that is not finite")
        return _decimal(repr(number))
    if kind == _EXTENDED and length > 1 and payload[0] == 3:
        text = str(payload[1:], "ascii", "replace")
        if not _NUMBER.fullmatch(text):
            raise _broken(payload, "a decimal that is no number of JSON")
        return _decimal(text) if any(sign in text for sign in ".eE") else _whole(text)
    if kind == _ATOM and (length == 0 or length == 1 and payload[0] < 3):
        return None if length == 0 or payload[0] == 2 else payload[0] == 1
    raise _broken(payload, f"a value of type {kind}")


def _whole(text: str) -> Any:
    """An integer of any length; Decimal's, which has no limit of digits, where Python has one."""
    try:
        return int(text)
    except ValueError:
        return int(_EXACT.create_decimal(text))


def _members(kind: int, payload: memoryview) -> Iterator[Tuple[Optional[str], int, memoryview]]:
    """Key (None: of an array), type and payload of each value inside."""
    at = 0
    key: Optional[str] = None
    while at < len(payload):
        if kind == _OBJECT:
            found, begin, at = _tag(payload, at)
            if found != _STRING:
                raise _broken(payload, "a key that is no string")
            key = _string(payload[begin:at])
        found, begin, at = _tag(payload, at)
        yield key, found, payload[begin:at]


def _plain(kind: int, payload: memoryview, depth: int = 0) -> Any:
    if kind not in (_LIST, _OBJECT):
        return _scalar(kind, payload)
    if depth == _DEPTH:
        raise _broken(payload, "more than 128 arrays and objects inside each other")
    if kind == _LIST:
        return [_plain(found, part, depth + 1) for _, found, part in _members(kind, payload)]
    plain: Dict[Any, Any] = {}
    for key, found, part in _members(kind, payload):
        if key not in plain:  # of a key that is there twice the first counts
            plain[key] = _plain(found, part, depth + 1)
    return plain


class _Compiled:
    """A text that the library has compiled: immutable, for all threads. Pickled as its text."""
    __slots__ = ("text", "_own")
    _create: Any
    _destroy: Any

    def __init__(self, text: str) -> None:
        own, err = _Own(self._destroy, ctypes.c_void_p()), _Error()
        rc = self._create(_c_text(type(self).__name__.lower(), text.encode("utf-8", "surrogateescape")),
                          ctypes.byref(own.it), ctypes.byref(err))
        if rc < 0:
            raise _refused(rc, err)
        self.text, self._own = text, own

    def __repr__(self) -> str:
        return f"stoup.{type(self).__name__}({self.text!r})"

    def __reduce__(self) -> Any:
        return type(self), (self.text,)


class Path(_Compiled):
    """A compiled path: Path("data.b[0][1]") is names with dots between them and [N] for elements; a backslash takes the
    next character as it is; "." is the document itself. ValueError says where a text is none."""
    __slots__ = ()
    _create, _destroy = _lib.stoup_doc_path_create, _lib.stoup_doc_path_destroy


class Filter(_Compiled):
    """A compiled question: Filter("data.e = 'trade' and (data.p >= 61800 or not data.m exists)"). A test is a path, one of
    = != < <= > >= and a value, or a path and `exists`; tests are joined by and, or, not and brackets. Numbers are compared
    by value, also with strings that have a decimal. ValueError says where a text is none."""
    __slots__ = ()
    _create, _destroy = _lib.stoup_doc_filter_create, _lib.stoup_doc_filter_destroy

    def matches(self, document: Document) -> bool:
        """Does it hold of a document?"""
        rc = _lib.stoup_doc_match(self._own.it, document._doc)
        if rc < 0:
            raise _broken(document._view, "a value")
        return bool(rc)

    def select(self, messages: Messages) -> Tuple[Any, int]:
        """Which of the messages it holds of, found in place by one call: their numbers (a uint32 array, a list without
        NumPy), ascending; and how many messages are no documents, which are left out."""
        if not isinstance(messages, Messages):
            raise TypeError(f"Messages are asked for, not {type(messages).__name__}")
        span = _Held(base=messages._begin + messages._table, record_cnt=len(messages), schema=messages._schema)
        room, broken = (_U32 * len(messages))(), _U64()
        found = _lib.stoup_doc_filter_span(self._own.it, ctypes.addressof(span) + _Held.base.offset, 0, room, len(messages),
                                           ctypes.byref(broken))
        if found < 0:
            raise _error(found, "the filter could not be asked")
        return (np.frombuffer(room, "<u4", found).copy() if np is not None else room[:found]), broken.value


def _path(path: Union[str, Path]) -> Path:
    return path if isinstance(path, Path) else _path_of(path)


@functools.lru_cache(256)
def _path_of(text: str) -> Path:
    return Path(text)


class Document:
    """One JSON document in place: a message of schema bipf, or any bytes-like view of one, which it keeps (and with it the
    lease). Immutable.

        document["data.p"]                 the value at a path; KeyError where there is none
        document.get(path, default)        path is a text, or a Path, which is quicker
        for key, value in document.items() of an object; `for value in document` of an array
        document.value()                   all of it as Python objects

    Values come as: integers int, of any length; numbers with a point or an exponent decimal.Decimal, which is the value that
    the JSON text had (a str of that text where its exponent is beyond Decimal's); strings str, also those that hold a decimal;
    true, false bool; null None; buffers bytes. Arrays and objects inside come as Documents, from value() as list and dict;
    of a key that is there twice the first counts. stoup.Error (EBADMSG) for bytes that are no document, where it comes by.
    """
    __slots__ = ("key", "_view", "_doc", "_type", "_payload", "__weakref__")

    def __init__(self, view: Any, key: Optional[int] = None) -> None:
        self._view = memoryview(view).cast("B") if not isinstance(view, memoryview) else view
        self.key = key
        raw, self._doc = _Buffer(), _Doc()
        _get_buffer(self._view, raw, 0)
        rc = _lib.stoup_doc_open(raw.buf, len(self._view), self._doc)
        _release_buffer(raw)
        if rc < 0:
            raise _broken(self._view, "no document")
        self._type = self._doc.type
        self._payload = self._view[self._doc.tag_len:]

    @property
    def type(self) -> str:
        """ "string", "buffer", "int", "double", "array", "object", "atom" or "extended"."""
        return ("string", "buffer", "int", "double", "array", "object", "atom", "extended")[self._type]

    def _of(self, kind: int, payload: memoryview, whole: memoryview) -> Any:
        return Document(whole) if kind in (_LIST, _OBJECT) else _scalar(kind, payload)

    def get(self, path: Union[str, Path], default: Any = None) -> Any:
        """The value at a path, or `default` where there is none."""
        found = _Doc()
        rc = _lib.stoup_doc_seek(self._doc, _path(path)._own.it, found)
        if rc < 0:
            raise _broken(self._view, "a value on the way")
        if rc == 0:
            return default
        begin = found.payload - self._doc.payload
        end, payload = begin + found.payload_len, self._payload
        if begin == 0 and end == len(payload) and found.tag_len == self._doc.tag_len and found.type == self._type:
            whole = self._view
        else:
            whole = payload[begin - found.tag_len:end]
        return self._of(found.type, payload[begin:end], whole)

    def __getitem__(self, path: Union[str, int, Path]) -> Any:
        if isinstance(path, int):
            path = f"[{path}]"
        found = self.get(path, self)
        if found is self:
            raise KeyError(path.text if isinstance(path, Path) else path)
        return found

    def __contains__(self, path: Union[str, Path]) -> bool:
        return self.get(path, self) is not self

    def _inside(self, *kinds: int) -> Iterator[Tuple[Optional[str], Any]]:
        if self._type not in kinds:
            raise TypeError(f"a document of type {self.type} is iterated over as " + ("an object" if _OBJECT in kinds else "an array"))
        at, payload = 0, self._payload
        key: Optional[str] = None
        while at < len(payload):
            if self._type == _OBJECT:
                kind, begin, at = _tag(payload, at)
                if kind != _STRING:
                    raise _broken(payload, "a key that is no string")
                key = _string(payload[begin:at])
            kind, begin, end = _tag(payload, at)
            yield key, self._of(kind, payload[begin:end], payload[at:end])
            at = end

    def items(self) -> Iterator[Tuple[str, Any]]:
        """(key, value) of each member of an object, in order; a key that is there twice comes twice."""
        for key, value in self._inside(_OBJECT):
            yield str(key), value

    def __iter__(self) -> Iterator[Any]:
        """Elements of an array; keys of an object."""
        for key, value in self._inside(_LIST, _OBJECT):
            yield value if self._type == _LIST else key

    def value(self) -> Any:
        """All of it as Python objects."""
        return _plain(self._type, self._payload)

    def __bytes__(self) -> bytes:
        return bytes(self._view)

    def __repr__(self) -> str:
        return f"<stoup.Document: {self.type}, {len(self._view)} bytes>"

    def __reduce__(self) -> Any:
        return Document, (bytes(self._view), self.key)


class Documents:
    """What Client.documents yields, and `broken`: how many messages so far are no documents, and were left out."""

    def __init__(self, cursor: "Cursor", where: Optional[Filter], paths: Optional[List[Path]], backward: bool) -> None:
        self.cursor, self.broken = cursor, 0
        self._where, self._paths, self._backward = where, paths, backward
        self._steps = self._run()

    def _numbers(self, messages: Messages) -> Any:
        if self._where is None:
            return range(len(messages))
        numbers, broken = self._where.select(messages)
        self.broken += broken
        return numbers.tolist() if np is not None else numbers

    def _run(self) -> Generator[Any, None, None]:
        for messages in self.cursor:
            numbers = self._numbers(messages)
            for i in reversed(numbers) if self._backward else numbers:
                try:
                    document = Document(messages[i], messages.key(i))
                    one = document if self._paths is None else (document.key, *map(document.get, self._paths))
                except Error as error:
                    if error.errno != errno.EBADMSG:
                        raise
                    self.broken += 1
                    continue
                yield one

    def __iter__(self) -> "Documents":
        return self

    def __next__(self) -> Any:
        try:
            return next(self._steps)
        except Error:
            self._steps = self._run()  # the cursor stays where it is
            raise

    def close(self) -> None:
        """Let go of what is held. A second time does nothing."""
        self._steps.close()
        self.cursor.close()

    def __enter__(self) -> "Documents":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a scan cannot be pickled: pickle its client and its arguments")


# ---- Arrow -------------------------------------------------------------------------------------------------

_ARROW = {("price", "decimal"): 0, ("price", "int"): 2, ("price", "float"): 4, ("time", "timestamp"): 0,
          ("time", "int"): 8, ("text", "str"): 0, ("text", "bytes"): 16}
_ARROW_RECORDS = 1
_STREAM = b"arrow_array_stream"  # the name of such capsules; they keep the pointer to it
_streams: Dict[int, _ArrowStream] = {}  # by address: those whose capsules live

# Taken by index: a function object of our own, whose types nobody else sets, nor we anybody's.
_capsule_new = ctypes.pythonapi["PyCapsule_New"]
_capsule_new.restype = ctypes.py_object
_capsule_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]


def _end_stream(capsule: int) -> None:
    """A capsule goes. Who took its stream has moved it out, and left `release` NULL."""
    stream = _streams.pop(_capsule_pointer(capsule, _STREAM), None)
    if stream is not None and stream.release:
        ctypes.PYFUNCTYPE(None, ctypes.POINTER(_ArrowStream))(stream.release)(stream)


_stream_end = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end_stream)
_capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, type(_stream_end)]


class ArrowScan:
    """A scan as an Arrow stream, by the PyCapsule protocol: pyarrow.table(it), polars.DataFrame(it),
    duckdb.from_arrow(it), pandas by way of these. It can be taken once. Batches are loaded as the consumer asks."""

    def __init__(self, cursor: "Cursor", flags: int) -> None:
        self._cursor, self._flags = cursor, flags

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The capsule. The requested schema is not looked at, which the protocol allows."""
        step, stream, err = self._cursor._step, _ArrowStream(), _Error()
        own = step.own
        if isinstance(self._cursor._pick, _Pick):
            raise ValueError("an Arrow stream has all records of a scan: leave out where, and let the engine filter")
        if own is None or not step.fresh:
            raise ValueError("the cursor is closed, or its scan has begun: make a stream of a fresh one")
        _streams[ctypes.addressof(stream)] = stream
        capsule = _capsule_new(ctypes.addressof(stream), _STREAM, _stream_end)
        # The stream owns the library's cursor from the call on. Between the two lines nobody does: an interrupt
        # there costs the cursor's memory, in the other order it would be closed twice.
        handle, own.it.value = ctypes.c_void_p(own.it.value), None
        rc = _lib.stoup_arrow_stream(handle, self._flags, stream, err)
        if rc < 0:
            own.it.value = handle.value
            raise _error(rc, err.text.decode(errors="replace"))
        step.state, step.own, step.handle = "closed", None, None
        return capsule


class _Step:
    """What a scan shares with the generator that runs it: they must not refer to each other, so that a scan that is
    left in the middle ends at once."""
    __slots__ = ("own", "top", "pending", "state", "fresh", "handle", "timeout", "reconnect", "__weakref__")

    def __init__(self, client: "Client", handle: _Own) -> None:
        self.own: Optional[_Own] = _Own(_lib.stoup_cursor_close, ctypes.c_void_p())
        self.top: Optional[_Own] = None  # bars or a replay that stand on the cursor
        self.pending: List[_Held] = []  # spans that were fetched and not yet handed out, the next one last
        self.handle: Optional[_Own] = handle
        self.state, self.fresh = "begun", True
        self.timeout, self.reconnect = client._timeout, client._reconnect

    def close(self) -> None:
        self.own = self.handle = self.top = None
        self.pending.clear()

    def open(self) -> _Own:
        own = self.own  # stays while the library works with it, whoever closes the step
        if own is None:
            self.state = "closed"
            raise ValueError("the scan was closed, or its client")
        return own


def _scanned(series: Series, bounds: _Range, where: Optional[Where] = None) -> _Step:
    """A cursor of one series."""
    client, err = series.client, _Error()
    handle = client._handle()
    step = _Step(client, handle)
    own, raw = step.open(), series._current(handle)
    if where is None:
        rc = _lib.stoup_scan(handle.it, raw, bounds, own.it, err)
    else:
        rc = _lib.stoup_scan_where(handle.it, raw, bounds, where._own.it, own.it, err)
    if rc < 0:
        raise _error(rc, err.text.decode(errors="replace"))
    client._remember(step)
    return step


def _merged(series: Sequence[Series], bounds: _Range) -> _Step:
    """A cursor of several."""
    client, err = series[0].client, _Error()
    if any(one.client is not client for one in series):
        raise ValueError("the series are of several clients: find them all in one")
    handle = client._handle()
    step = _Step(client, handle)
    raws = (_Series * len(series))(*[one._current(handle) for one in series])
    rc = _lib.stoup_merge(handle.it, raws, len(series), bounds, step.open().it, err)
    if rc < 0:
        raise _error(rc, err.text.decode(errors="replace"))
    client._remember(step)
    return step


class _Patience:
    """The library waits in slices, so that Ctrl-C is noticed between them; this counts how long in all."""

    def __init__(self, timeout: float, reconnect: float, begun: Optional[float] = None) -> None:
        self.begun, self.cnt = time.monotonic() if begun is None else begun, 0
        self.limits = {-errno.ETIMEDOUT: timeout, -errno.ENOBUFS: timeout, -errno.EPIPE: reconnect}

    def again(self, rc: int) -> bool:
        self.cnt += 1
        return time.monotonic() - self.begun < self.limits.get(rc, 0.0)

    def error(self, rc: int, text: bytes) -> Error:
        """The library speaks of its last slice alone."""
        more = f" (waited {time.monotonic() - self.begun:.1f} s in all)" if self.cnt > 1 else ""
        return _error(rc, text.decode(errors="replace") + more)


def _news(step: _Step, until: float) -> bool:
    """Wait until the store has news: True; False: not until then (time.monotonic)."""
    patience, err = None, _Error()
    while True:
        handle = step.handle
        if handle is None:
            raise ValueError("the scan was closed, or its client")
        left = until - time.monotonic()
        rc = _lib.stoup_wait_news(handle.it, int(max(0.0, min(left, _SLICE)) * 1e9), err)
        if rc > 0:
            return True
        if rc < 0:
            patience = patience or _Patience(step.timeout, step.reconnect)
            if not patience.again(rc):
                raise patience.error(rc, err.text)
        elif left <= _SLICE:
            return False


_SLICE = 0.25  # seconds of one wait, between which Ctrl-C is noticed


class _Pick:
    """What is yielded of a span where a filter is asked: nothing, or one thing, in a list."""

    def __init__(self, where: Where, index: bool, limit: Optional[int], backward: bool) -> None:
        self.where, self.index, self.limit, self.backward = where, index, limit, backward
        self.left = limit

    def __call__(self, held: _Held) -> List[Any]:
        numbers = self.where._numbers(held.span(), held.record_cnt)
        if self.left is not None:
            numbers = numbers[max(0, len(numbers) - self.left):] if self.backward else numbers[:self.left]
            self.left -= len(numbers)
        if not len(numbers):
            return []
        schema = self.where.series.schema
        view = _view(held, schema)
        if self.index:
            return [(view, numbers)]
        if np is not None:
            return [view.view(schema._void)[numbers].view(schema.dtype)]
        return [memoryview(b"".join([view[i * schema.stride:(i + 1) * schema.stride] for i in numbers]))]


def _spans(step: _Step, schema: Optional[Schema], pick: Any, batch: int, follow: Optional[float]) -> Generator[Any, None, None]:
    """Run a cursor: arrays, or what `pick` makes of a span."""
    state, cnt = "interrupted", 1
    stride = schema.stride if schema else 256  # of a merge about: short runs in batches
    patience = until = None
    step.fresh = False
    try:
        while True:
            if getattr(pick, "left", None) == 0:
                state, step.own, step.handle = "ended", None, None
                return
            owners = [_Held() for _ in range(cnt)]
            places = (ctypes.c_void_p * cnt)(*map(ctypes.addressof, owners))
            own = step.own  # stays while the library works with it, whoever closes the cursor
            if own is None:
                state = "closed"
                raise ValueError("the cursor was closed")
            begun = time.monotonic()
            rc = _lib.stoup_next_held(own.it, places, cnt, 0)
            if rc < 0:
                patience = patience or _Patience(step.timeout, step.reconnect, begun)
                if patience.again(rc):
                    continue
                state = "failed"
                raise patience.error(rc, _lib.stoup_cursor_error(own.it).contents.text)
            patience = None
            if rc == 0 and follow is not None:
                own, state = None, "idle"  # an interrupt of the wait loses nothing
                until = begun + follow if until is None else until
                if not _news(step, until):
                    return
                state = "interrupted"
                continue
            if rc == 0:
                state, step.own, step.handle = "ended", None, None
                return
            own = until = None
            del owners[rc:]
            owners.reverse()
            step.pending = owners
            length = sum([held.record_cnt for held in owners]) * (stride or _BATCH_SPAN)
            while owners:
                if pick is None and schema is not None:
                    yield _view(owners.pop(), schema)
                    continue
                found = pick(owners.pop())
                if found:
                    yield found.pop()
            cnt = min(2 * rc, batch) if length < rc * _BATCH_SPAN else 1
    finally:
        step.state = state
        step.pending = []


def _look(step: _Step, schema: Schema, when: Time, strict: bool) -> Optional[Any]:
    """The last record at or before a time."""
    call, key, held = _lib.stoup_asof_before if strict else _lib.stoup_asof, _key(when), _Held()
    patience = _Patience(step.timeout, step.reconnect)
    while True:
        own = step.open()
        rc = call(own.it, key, held.span())
        if rc == 0:
            return None
        if rc > 0:
            return _kept(held, schema)
        if not patience.again(rc):
            raise patience.error(rc, _lib.stoup_cursor_error(own.it).contents.text)


def _kept(held: _Held, schema: Schema) -> Any:
    """The one record of a span that the library gave without a lease."""
    rc = _lib.stoup_hold(held.span(), held)
    if rc < 0:
        raise _error(rc, f"a record of schema {schema.name} cannot be kept: {os.strerror(-rc)}: let arrays go")
    view = _view(held, schema)
    if schema.messages:
        return view.key(-1), view[-1]
    return view[-1] if np is not None else view[-schema.stride:]


class _Scan:
    """What cursors and merges have in common."""
    _what = "cursor"
    _step: _Step
    _run: Generator[Any, None, None]
    _pick: Any = None
    _closed = False  # by close(): it begins no more

    def _begin(self) -> _Step:
        raise NotImplementedError

    def _runs(self) -> Generator[Any, None, None]:
        raise NotImplementedError

    def _next(self) -> Iterator[Any]:
        state = self._step.state
        if state != "ended" and self._step.own is None:
            raise ValueError(f"the {self._what} is closed")
        if state == "interrupted":
            raise _error(-errno.EINTR, f"the {self._what} was interrupted within a step: open another one")
        if state in ("failed", "idle"):
            self._again()
        return self._run

    def _again(self) -> None:
        self._step.state, self._run = "begun", self._runs()

    def _advance(self) -> Any:
        try:
            return next(self._next())
        except KeyboardInterrupt:  # perhaps with an array in hand
            self._run.close()
            if self._step.state != "idle":
                self._step.state = "interrupted"
            raise

    def _idle(self, doing: str) -> _Own:
        own = self._step.own
        if own is None or self._run.gi_running:
            raise ValueError(f"{doing}: the {self._what} is closed, or used by another thread")
        return own

    def skip(self) -> int:
        """Step over the block at which the last step failed; the number of records left out, at most. Error (EINVAL)
        when it did not fail."""
        rc = _lib.stoup_cursor_skip(self._idle("skip").it)
        if rc < 0:
            raise _error(rc, f"the last step of this {self._what} did not fail" if rc == -errno.EINVAL else "")
        return int(rc)

    def seek(self, when: Time) -> None:
        """Go on at the first record at or after a time (backward: at the last one at or before it), within the range,
        whatever was read before; also after the end and after an interrupt. A limit counts anew. Reads nothing yet."""
        key = _key(when)
        if self._step.state == "ended" and not self._closed:
            self._step = self._begin()
            self._again()
        own = self._idle("seek")
        self._step.pending.clear()
        rc = _lib.stoup_seek(own.it, key)
        if rc < 0:
            raise _error(rc, _lib.stoup_cursor_error(own.it).contents.text.decode(errors="replace"))
        if isinstance(self._pick, _Pick):
            self._pick.left = self._pick.limit
        if self._step.state in ("interrupted", "failed", "idle"):
            self._again()

    def close(self) -> None:
        """End it. Arrays that it yielded stay."""
        self._closed = True
        self._step.close()
        if not self._run.gi_running:
            self._run.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {self._what} cannot be pickled: pickle the series, and begin there")


class Cursor(_Scan):
    """A scan: iterate over it for its arrays. Made by scan(); closed when it ends, by close(), or as a context manager.

    An error leaves it where it is: iterate on to try again, or skip() what is damaged. So does follow=SECONDS when no
    news came: iterate on to wait again. A KeyboardInterrupt within a step ends it, since the span at hand may be lost
    (seek() mends that); one in the loop's body does not. One thread at a time.
    """

    def __init__(self, series: "Series", bounds: _Range, batch: int = _BATCH, pick: Optional[_Pick] = None,
                 follow: Optional[float] = None) -> None:
        self.series, self._bounds, self._batch, self._pick, self._follow = series, bounds, batch, pick, follow
        self._looks: Optional[_Step] = None  # as-of, with a cursor of its own: the scan may end
        self._step = self._begin()
        self._run = self._runs()

    def _begin(self) -> _Step:
        return _scanned(self.series, self._bounds, self._pick.where if self._pick else None)

    def _runs(self) -> Generator[Array, None, None]:
        return _spans(self._step, self.series.schema, self._pick, self._batch, self._follow)

    def __iter__(self) -> Iterator[Array]:
        return self if self._follow is not None else self._next()

    def __next__(self) -> Array:
        return self._advance()

    def _looking(self) -> _Step:
        if self._looks is None:
            self._looks = _scanned(self.series, self._bounds)
        return self._looks

    def asof(self, when: Time, strict: bool = False) -> Optional[Any]:
        """As Client.asof, within the range of this scan, which it does not move: any times, forward and back. A time at the
        last answer, or a little later, costs some compares instead of a search. Keeps one block until close()."""
        return _look(self._looking(), self.series.schema, when, strict)

    def close(self) -> None:
        """End the scan. Arrays that it yielded stay."""
        super().close()
        if self._looks is not None:
            self._looks.close()

    def arrow(self, price: str = "decimal", time: str = "timestamp", text: str = "str",
              records: bool = False) -> ArrowScan:
        """This scan, not begun yet and forward, as an Arrow stream: see ArrowScan. Undefined values are nulls.

        price: scaled integers as "decimal" (decimal128), "int" or "float" (the nearest). time: "timestamp" (ns, UTC)
        or "int". text: "str" or "bytes". Columns are copied once, since a record's fields lie side by side; not so
        the only field of a record, and, with records=True, all records as one column of fixed-size binary: these are
        views of shared memory, and keep their leases.
        """
        flags = _ARROW_RECORDS if records else 0
        for what, form in (("price", price), ("time", time), ("text", text)):
            if (what, form) not in _ARROW:
                forms = [repr(one) for kind, one in _ARROW if kind == what]
                raise ValueError(f"{what}={form!r}: it is one of {', '.join(forms)}")
            flags |= _ARROW[what, form]
        return ArrowScan(self, flags)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """As arrow(), with its defaults."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


# ---- filters of records ------------------------------------------------------------------------------------

class Where:
    """A compiled question to the records of a series: Where(series, "price > 100.25 and side = 'B'"). Comparisons by = != <
    <= > >=, in (...), between ... and ..., is null, joined by and, or, not and brackets; values are exact decimals, ISO
    times, quoted texts. Undefined values compare false with everything. ValueError says where a text is none. Immutable,
    for all threads."""
    __slots__ = ("series", "text", "_own")
    series: "Series"
    text: str
    _own: _Own

    def __init__(self, series: "Series", text: str) -> None:
        own, err = _Own(_lib.stoup_filter_destroy, ctypes.c_void_p()), _Error()
        raw = series._current(series.client._handle())
        rc = _lib.stoup_filter_create(raw.schema, _c_text("where", text.encode("utf-8", "surrogateescape")), own.it, err)
        if rc < 0:
            raise _refused(rc, err)
        self.series, self.text, self._own = series, text, own

    def _numbers(self, span: int, cnt: int) -> Any:
        room = np.empty(cnt, "<u4") if np is not None else (_U32 * cnt)()
        found = _lib.stoup_filter_span(self._own.it, span, 0, ctypes.addressof(room) if np is None else room.ctypes.data, cnt)
        if found < 0:
            raise _error(found, f"the filter could not be asked of {cnt} records")
        return room[:found].copy() if np is not None and found < cnt // 2 else room[:found]

    def select(self, records: Array) -> Any:
        """Which records of an array (of this series, or a copy; a memoryview without NumPy) match: their numbers, ascending
        (uint32; a list without NumPy). Found in place by one call: array[where.select(array)] are the records."""
        schema, raw, buffer = self.series.schema, self.series._current(self.series.client._handle()), _Buffer()
        if np is not None and (getattr(records, "dtype", None) != schema.dtype or not records.flags.c_contiguous):
            raise ValueError(f"an array of records of schema {schema.name} is asked for, in one piece")
        view = memoryview(records if np is None else np.atleast_1d(records).view("u1")).cast("B")
        _get_buffer(view, buffer, 0)
        try:
            span = _Span(base=buffer.buf or 0, record_cnt=len(view) // schema.stride, stride=schema.stride,
                         schema=ctypes.cast(raw.schema, ctypes.c_void_p).value)
            return self._numbers(ctypes.addressof(span), span.record_cnt) if span.record_cnt else \
                np.empty(0, "<u4") if np is not None else []
        finally:
            _release_buffer(buffer)

    def __repr__(self) -> str:
        return f"stoup.Where({self.series.name!r}, {self.text!r})"

    def __reduce__(self) -> Any:
        return Where, (self.series, self.text)


# ---- merging -----------------------------------------------------------------------------------------------

def _source(series: Sequence["Series"]) -> Callable[[_Held], List[Tuple[int, Array]]]:
    schemas = [one.schema for one in series]
    return lambda held: [(held.source, _view(held, schemas[held.source]))]


class Merge(_Scan):
    """Several series in one time order: iterate over it for (i, array). Made by Client.merge(); closed when it ends, by
    close(), or as a context manager.

    An error leaves it where it is, as it does a Cursor: iterate on to try again, or skip() what is damaged. A
    KeyboardInterrupt within a step ends it; one in the loop's body does not. One thread at a time.
    """
    _what = "merge"

    def __init__(self, series: Sequence["Series"], bounds: _Range, client: "Client") -> None:
        self.series, self._bounds, self._client, self._pick = tuple(series), bounds, client, _source(series)
        self._step = self._begin()
        self._run = self._runs()

    def _begin(self) -> _Step:
        if self.series:
            return _merged(self.series, self._bounds)
        step = _Step(self._client, self._client._handle())  # of nothing
        step.state, step.own, step.handle = "ended", None, None
        return step

    def _runs(self) -> Generator[Any, None, None]:
        nothing: Tuple[Any, ...] = ()
        return _spans(self._step, None, self._pick, _BATCH, None) if self.series else (run for run in nothing)

    def __iter__(self) -> Iterator[Tuple[int, Array]]:
        return self._next()

    def __next__(self) -> Tuple[int, Array]:
        found: Tuple[int, Array] = self._advance()
        return found

    def __enter__(self) -> "Merge":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


# ---- replay ------------------------------------------------------------------------------------------------

class Replay:
    """Records of one series or several as the clock makes them due: iterate over it for (i, array), which waits; or poll().
    Made by Client.replay(); closed when it ends, by close(), or as a context manager.

    Ctrl-C in the wait is noticed at once, and what is due comes when it is iterated over again: nothing is lost. Errors
    leave it where it is, as they do a Cursor. One thread at a time iterates; pause(), resume(), speed and stats() are for
    all.
    """

    def __init__(self, series: Sequence["Series"], bounds: _Range, options: _ReplayOptions) -> None:
        self.series, self.ended = tuple(series), False
        self._last: Dict[str, int] = {}
        self._schemas, self._hand = [one.schema for one in series], _Held()
        self._step = step = _merged(series, bounds)
        step.top, err = _Own(_lib.stoup_replay_close, ctypes.c_void_p(), step.own), _Error()
        rc = _lib.stoup_replay_open(step.open().it, options, step.top.it, err)
        if rc < 0:
            self.close()
            raise _refused(rc, err)
        self._speed: float = options.speed

    def _top(self) -> _Own:
        top = self._step.top
        if top is None:
            raise ValueError("the replay is closed, or its client")
        return top

    def poll(self, timeout: float = 0.0) -> Optional[Tuple[int, Array]]:
        """What is due now, or within `timeout` seconds: (i, array), records of series i. None: nothing; at the end `ended`
        is True then."""
        begun, patience = time.monotonic(), None
        timeout = _seconds("timeout", timeout)
        while not self.ended:
            hand, top = self._hand, self._top()  # a span that an interrupt left there comes first
            if not hand.record_cnt:
                left = timeout - (time.monotonic() - begun)
                rc = _lib.stoup_replay_next(top.it, int(max(0.0, min(left, _SLICE)) * 1e9), hand.span())
                if rc == 0:
                    self._last, self.ended = self.stats(), True
                    self.close()
                    break
                if rc == 2 or rc == -errno.EINTR:
                    if left <= 0:
                        break
                    continue
                if rc < 0:
                    patience = patience or _Patience(self._step.timeout, self._step.reconnect)
                    if patience.again(rc):
                        continue
                    raise patience.error(rc, _lib.stoup_cursor_error(self._step.open().it).contents.text)
            if not hand.use:
                rc = _lib.stoup_hold(hand.span(), hand)
                if rc < 0:
                    raise _error(rc, f"due records cannot be kept: {os.strerror(-rc)}: let arrays go, and iterate on")
            source = _lib.stoup_cursor_source(self._step.open().it)
            found = source, _view(hand, self._schemas[source])
            self._hand = _Held()
            return found
        return None

    def __iter__(self) -> "Replay":
        return self

    def __next__(self) -> Tuple[int, Array]:
        found = self.poll(float("inf"))
        if found is None:
            raise StopIteration
        return found

    def pause(self) -> None:
        """Stop the time of the data."""
        _lib.stoup_replay_pause(self._top().it)

    def resume(self) -> None:
        """Let it go on."""
        _lib.stoup_replay_resume(self._top().it)

    @property
    def speed(self) -> float:
        """Seconds of the data to one of the clock, from 0.001 to 1e9; inf: as fast as can be. Set it at any time."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if _lib.stoup_replay_speed(self._top().it, speed) < 0:
            raise ValueError(f"a speed of {speed}: 0.001 to 1e9, or inf for as fast as can be")
        self._speed = float(speed)

    def stats(self) -> Dict[str, int]:
        """How it goes: record_cnt, span_cnt, late_cnt, late_max_ns, late_p50_ns, late_p99_ns, data_ns, skipped_ns, due_ns,
        paused. After the end what it was then."""
        if self.ended:
            return dict(self._last)
        raw = _ReplayState(struct_len=ctypes.sizeof(_ReplayState))
        _lib.stoup_replay_stats(self._top().it, raw)
        return {name: getattr(raw, name) for name, _ in _ReplayState._fields_[1:-1]}

    def fileno(self) -> int:
        """A descriptor for select and epoll: readable when records are due, after poll() gave None. Read nothing from it."""
        return int(_lib.stoup_replay_fd(self._top().it))

    def skip(self) -> int:
        """As Cursor.skip."""
        rc = _lib.stoup_cursor_skip(self._step.open().it)
        if rc < 0:
            raise _error(rc, "the last step of this replay did not fail" if rc == -errno.EINVAL else "")
        return int(rc)

    def close(self) -> None:
        """End it. Arrays that it yielded stay."""
        self._step.close()
        self._hand = _Held()

    def __enter__(self) -> "Replay":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a replay cannot be pickled: pickle the series, and replay them there")


# ---- bars --------------------------------------------------------------------------------------------------

class Bars:
    """Bars of trades: iterate over it for structured arrays of complete bars, in order, or read() all of them as one. Made by
    Client.bars(); closed when it ends, by close(), or as a context manager. The arrays are yours: copies, which keep
    no lease. (Without NumPy memoryviews, for schema.unpack.)

    schema: of the bars; prices and volumes are integers of the trades' own scale (stoup.prices(array, "close",
    schema=bars.schema) makes floats), or floats where those of the trades are. An error leaves it where it is, and so does
    a KeyboardInterrupt: nothing is lost. One thread at a time.
    """
    _CAP = 1024  # bars of an array, at most

    def __init__(self, series: Sequence["Series"], bounds: _Range, spec: _BarsSpec, follow: Optional[float]) -> None:
        self.series, self._follow, self._span = tuple(series), follow, _Span()
        self._step = step = _scanned(series[0], bounds) if len(series) == 1 else _merged(series, bounds)
        step.top, err = _Own(_lib.stoup_bars_close, ctypes.c_void_p(), step.own), _Error()
        rc = _lib.stoup_bars_open(step.open().it, spec, step.top.it, err)
        if rc < 0:
            self.close()
            raise _refused(rc, err)
        self._schema: Optional[Schema] = None
        self._failed: Optional[Error] = None
        self._know(step.top)

    def _know(self, top: _Own) -> None:
        """Of a merge what the bars are like is known when its first trade has come."""
        raw = _lib.stoup_bars_schema(top.it)
        if raw and self._schema is None:
            schema = _schema_of(raw)
            self._call = _lib.stoup_bars_next_f64 if schema.name.endswith("f64") else _lib.stoup_bars_next
            self._room = self._fresh(schema)
            self._schema = schema

    def _fresh(self, schema: Schema) -> List[Any]:
        """Room for bars, and how many are in it: one object, which an interrupt finds as it was or as it is to be."""
        return [(ctypes.c_ubyte * (schema.stride * (self._CAP + 1)))(), 0]

    @property
    def schema(self) -> Schema:
        """Of the bars; of several series known from the first bar on."""
        if self._schema is None:
            raise ValueError("bars of several series: what they are like is known with the first one")
        return self._schema

    def _one(self, top: _Own) -> int:
        """One more bar at the end of the room."""
        if self._schema is None:
            rc = int(_lib.stoup_bars_next_span(top.it, self._span)) if not self._span.record_cnt else 1
            self._know(top)
            if rc > 0:
                ctypes.memmove(self._room[0], self._span.base, self._span.stride)
            return rc
        return int(self._call(top.it, ctypes.byref(self._room[0], self._room[1] * self._schema.stride)))

    def _full(self) -> int:
        """Bars in the room, with one that an interrupt left uncounted."""
        if self._schema is None:
            return 0
        room, stride = self._room, self._schema.stride
        if any(room[0][room[1] * stride:(room[1] + 1) * stride]):
            room[1] += 1
        return int(room[1])

    def _take(self) -> Array:
        """What is in the room, which is empty afterwards."""
        room, self._room = self._room, self._fresh(self.schema)
        data = bytearray(memoryview(room[0])[:room[1] * self.schema.stride])
        return memoryview(data) if np is None else np.frombuffer(data, self.schema.dtype)

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        until: Optional[float] = None
        patience: Optional[_Patience] = None
        cnt = self._full()
        while self._failed is None and self._step.state != "ended" and cnt < self._CAP:
            top = self._step.top
            if top is None:
                raise ValueError("the bars are closed, or their client")
            rc = self._one(top)
            if rc > 0:
                cnt = self._room[1] = cnt + 1
            elif rc == 0 and self._follow is not None and not cnt:
                until = time.monotonic() + self._follow if until is None else until
                if not _news(self._step, until):
                    raise StopIteration
            elif rc == 0:
                if self._follow is None:
                    self._step.state = "ended"
                break
            else:
                patience = patience or _Patience(self._step.timeout, self._step.reconnect)
                if not patience.again(rc):
                    self._failed = patience.error(rc, _lib.stoup_bars_error(top.it).contents.text)
        if cnt:
            return self._take()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        self._step.close()
        raise StopIteration

    def read(self) -> Array:
        """All that are left as one array."""
        parts = list(self)
        if not parts and self._schema is None:
            raise ValueError("several series without a trade: nothing is known of their bars")
        if np is None:
            return memoryview(b"".join(parts))
        return np.concatenate(parts) if parts else np.empty(0, self.schema.dtype)

    def skip(self) -> int:
        """As Cursor.skip."""
        rc = _lib.stoup_cursor_skip(self._step.open().it)
        if rc < 0:
            raise _error(rc, "the last step of these bars did not fail" if rc == -errno.EINVAL else "")
        return int(rc)

    def close(self) -> None:
        """End it. Arrays stay. A second time does nothing."""
        self._step.close()

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("bars cannot be pickled: pickle the series, and make them there")


class Count(NamedTuple):
    """How much a range has: what Client.estimate finds in the index."""
    record_min: int
    record_max: int
    ordinal_min: int  # of the first record
    ordinal_max: int
    segments: int
    bytes: int  # decoded
    first_key: int  # no record has an earlier one
    last_key: int
    volumes: int
    exact: bool


# ---- clients -----------------------------------------------------------------------------------------------

class Series:
    """All records of one schema under one name, as the client's snapshot of the store has them.

    name ("DATASET/SYMBOL/schema"), schema, count (records), first_key and last_key (int ns; 0 where there are no
    records), flags, client. Pickled, it finds itself again where it arrives.
    """

    def __init__(self, client: "Client", raw: _Series, handle: _Own) -> None:
        self.client, self._raw = client, (weakref.ref(handle), raw)  # a series keeps no attachment
        self.name: str = raw.name.decode(errors="surrogateescape")
        self.schema: Schema = _schema_of(raw.schema)
        self.count: int = raw.record_cnt
        self.first_key: int = raw.first_key
        self.last_key: int = raw.last_key
        self.flags: int = raw.flags

    def _current(self, handle: _Own) -> _Series:
        """The library's struct in an attachment, which may have changed with a fork."""
        if self._raw[0]() is not handle:
            self._raw = (weakref.ref(handle), self.client._find(handle, self.name))
        return self._raw[1]

    def scan(self, start: Optional[Time] = None, end: Optional[Time] = None, backward: bool = False,
             direct: Union[bool, str] = False, **how: Any) -> Cursor:
        """As Client.scan."""
        return self.client.scan(self, start, end, backward, direct, **how)

    def __getitem__(self, ordinals: slice) -> Cursor:
        """series[1000:2000], series[-100:]: a scan of these records, by their numbers."""
        if not isinstance(ordinals, slice):
            raise TypeError(f"a series is sliced by record numbers, series[n:n + 1], not indexed by {type(ordinals).__name__}")
        return self.client.scan(self, ordinals=ordinals)

    def __iter__(self) -> Iterator[Array]:
        """As scan(): arrays."""
        return iter(self.scan())

    def documents(self, where: Union[str, Filter, None] = None, paths: Optional[Sequence[Union[str, Path]]] = None,
                  start: Optional[Time] = None, end: Optional[Time] = None, backward: bool = False,
                  direct: Union[bool, str] = False, **how: Any) -> Documents:
        """As Client.documents."""
        return self.client.documents(self, where, paths, start, end, backward, direct, **how)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All records as an Arrow stream: pyarrow.table(series). See Cursor.arrow for other forms and for ranges."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        if self.schema.messages:
            return f"<stoup.Series {self.name}: {self.count} messages>"
        return f"<stoup.Series {self.name}: {self.count} records of {self.schema.stride} bytes>"

    def __reduce__(self) -> Any:
        return _series_again, (self.client, self.name)


def _series_again(client: "Client", name: str) -> Series:
    return client[name]


class Client:
    """One attachment to a pool, or to the automatic daemon of a store. A context manager; see open()."""

    def __init__(self, target: Target, timeout: float = 30.0, reconnect: float = 30.0,
                 read_ahead: Optional[int] = None, pool_bytes: int = 0,
                 daemon: Union[None, str, "os.PathLike[str]"] = None, populate: bool = False) -> None:
        text = os.fsdecode(target)
        _c_text("the name of a pool or store", os.fsencode(text))
        self._path = "/" in text or not isinstance(target, str)
        self.target: str = os.path.abspath(text) if self._path else text
        self._timeout, self._reconnect = _seconds("timeout", timeout), _seconds("reconnect", reconnect)
        self._read_ahead = None if read_ahead is None else _count("read_ahead", read_ahead)
        self._pool_bytes = _count("pool_bytes", pool_bytes)
        self._daemon = None if daemon is None else os.fsdecode(daemon)
        self._populate = bool(populate)
        self._steps: List["weakref.ref[_Step]"] = []  # of cursors, for close
        self._steps_cap = 64
        self._pid = os.getpid()
        self._own: Optional[_Own] = self._attach()

    def _attach(self) -> _Own:
        own, options, err = _Own(_lib.stoup_leave, ctypes.c_void_p()), _Options(), _Error()
        # Slices of what the user waits for. An automatic daemon may have to be started: longer ones.
        slice_s = 10.0 if self._path else 1.0
        _lib.stoup_options_init(options)
        options.timeout_ns = int(max(1e-3, min(self._timeout, 30.0 if self._path else slice_s)) * 1e9)
        options.reconnect_ns = int(max(1e-3, min(self._reconnect, slice_s)) * 1e9)
        options.flags = (0 if self._reconnect > 0 else 1) | (2 if self._populate else 0)
        if self._read_ahead is not None:
            options.ahead_cnt = min(self._read_ahead, 0xFFFFFFFE) or 0xFFFFFFFF
        options.pool_len = self._pool_bytes
        options.daemon = _c_text("daemon", os.fsencode(self._daemon)) if self._daemon else _daemon_beside(_lib._name)
        patience = _Patience(self._timeout, 0)
        while True:
            rc = _lib.stoup_attach(os.fsencode(self.target), options, own.it, err)
            if rc == 0:
                break
            if not patience.again(rc):
                raise patience.error(rc, err.text)
        rc = _lib.stoup_fork_auto(own.it)  # children of this process have what it has
        if rc < 0:
            raise _error(rc, "")
        return own

    def _handle(self) -> _Own:
        """The attachment; in a child of a fork that did not get its parent's, one of its own."""
        own = self._own
        if own is None:
            raise ValueError(f"the client of {self.target} is closed")
        if self._pid != os.getpid():
            if _lib.stoup_use_cnt(own.it) == -errno.ECHILD:
                self._own = own = self._attach()
            self._pid = os.getpid()
        return own

    def _remember(self, step: _Step) -> None:
        """For close. Without a lock, which a fork in another thread would leave locked in the child."""
        self._steps.append(weakref.ref(step))
        if len(self._steps) > self._steps_cap:
            for ref in [ref for ref in self._steps if ref() is None]:
                try:
                    self._steps.remove(ref)
                except ValueError:  # another thread was faster
                    pass
            self._steps_cap = 64 + 2 * len(self._steps)

    def close(self) -> None:
        """No further calls. Cursors end; arrays stay readable, and the attachment goes with the last of them."""
        self._own = None
        for step in [ref() for ref in self._steps]:
            if step is not None:
                step.close()
        self._steps.clear()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return _reopen, (self.target, self._timeout, self._reconnect, self._read_ahead, self._pool_bytes, self._daemon,
                         self._populate)

    def __repr__(self) -> str:
        return f"<stoup.Client {self.target}{' (closed)' if self._own is None else ''}>"

    # ---- series

    @staticmethod
    def _find(handle: _Own, name: str) -> _Series:
        if not isinstance(name, str):
            raise TypeError(f"the name of a series is a str, not {type(name).__name__}")
        raw, err = _Series(), _Error()
        text = _c_text("the name of a series", name.encode(errors="surrogateescape"))
        rc = _lib.stoup_series_find(handle.it, text, raw, err)
        if rc < 0:
            raise _error(rc, err.text.decode(errors="replace"))
        return raw

    def find(self, name: str) -> Series:
        """A series by its full name. NotFound: the text names near ones."""
        handle = self._handle()
        return Series(self, self._find(handle, name), handle)

    __getitem__ = find

    def __contains__(self, name: str) -> bool:
        try:
            self.find(name)
        except NotFound:
            return False
        return True

    def series(self, pattern: str = "*") -> List[Series]:
        """All series, or those whose names match a pattern such as "GLBX.MDP3/ES*/trades", sorted by name."""
        handle, found = self._handle(), []
        for i in range(_lib.stoup_series_cnt(handle.it)):
            raw = _Series()
            if _lib.stoup_series_at(handle.it, i, raw) == 0 and \
                    fnmatch.fnmatchcase(raw.name.decode(errors="surrogateescape"), pattern):
                found.append(Series(self, raw, handle))
        return found

    def _series(self, series: Union[str, Series]) -> Series:
        if isinstance(series, Series):
            return series
        if not isinstance(series, str):
            raise TypeError(f"a series, or its name, is asked for, not {type(series).__name__}")
        return self.find(series)

    # ---- records

    def scan(self, series: Union[str, Series], start: Optional[Time] = None, end: Optional[Time] = None,
             backward: bool = False, direct: Union[bool, str] = False, *, inclusive: str = "left",
             ordinals: Union[None, slice, range, Tuple[Optional[int], Optional[int]]] = None, limit: Optional[int] = None,
             last: Optional[int] = None, follow: Union[None, bool, float] = None, available: bool = False,
             where: Union[None, str, Where] = None, index: bool = False) -> Cursor:
        """The records with keys in [start, end), as arrays of consecutive ones, in time order. A Series is read by the
        client that it is of, whichever one is asked; a name is of this one.

        backward: the latest array first (inside an array, records lie forward as ever). direct: map the volumes' own
        files instead of going through the pool, for series that are not compressed (`ingest --codec none`): True, or
        "auto" for where it can be; one array then spans as many records as lie one behind the other in the file.

        inclusive: which ends are in: "left", "right", "both", "neither" (all records of one key alike). ordinals: by record
        numbers from 0 instead, slice(1000, 2000) or slice(-100, None). limit: at most so many records from the first one
        on; last: of the range's those that come last. follow: at the end wait for what is ingested later; True for ever, or
        so many seconds, after which the loop ends, and goes on where it was when the cursor is iterated over again.
        available: of bars compare start and end with the time from which on a bar was known, its close.

        where: a filter such as "price > 100.25 and side = 'B'" (see Where): arrays of the matching records alone, which are
        copies, yours, and keep no lease; with index=True (view, numbers) of the spans that have some, nothing copied.
        Segments of which the index says that none match are not read. `limit` counts matches then; not with `last`.
        """
        series = self._series(series)
        if where is not None and last is not None:
            raise ValueError("the last matches: scan backward with a limit")
        bounds = _range(series, start, end, backward, direct, inclusive, ordinals, limit, last, follow, available)
        pick = None
        if where is not None:
            bounds.limit = 0
            pick = _Pick(self._where(series, where), index, limit, backward)
        elif index:
            raise ValueError("index=True tells which records match: say where")
        return Cursor(series, bounds, _BATCH, pick, _patient(follow))

    @staticmethod
    def _where(series: Series, where: Union[str, Where]) -> Where:
        return where if isinstance(where, Where) else Where(series, where)

    def count(self, series: Union[str, Series], start: Optional[Time] = None, end: Optional[Time] = None,
              **how: Any) -> int:
        """How many records a scan yields (inclusive, ordinals, limit, last, available as there), exactly: reads two blocks at
        most, those in which the range begins and ends. With `where` the matches, which is a scan."""
        if how.get("where") is not None:
            return sum(len(numbers) for _, numbers in self.scan(series, start, end, index=True, **how))
        return self._counted(series, start, end, 1, **how).record_max

    def estimate(self, series: Union[str, Series], start: Optional[Time] = None, end: Optional[Time] = None,
                 **how: Any) -> Count:
        """The same between bounds, from the index alone: reads nothing, never waits."""
        return self._counted(series, start, end, 0, **how)

    def _counted(self, series: Union[str, Series], start: Optional[Time], end: Optional[Time], exact: int, **how: Any) -> Count:
        series, raw, err = self._series(series), _Count(), _Error()
        bounds, client = _range(series, start, end, **how), series.client
        patience = _Patience(client._timeout, client._reconnect)
        while True:
            handle = client._handle()
            rc = _lib.stoup_count(handle.it, series._current(handle), bounds, exact, raw, err)
            if rc >= 0:
                return Count._make([getattr(raw, name) for name, *_ in _Count._fields_[:-1]] + [bool(raw.exact)])
            if not patience.again(rc):
                raise patience.error(rc, err.text)

    def documents(self, series: Union[str, Series], where: Union[str, Filter, None] = None,
                  paths: Optional[Sequence[Union[str, Path]]] = None, start: Optional[Time] = None,
                  end: Optional[Time] = None, backward: bool = False, direct: Union[bool, str] = False,
                  **how: Any) -> Documents:
        """The documents of a series of JSON (schema bipf) with keys in [start, end), one by one, in time order or backward:
        Documents in place, each with its time in `key`; with `paths` tuples (key, value, value...), None where a path leads
        nowhere. `where` (see Filter) is asked for a whole span at a time, in place, without a step of Python for documents of
        which it does not hold. More bounds (inclusive, ordinals, limit, last, follow) as of scan: of all documents."""
        series = self._series(series)
        if not series.schema.messages:
            raise ValueError(f"{series.name} has records of schema {series.schema.name}, no documents")
        return Documents(self.scan(series, start, end, backward, direct, **how), Filter(where) if isinstance(where, str) else where,
                         None if paths is None else [_path(path) for path in paths], backward)

    def read(self, series: Union[str, Series], start: Optional[Time] = None, end: Optional[Time] = None, *,
             inclusive: str = "left", ordinals: Union[None, slice, range, Tuple[Optional[int], Optional[int]]] = None,
             limit: Optional[int] = None, last: Optional[int] = None, available: bool = False,
             where: Union[None, str, Where] = None) -> Array:
        """All records of a range as one array: a copy, which is yours to write to. (bytearray without NumPy.) Messages: a
        list of (key, bytes). Arguments as of scan."""
        series = self._series(series)
        views = self.scan(series, start, end, inclusive=inclusive, ordinals=ordinals, limit=limit, last=last,
                          available=available, where=where)
        if series.schema.messages:
            return [one for messages in views for one in messages.copies()]
        if np is None:
            return bytearray().join(views)
        return self._joined(series, [self._copied(series, view) for view in views])

    @staticmethod
    def _joined(series: Series, parts: List[Any]) -> Array:
        found = np.empty(sum(map(len, parts)), series.schema._void)
        at = 0
        for part in parts:
            found[at:at + len(part)] = part
            at += len(part)
        return found.view(series.schema.dtype)

    def asof(self, series: Union[str, Series], when: Time, strict: bool = False) -> Optional[Any]:
        """The last record at or before a time (strict: before it), or None. Bars count from their end: what is not yet
        known at that time is not returned. A read-only record (numpy.void) that keeps its lease, like an array; without
        NumPy a memoryview. Of messages: (key, memoryview). For many times of one series, Cursor.asof."""
        series = self._series(series)
        return _look(_scanned(series, _Range(0, 0, 0, 0)), series.schema, when, strict)

    def asof_all(self, series: Sequence[Union[str, Series, Cursor]], when: Time, strict: bool = False) -> List[Optional[Any]]:
        """The same of many series at once: a list, None for those that have none. What is not in the pool is asked for
        together. In the place of a series a cursor may stand, once, whose next lookup is then the faster (see
        Cursor.asof)."""
        cursors = [one if isinstance(one, Cursor) else Cursor(self._series(one), _Range(0, 0, 0, 0)) for one in series]
        steps, cnt = [one._looking() for one in cursors], len(cursors)
        owns = [step.open() for step in steps]
        places, found = (ctypes.c_void_p * cnt)(*[own.it.value for own in owns]), (_Span * cnt)()
        key, patience = max(-2**63, _key(when) - bool(strict)), _Patience(self._timeout, self._reconnect)
        while True:
            rc = _lib.stoup_asof_all(places, cnt, key, found)
            if rc >= 0:
                break
            if not patience.again(rc):
                errors = [_lib.stoup_cursor_error(own.it).contents for own in owns]
                raise patience.error(rc, next((one.text for one in errors if one.code == rc), b""))
        kept: List[Optional[Any]] = []
        for cursor, span in zip(cursors, found):
            held = _Held()
            ctypes.memmove(held.span(), ctypes.byref(span), ctypes.sizeof(span))
            kept.append(_kept(held, cursor.series.schema) if span.record_cnt else None)
        return kept

    def last(self, series: Union[str, Series], n: int = 1, before: Optional[Time] = None) -> Array:
        """The last n records, or those before a time (bars: that ended before it), in time order; fewer where there are
        not as many. A view where they lie in one span, else a copy. Messages: a list of (key, bytes)."""
        series = self._series(series)
        many = _count("n", n) > 0
        views: Iterator[Array] = iter(Cursor(series, _range(series, None, before, last=n, available=True))) if many else iter(())
        if series.schema.messages:
            return [one for messages in views for one in messages.copies()]
        first, second = next(views, None), next(views, None)
        if first is not None and second is None:
            return first
        parts = [self._copied(series, one) for one in (first, second) if one is not None]
        del first, second
        parts += [self._copied(series, one) for one in views]
        if np is None:
            return memoryview(b"".join(parts))
        array = self._joined(series, parts)
        array.flags.writeable = False
        return array

    @staticmethod
    def _copied(series: Series, view: Array) -> Any:
        return bytes(view) if np is None else view.view(series.schema._void).copy()

    def merge(self, *series: Union[str, Series], start: Optional[Time] = None, end: Optional[Time] = None,
              direct: Union[bool, str] = False, backward: bool = False, inclusive: str = "left",
              limit: Optional[int] = None, at_open: bool = False) -> Merge:
        """Several series in one time order: (i, array) for each run of records of series[i] that comes before the next
        record of any other. Of equal times the series that was named first goes first. Bars are placed at their end
        (at_open: at their begin), a series that kept its order at the greatest key so far. backward: exactly the reverse;
        inside an array records lie forward as ever. limit: records of all of them. Other arguments as of scan.

        Keeps one block of each series, whatever the length; where they do not fit into what this process may lease, or into
        the pool, Exhausted says so at once."""
        every = [self._series(one) for one in series]
        bounds = _range(None, start, end, backward, direct, inclusive, None, limit)
        bounds.flags |= _AT_OPEN if at_open else 0
        return Merge(every, bounds, every[0].client if every else self)

    def replay(self, *series: Union[str, Series], start: Optional[Time] = None, end: Optional[Time] = None,
               speed: float = 1.0, max_gap: Optional[float] = None, history: Optional[Time] = None, paused: bool = False,
               begin: int = 0, direct: Union[bool, str] = False, inclusive: str = "left", limit: Optional[int] = None) -> Replay:
        """A merge that waits: (i, array) for each run of series[i] when the clock makes it due, never early.

        speed: seconds of the data to one of the clock; float("inf") does not wait. max_gap: seconds; where the data have
        nothing for longer, only so long passes. history: time of the data at the begin; records before it come at once
        (default: the first record's time). begin: time.monotonic_ns() of the begin, the same for several processes, say
        (default: the first step). paused: begin paused. Other arguments as of merge."""
        if not series:
            raise ValueError("nothing to replay: name a series")
        options = _ReplayOptions(struct_len=ctypes.sizeof(_ReplayOptions), speed=speed, begin_ns=_count("begin", begin),
                                 flags=1 if paused else 0, start_ns=0 if history is None else _key(history))
        if not speed > 0:
            raise ValueError(f"a speed of {speed}: 0.001 to 1e9, or inf for as fast as can be")
        if max_gap is not None:
            options.max_gap_ns = int(min(max(1e-9, _seconds("max_gap", max_gap)), 9e9) * 1e9)
        return Replay([self._series(one) for one in series],
                      _range(None, start, end, False, direct, inclusive, None, limit), options)

    def bars(self, series: Union[str, Series, Sequence[Union[str, Series]]], spec: str, start: Optional[Time] = None,
             end: Optional[Time] = None, *, fill: bool = False, partial: bool = False, complete: Optional[Time] = None,
             offset: int = 0, price: Optional[str] = None, size: Optional[str] = None, side: Optional[str] = None,
             action: Optional[str] = None, trades: Optional[str] = None, direct: Union[bool, str] = False,
             follow: Union[None, bool, float] = None) -> Bars:
        """Bars of the trades in [start, end): iterate for structured arrays, or bars(...).read() for all as one array.

        spec: "1m", "90s", "500ms", "1d" by time; "100t" trades; "5000v", "0.25v" volume; "1000000n" notional. Several series
        are taken in one time order. A bar comes when it is complete, and its `ts_available` says since when it was known.

        fill: intervals without trades are bars too. partial: at the end the pending bar as well, marked. complete: the data
        are known to be complete up to there, so that bars which close by then come. offset: ns by which bars begin off
        midnight UTC. price, size, side, action: fields; trades: the bytes of `action` that tell a trade; all known for
        the schemas that stoup knows. follow, direct as of scan. ValueError says what is not understood."""
        every = [self._series(one) for one in ([series] if isinstance(series, (str, Series)) else series)]
        if not every:
            raise ValueError("no series to make bars of")
        raw, err = _BarsSpec(struct_len=ctypes.sizeof(_BarsSpec)), _Error()
        if _lib.stoup_bars_spec_parse(_c_text("spec", spec.encode()), raw, err) < 0:
            raise ValueError(err.text.decode(errors="replace"))
        raw.flags, raw.offset_ns = (1 if fill else 0) | (2 if partial else 0), operator.index(offset)
        raw.end_ns = 0 if complete is None else _key(complete)
        for name, value in (("price", price), ("size", size), ("side", side), ("action", action), ("action_values", trades)):
            if value is not None:
                setattr(raw, name, _c_text(name, value.encode()))
        return Bars(every, _range(None, start, end, False, direct, follow=follow), raw, _patient(follow))

    def wait(self, timeout: float = float("inf")) -> bool:
        """Wait until something was ingested since this client (or, in this thread, the cursor that stood at its end) took
        the store: True, take it by refresh(), or iterate on; False: nothing within `timeout` seconds, 0 only looks."""
        step = _Step(self, self._handle())
        return _news(step, time.monotonic() + _seconds("timeout", timeout))

    def definition(self, symbol: str, when: Optional[Time] = None) -> Dict[str, Any]:
        """What was known of an instrument ("DATASET/SYMBOL") at a time, None: of all times the last: min_price_increment,
        expiration, contract_multiplier... of its last definition record at or before that time, whatever its DBN version.
        Values are the record's own: prices integers of 1e-9, times of ns, undefined ones INT64_MAX and UINT64_MAX; texts
        str. NotFound where it has no definitions, or only later ones."""
        raw, err, patience = _Instrument(), _Error(), _Patience(self._timeout, self._reconnect)
        raw.struct_len = ctypes.sizeof(raw)
        key = (1 << 63) - 1 if when is None else to_ns(when)
        while True:
            rc = _lib.stoup_definition_at(self._handle().it, _c_text("symbol", symbol.encode()), key, raw, err)
            if rc >= 0:
                break
            if rc == -errno.ENODATA:
                raise NotFound(errno.ENODATA, err.text.decode(errors="replace"))
            if not patience.again(rc):
                raise patience.error(rc, err.text)
        values = {name: getattr(raw, name) for name, _ in _Instrument._fields_[1:]}
        return {name: value.decode(errors="replace").rstrip("\0") if isinstance(value, bytes) else value
                for name, value in values.items()}

    # ---- the attachment

    def refresh(self) -> bool:
        """Take the newest snapshot of the store: was there news? Cursors and arrays stay what they are; find series
        anew for their counts."""
        handle, err, patience = self._handle(), _Error(), _Patience(self._timeout, self._reconnect)
        while True:
            rc = _lib.stoup_refresh(handle.it, err)
            if rc >= 0:
                return bool(rc > 0)
            if not patience.again(rc):
                raise patience.error(rc, err.text)

    def health(self) -> None:
        """Raise Gone when the daemon is dead, stopped or silent."""
        err = _Error()
        rc = _lib.stoup_health(self._handle().it, err)
        if rc < 0:
            raise _error(rc, err.text.decode(errors="replace"))

    def stats(self) -> Dict[str, int]:
        """What this attachment did so far (hit_cnt, miss_cnt, wait_ns...) and holds now (lease_cnt, leased_bytes)."""
        raw = _Stats(struct_len=ctypes.sizeof(_Stats))
        rc = _lib.stoup_stats(self._handle().it, raw)
        if rc < 0:
            raise _error(rc, "")
        return {name: getattr(raw, name) for name, _ in _Stats._fields_[1:]}


_reopened: Dict[Tuple[Any, ...], Client] = {}


def _reopen(*arguments: Any) -> Client:
    """A client that arrived pickled: one attachment per process for all of the same target and options, until the
    process ends."""
    client = _reopened.get(arguments)
    if client is None or client._own is None:
        client = _reopened[arguments] = Client(*arguments)
    return client


def open(target: Target, timeout: float = 30.0, reconnect: float = 30.0,
         read_ahead: Optional[int] = None, pool_bytes: int = 0,
         daemon: Union[None, str, "os.PathLike[str]"] = None, populate: bool = False) -> Client:
    """Attach to a pool by its name, or to a store by its path (a str with a slash, or a Path), whose automatic daemon
    is started where there is none.

    timeout: seconds that one step may wait for a block. reconnect: seconds that it waits for another daemon when one
    ended; 0 = not at all. read_ahead: blocks that a cursor asks for ahead, 0 = none. Of automatic daemons: pool_bytes
    (0 = as large as the decoded store, at most 128 MiB), daemon (path of stoupd; else $STOUPD, PREFIX/bin beside the
    library's PREFIX/lib, or what the library finds). populate: map all of the pool now.
    NotFound, Gone, Timeout, Exhausted, PermissionError-like Error (EACCES) with the library's text.
    """
    return Client(target, timeout, reconnect, read_ahead, pool_bytes, daemon, populate)
