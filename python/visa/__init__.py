"""Compile tensor mappings, run them on the simulated machine, check them.

    import visa
    k = visa.compile(open("matmul.vm").read(), M=64)
    out = k(a, b)              # NumPy arrays in and out
    k.check()                  # numbers and algebra against the reference
    print(k.report())          # cycles and what binds
    fast = visa.tune("C[m, n] = sum(k) A[m, k] * B[n, k]", m=256, n=256, k=512, dtype="i8")

bf16 and the 8-bit floats are ml_dtypes' types where that package is installed, else their bit patterns (uint16, uint8); i4 is int8 with
values from -8 to 7 (i5 is stored so, too). With convert=True float32 and float64 arrays are rounded to bf16 and the narrower floats. Errors are visa.Error, which carries the diagnostics."""
from __future__ import annotations

import ctypes
import json
import operator
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library
from ._library import lib

try:
    import ml_dtypes as _floats  # type: ignore[import]
except ImportError:
    _floats = None

__all__ = ["Diagnostic", "Error", "Fixed", "Kernel", "Port", "Verdict", "compile", "fix", "tune", "version"]


def version() -> str:
    """The version of the library."""
    return str(lib.visa_version().decode())


@dataclass(frozen=True)
class Diagnostic:
    """What the compiler says of a place: line and column count from 1, and are 0 where it has no place."""

    id: str
    severity: str
    message: str
    file: str
    line: int
    column: int
    notes: Tuple[Any, ...]
    help: Optional[str]


class Error(Exception):
    """A text that does not compile, or a run that could not be made. `diagnostics` is empty for a run."""

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic] = ()):
        super().__init__(text)
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True)
class Port:
    """A tensor of a kernel."""

    name: str
    dtype: str
    is_output: bool
    shape: Tuple[int, ...]
    axes: Tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What a check found; true when everything agrees."""

    agrees: bool
    report: str

    def __bool__(self) -> bool:
        return self.agrees


_PLAIN = {"i4": np.int8, "i5": np.int8, "i8": np.int8, "i9": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32, "f32": np.float32}
_FLOATS = {"bf16": ("bfloat16", np.uint16), "f8e4m3": ("float8_e4m3fn", np.uint8), "f8e5m2": ("float8_e5m2", np.uint8)}

_NARROW = ("bf16", "f8e4m3", "f8e5m2", "f4e2m1")


def _number_bits(port: "Port") -> int:
    """Bits of a port of one number, the parameter HbmScalar; 0: it is a tensor."""
    if port.shape == () and port.dtype in ("i32", "u8"):
        return 32 if port.dtype == "i32" else 8
    return 64 if port.shape == (2,) and port.dtype == "i32" and port.axes[0].endswith(".word") else 0


def _numpy_type(dtype: str, bits: int) -> np.dtype[Any]:
    if dtype in _PLAIN:
        return np.dtype(_PLAIN[dtype])
    if dtype in _FLOATS:
        name, pattern = _FLOATS[dtype]
        return np.dtype(getattr(_floats, name) if _floats else pattern)
    return np.dtype(f"u{max(bits // 8, 1)}")


def _diagnostics(handle: int) -> List[Diagnostic]:
    found = []
    for d in json.loads(lib.visa_diagnostics(handle, _library.DIAGNOSTICS["json"])):
        begin = d["range"]["begin"] if d["range"] else {"line": 0, "column": 0}
        found.append(Diagnostic(d["id"], d["severity"], d["message"], d["file"] or "", begin["line"], begin["column"],
                                tuple(n["message"] for n in d["notes"]), d.get("help")))
    return found


def _number(name: str, value: Any) -> int:
    """An integer as C has it: nothing is rounded, and nothing is cut off."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} takes an integer, not {value!r}") from None
    if not -1 << 63 <= number < 1 << 63:
        raise ValueError(f"{name}: {number} has more than 64 bits")
    return number


def _choice(name: str, value: Any, of: Dict[str, Any]) -> Any:
    if not isinstance(value, str) or value not in of:
        raise ValueError(f"{name} is one of {', '.join(of)}, not {value!r}")
    return of[value]


