"""libvisa.so and the declarations of visa.h and visa_run.h that this package uses.

The library is where VISA_LIBRARY says, else next to this file (a wheel), else where the system has it. test/python/python.py holds the
structures to the headers."""
import ctypes
import os
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_uint, c_void_p

PORT_RANK_MAX = 64
EMIT = {"bin": 0, "tables": 1, "json": 2, "ir": 3, "ast": 4, "memory": 7, "memory-json": 8, "memory-svg": 9, "order": 10}
DIAGNOSTICS = {"text": 0, "json": 2}
CHECK_NUMBERS, CHECK_ALGEBRA = 1, 2
TUNE_STEPS_OF_SECOND = 4000000


class Parameter(Structure):
    _fields_ = [("name", c_char_p), ("values", POINTER(c_int64)), ("count", c_size_t)]


class Options(Structure):
    _fields_ = [("target", c_char_p), ("dialect", c_char_p), ("warnings_are_errors", c_bool), ("warnings", POINTER(c_char_p)),
                ("print_after", c_char_p), ("time_report", c_bool), ("kernel", c_char_p), ("places_all", c_bool), ("order", c_int),
                ("step_passes", POINTER(c_char_p)), ("step_pass_count", c_size_t), ("step_sizes", c_char_p),
                ("parameters", POINTER(Parameter)), ("parameter_count", c_size_t), ("parse_only", c_bool), ("editor", c_bool),
                ("open_text", c_void_p), ("user", c_void_p), ("modules", c_bool), ("error_limit", c_size_t), ("binary_only", c_bool),
                ("max_steps", c_uint64), ("max_bytes", c_uint64), ("max_milliseconds", c_uint64), ("book", c_bool),
                ("step_onchip_bytes", c_int64), ("step_compute_tile", c_int64), ("jobs", c_size_t), ("again", c_bool)]


class TuneOptions(Structure):
    _fields_ = [("question", c_char_p), ("sizes", POINTER(Parameter)), ("size_count", c_size_t), ("dtype", c_char_p), ("out_dtype", c_char_p),
                ("work", c_uint64), ("progress", c_void_p), ("user", c_void_p), ("cache", c_char_p), ("cache_build", c_char_p),
                ("part", c_int64), ("parts", c_int64), ("gather", c_void_p), ("share", c_void_p), ("timing", c_char_p),
                ("clusters", c_int64), ("slices", c_int64), ("chips", c_int64), ("free_tensors", c_char_p)]


class Port(Structure):
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("element_bits", c_int), ("is_output", c_bool), ("rank", c_size_t),
                ("shape", c_int64 * PORT_RANK_MAX), ("axis_names", c_char_p * PORT_RANK_MAX)]


class RunOptions(Structure):
    _fields_ = [("threads", c_uint), ("max_cycles", c_uint64), ("seed", c_uint64)]


STRUCTURES = {"visa_parameter": Parameter, "visa_options": Options, "visa_tune_options": TuneOptions, "visa_port": Port,
              "visa_run_options": RunOptions}

FUNCTIONS = {
    "visa_compile": (c_void_p, [c_char_p, c_char_p, c_size_t, POINTER(Options)]),
    "visa_free": (None, [c_void_p]),
    "visa_error_count": (c_size_t, [c_void_p]),
    "visa_diagnostics": (c_char_p, [c_void_p, c_int]),
    "visa_emit": (c_bool, [c_void_p, c_int, POINTER(c_void_p), POINTER(c_size_t)]),
    "visa_pictures": (c_bool, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "visa_fix": (c_void_p, [c_char_p, c_char_p, c_size_t, POINTER(Options), POINTER(c_size_t)]),
    "visa_file_text": (c_void_p, [c_void_p, c_int, POINTER(c_size_t)]),
    "visa_tune": (c_void_p, [POINTER(TuneOptions), POINTER(c_void_p), POINTER(c_size_t)]),
    "visa_version": (c_char_p, []),
    "visa_kernel_open": (c_void_p, [c_char_p, c_size_t, c_char_p]),
    "visa_kernel_close": (None, [c_void_p]),
    "visa_kernel_error": (c_char_p, [c_void_p]),
    "visa_kernel_name": (c_char_p, [c_void_p]),
    "visa_port_at": (c_bool, [c_void_p, c_size_t, POINTER(Port)]),
    "visa_port_data": (c_void_p, [c_void_p, c_size_t, POINTER(c_size_t)]),
    "visa_port_round": (c_bool, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "visa_kernel_run": (c_bool, [c_void_p, POINTER(RunOptions)]),
    "visa_kernel_check": (c_bool, [c_void_p, POINTER(RunOptions), c_int, POINTER(c_bool), POINTER(c_char_p)]),
    "visa_kernel_report": (c_char_p, [c_void_p, c_char_p, c_char_p]),
    "visa_kernel_cycles": (c_int64, [c_void_p, c_char_p]),
}


def _load() -> ctypes.CDLL:
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libvisa.so.0")
    named = os.environ.get("VISA_LIBRARY")
    try:
        library = ctypes.CDLL(named or (here if os.path.exists(here) else "libvisa.so.0"))
    except OSError as error:
        raise ImportError(f"libvisa.so.0 cannot be loaded: {error}; install the package libvisa0, or name the file in VISA_LIBRARY") from error
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()