def _single(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """f32 of floats, such that rounding it again is rounding the value once: of a float64 between two of them the odd one."""
    with np.errstate(over="ignore"):
        single = np.array(array, np.float32, order="C", ndmin=1)
    wide = np.asarray(array, array.dtype.newbyteorder("=")).reshape(single.shape)
    single = np.where(np.abs(single) > np.abs(wide), np.nextafter(single, np.float32(0)), single)
    single.view(np.uint32)[...] |= (single < wide) | (single > wide)
    return single


def _parameters(values: Dict[str, Any]) -> Tuple[Any, int]:
    """The C array of sizes, and what it points to."""
    array = (_library.Parameter * max(1, len(values)))()
    for i, (name, given) in enumerate(sorted(values.items())):
        numbers = list(given) if isinstance(given, (list, tuple)) else [given]
        array[i] = _library.Parameter(name.encode(), (ctypes.c_int64 * len(numbers))(*(_number(name, n) for n in numbers)), len(numbers))
    return array, len(values)


class Kernel:
    """A compiled kernel. Call it with its inputs, in the order of its signature or by name."""

    def __init__(self, handle: int, name: Optional[str], source: str, convert: bool = False):
        self.convert = convert
        self._compilation, self._kernel = handle, None
        self.source = source
        self.diagnostics = _diagnostics(handle)
        if lib.visa_error_count(handle):
            raise Error(lib.visa_diagnostics(handle, _library.DIAGNOSTICS["text"]).decode(), self.diagnostics)
        self.binary = self._emit("bin")
        self._kernel = lib.visa_kernel_open(self.binary, len(self.binary), name.encode() if name else None)
        if not self._kernel:
            raise MemoryError
        self._raise_error()
        self.name = lib.visa_kernel_name(self._kernel).decode()
        self.ports: List[Port] = []
        self._bits: Dict[str, int] = {}
        port = _library.Port()
        while lib.visa_port_at(self._kernel, len(self.ports), ctypes.byref(port)):
            self.ports.append(Port(port.name.decode(), port.type.decode(), port.is_output, tuple(port.shape[:port.rank]),
                                   tuple(n.decode() for n in port.axis_names[:port.rank])))
            self._bits[port.name.decode()] = port.element_bits

    def __del__(self) -> None:
        if getattr(self, "_kernel", None):
            lib.visa_kernel_close(self._kernel)
        if getattr(self, "_compilation", None):
            lib.visa_free(self._compilation)

    def _raise_error(self) -> None:
        text = lib.visa_kernel_error(self._kernel).decode()
        if text:
            raise Error(text)

    def _emit(self, kind: str) -> bytes:
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        if not lib.visa_emit(self._compilation, _library.EMIT[kind], ctypes.byref(data), ctypes.byref(size)):
            raise Error(lib.visa_diagnostics(self._compilation, _library.DIAGNOSTICS["text"]).decode(), _diagnostics(self._compilation))
        return ctypes.string_at(data, size.value)

    # ---- tensors ----

    def _bytes_of(self, i: int) -> np.ndarray[Any, Any]:
        size = ctypes.c_size_t()
        at = lib.visa_port_data(self._kernel, i, ctypes.byref(size))
        if not at:
            self._raise_error()
            return np.zeros(0, np.uint8)
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), (size.value,))

    def _give(self, i: int, value: Any) -> None:
        port = self.ports[i]
        wanted = _numpy_type(port.dtype, self._bits[port.name])
        array = np.asarray(value)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        bits = _number_bits(port)
        if bits and array.size == 1 and array.dtype.kind in "biu":
            number = int(array.reshape(())[()])
            if not -1 << bits - 1 <= number < 1 << bits:
                raise ValueError(f"{port.name} has {bits} bits, and {number} is out of them")
            self._bytes_of(i)[:] = np.frombuffer((number % (1 << bits)).to_bytes(bits // 8, "little"), np.uint8)
            return
        if array.shape != port.shape:
            shape = ", ".join(f"{a}={n}" for a, n in zip(port.axes, port.shape))
            raise ValueError(f"{port.name} has the shape [{shape}], not {list(array.shape)}")
        if self.convert and array.dtype in (np.float32, np.float64) and port.dtype in _NARROW:
            values = _single(array)
            if not lib.visa_port_round(self._kernel, i, values.ctypes.data, values.size):
                self._raise_error()
            return
        if array.dtype != wanted:
            pattern = np.dtype(f"u{wanted.itemsize}")
            if array.dtype == pattern and wanted.kind not in "iu":
                array = array.view(wanted)
            else:
                rounds = port.dtype in _NARROW and array.dtype.kind == "f"
                how = "convert it first" if not rounds else "convert=True takes float32 and float64" if self.convert else "compile with convert=True, or convert it first"
                raise TypeError(f"{port.name} takes {wanted.name} ({port.dtype}), not {array.dtype.name}; {how}")
        flat = np.ascontiguousarray(array).reshape(-1)
        if self._bits[port.name] == 4:
            least, most = (-8, 7) if wanted.kind == "i" else (0, 15)
            if flat.size and (flat.min() < least or flat.max() > most):
                raise ValueError(f"{port.name} is {port.dtype}: values from {least} to {most}")
            nibbles = np.zeros((flat.size + 1) // 2 * 2, np.uint8)
            nibbles[:flat.size] = flat.view(np.uint8) & 15
            flat = nibbles[0::2] | nibbles[1::2] << 4
        self._bytes_of(i)[:] = flat.view(np.uint8)

    def _take(self, i: int) -> np.ndarray[Any, Any]:
        port = self.ports[i]
        kind, raw = _numpy_type(port.dtype, self._bits[port.name]), self._bytes_of(i)
        if self._bits[port.name] == 4:
            nibbles = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[:int(np.prod(port.shape, dtype=np.int64))].astype(kind)
            taken: np.ndarray[Any, Any] = np.where(nibbles > 7, nibbles - 16, nibbles) if kind.kind == "i" else nibbles
            return taken.astype(kind).reshape(port.shape)
        return raw.view(kind).reshape(port.shape).copy()

    def __call__(self, *inputs: Any, threads: int = 0, **named: Any) -> Any:
        """Runs the binary on the simulated machine. One output: an array; several: a tuple in the order of the signature."""
        names = [p.name for p in self.ports if not p.is_output]
        given = dict(zip(names, inputs))
        twice = sorted(set(given) & set(named))
        if len(inputs) > len(names) or twice or set(named) - set(names):
            raise TypeError(f"{self.name} takes {', '.join(names)}; given {len(inputs)} and {', '.join(sorted(named)) or 'none'} by name")
        given.update(named)
        missing = [n for n in names if n not in given]
        if missing:
            raise TypeError(f"{self.name} lacks {', '.join(missing)}")
        for i, port in enumerate(self.ports):
            if not port.is_output:
                self._give(i, given[port.name])
        if not lib.visa_kernel_run(self._kernel, ctypes.byref(_library.RunOptions(threads, 0, 0))):
            self._raise_error()
        outputs = tuple(self._take(i) for i, port in enumerate(self.ports) if port.is_output)
        return outputs[0] if len(outputs) == 1 else outputs

    def check(self, numbers: bool = True, algebra: bool = True, seed: int = 1) -> Verdict:
        """Runs it and compares with the reference that LLVM builds from the mathematics: on the last inputs, or seeded numbers where there
        are none, and, by algebra, for all inputs."""
        agrees, report = ctypes.c_bool(), ctypes.c_char_p()
        what = _library.CHECK_NUMBERS * numbers | _library.CHECK_ALGEBRA * algebra
        done = lib.visa_kernel_check(self._kernel, ctypes.byref(_library.RunOptions(0, 0, seed)), what, ctypes.byref(agrees), ctypes.byref(report))
        text = (report.value or b"").decode() + ("" if done else lib.visa_kernel_error(self._kernel).decode())
        return Verdict(agrees.value, text)

    # ---- what the tool says ----

    def report(self, format: str = "text", timing: str = "documented") -> Union[str, Dict[str, Any]]:
        """When each command runs, its cycles, what binds: "text", "csv", "html", or "json", which is parsed."""
        text = lib.visa_kernel_report(self._kernel, format.encode(), timing.encode())
        if text is None:
            self._raise_error()
        report: Union[str, Dict[str, Any]] = json.loads(text) if format == "json" else text.decode()
        return report

    @property
    def cycles(self) -> int:
        return int(lib.visa_kernel_cycles(self._kernel, None))

    def tables(self) -> str:
        """The sequencer tables."""
        return self._emit("tables").decode()

    def tables_json(self) -> Dict[str, Any]:
        tables: Dict[str, Any] = json.loads(self._emit("json"))
        return tables

    def memory(self) -> str:
        """What lies where, and for how long."""
        return self._emit("memory").decode()

    def __repr__(self) -> str:
        ports = "; ".join(f"{'out' if p.is_output else 'in'} {p.name}: {p.dtype}{list(p.shape)}" for p in self.ports)
        return f"<visa.Kernel {self.name}: {ports}; {self.cycles} cycles>"

    def _repr_html_(self) -> str:
        import html
        return f"<iframe style='width:100%;height:40em;border:0' srcdoc=\"{html.escape(str(self.report('html')), quote=True)}\"></iframe>"


def _text(source: Union[str, os.PathLike[str]], name: str, taker: str) -> Tuple[str, str]:
    """Its name and its text."""
    if isinstance(source, os.PathLike):
        with open(source, encoding="utf-8") as f:
            return os.fspath(source), f.read()
    if not isinstance(source, str):
        raise TypeError(f"{taker} takes a text (str) or a path (os.PathLike), not {type(source).__name__}")
    return name, source


def compile(source: Union[str, os.PathLike[str]], *, kernel: Optional[str] = None, dialect: Optional[str] = None, place: str = "source",
            order: str = "auto", name: str = "<python>", convert: bool = False, **sizes: Any) -> Kernel:
    """A kernel of a source text, or of a file (os.PathLike). `sizes`: other numbers for constants and axes, M=64. `convert`: float32 and
    float64 arrays are taken for inputs of bf16 and narrower floats, each element rounded as a cast does."""
    name, written = _text(source, name, "compile")
    parameters, count = _parameters(sizes)
    options = _library.Options(kernel=kernel.encode() if kernel else None, dialect=dialect.encode() if dialect else None,
                               places_all=_choice("place", place, {"source": False, "auto": True}),
                               order=_choice("order", order, {"auto": 0, "source": 1, "free": 2}),
                               parameters=parameters, parameter_count=count)
    text = written.encode()
    handle = lib.visa_compile(name.encode(), text, len(text), ctypes.byref(options))
    if not handle:
        raise MemoryError
    return Kernel(handle, kernel, written, convert)


@dataclass(frozen=True)
class Fixed:
    """A text with the fixes of its diagnostics applied, how many of them were, and the diagnostics that are left."""

    source: str
    changes: int
    diagnostics: Tuple[Diagnostic, ...]


def fix(source: Union[str, os.PathLike[str]], *, dialect: Optional[str] = None, name: str = "<python>", **sizes: Any) -> Fixed:
    """As `visac --fix`: the changes that help lines ask for, again and again until none is left. `sizes` as compile takes them."""
    name, written = _text(source, name, "fix")
    parameters, count = _parameters(sizes)
    options = _library.Options(dialect=dialect.encode() if dialect else None, parameters=parameters, parameter_count=count)
    text, changes, size = written.encode(), ctypes.c_size_t(), ctypes.c_size_t()
    handle = lib.visa_fix(name.encode(), text, len(text), ctypes.byref(options), ctypes.byref(changes))
    if not handle:
        raise MemoryError
    try:
        return Fixed(ctypes.string_at(lib.visa_file_text(handle, 0, ctypes.byref(size)), size.value).decode(), changes.value, tuple(_diagnostics(handle)))
    finally:
        lib.visa_free(handle)


def tune(question: str, *, dtype: str = "bf16", out: Optional[str] = None, budget: float = 2.0, **sizes: int) -> Kernel:
    """The fastest kernel that a search finds: `.source` is its text. `budget`: work, in about seconds."""
    parameters, count = _parameters(sizes)
    options = _library.TuneOptions(question=question.encode(), sizes=parameters, size_count=count, dtype=dtype.encode(),
                                   out_dtype=out.encode() if out else None, work=int(min(budget * _library.TUNE_STEPS_OF_SECOND, 2**62)))
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    handle = lib.visa_tune(ctypes.byref(options), ctypes.byref(text), ctypes.byref(size))
    if not handle:
        raise MemoryError
    try:
        if not text:
            raise Error(lib.visa_diagnostics(handle, _library.DIAGNOSTICS["text"]).decode(), _diagnostics(handle))
        source = ctypes.string_at(text, size.value).decode()
    finally:
        lib.visa_free(handle)
    return compile(source, name="tuned.vm")
