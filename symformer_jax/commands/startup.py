"""What a command settles before its imports: --help, no traceback of a library for Ctrl-C, no banners of theirs.

Imported before everything else by every command, and light: the imports that follow take seconds.
"""

import contextlib
import gc
import importlib
import os
import resource
import signal
import sys
import types
from typing import Any, NoReturn
import warnings

UNUSABLE, STOPPED = 2, 75  # as those of runner, whose imports would be some of those that this has to come before

HELP = {"--help", "-help", "-h", "--helpshort", "--helpfull"}
VERSION = {"--version", "-version"}

# The end of the year 9999, in seconds since 1970: beyond it there are no dates.
_END_OF_TIME_S = 253_402_300_800


def prepare(doc: str | None, flags_module: str, *, extra: str | None = None, address_space: int = 0) -> None:
  """Prints the help or version that was asked for and exits, or readies the process for imports that take seconds.

  Until `end_imports`, signals end the process at once; libraries keep to themselves what no user can mend.
  Args:
    doc: the command's docstring.
    flags_module: dotted name of the module that defines its flags, in `FLAGS`; it imports next to nothing.
    extra: of the package, without which the command's imports fail; that is said in one line.
    address_space: bytes that the command needs of it. Libraries that get none end the process by a signal.
  """
  # XLA logs slow compilations as errors; what fails is an exception. Read when JAX is loaded.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  # Pandas' advice on other packages' versions, while it is imported.
  warnings.filterwarnings("ignore", module=r"pandas(\.|$)")
  # Of a save that failed in another thread.
  warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
  sys.excepthook = _say_what_is_scarce
  sys.unraisablehook = _drop_leftovers
  for number in stop_signals():
    signal.signal(number, _stop)
  # Before other libraries, some of which are not everybody's.
  flag_values = importlib.import_module(flags_module).FLAGS
  from symformer_jax.commands import extras, runner

  if (HELP | VERSION) & set(sys.argv[1:]):  # by the runner, which knows what may go wrong with standard output
    runner.run(lambda argv: None, flag_values=flag_values, doc=doc, flags_module=flags_module)
  if extra and extras.find_missing(extra):
    runner.run(lambda argv: extras.require(extra), argv=sys.argv[:1])
  allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
  if allowed != resource.RLIM_INFINITY and allowed < address_space:
    runner.run(lambda argv: _say_what_is_allowed(allowed, address_space), argv=sys.argv[:1])
  # NumPy reads it while it is imported, Matplotlib for the dates of its files.
  epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
  if not (epoch.isdecimal() and len(epoch) < 20 and int(epoch) < _END_OF_TIME_S):
    runner.run(lambda argv: _refuse_epoch(epoch), argv=sys.argv[:1])
  # Of what is imported nothing is garbage, and looking for it takes an eighth of the time.
  gc.disable()


def _say_what_is_allowed(allowed: int, needed: int) -> int:
  from symformer_jax.commands import runner

  runner.say(f"error: not enough memory: {allowed / 1e9:.1f} GB of address space are allowed (ulimit -v), expected at "
             f"least {needed / 1e9:.1f} GB")
  return runner.SOME_FAILED


def _refuse_epoch(epoch: str) -> NoReturn:
  from symformer_jax.errors import InputError

  raise InputError(f"SOURCE_DATE_EPOCH={epoch}: expected seconds since 1970, a whole number")


def stop_signals() -> list[signal.Signals]:
  """Signals that wish a command to end: Ctrl-C, that of a scheduler, and that of a terminal which is closed, where the
  system has it. Those that are ignored stay so: nohup keeps the last away, a script the first from what it begins with
  `&`.
  """
  hang_up: signal.Signals | None = getattr(signal, "SIGHUP", None)
  known = [signal.SIGINT, signal.SIGTERM, *([] if hang_up is None else [hang_up])]
  return [number for number in known if signal.getsignal(number) != signal.SIG_IGN]


def end_imports() -> None:
  """Ctrl-C raises KeyboardInterrupt again, and garbage is collected; nothing changes where that is so already."""
  if not gc.isenabled():
    gc.freeze()
    gc.enable()
  if signal.getsignal(signal.SIGINT) is _stop:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _say_what_is_scarce(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
  """Memory that does not suffice for the imports, or a variable that JAX cannot read, before there is a runner to say
  it; other errors as usual.
  """
  if junk := _describe_variable(error):
    with contextlib.suppress(OSError):
      os.write(2, f"error: {junk}\n".encode(errors="backslashreplace"))
    os._exit(UNUSABLE)
  if not _is_of_memory(error):
    sys.__excepthook__(kind, error, trace)
    return
  with contextlib.suppress(OSError):
    os.write(2, b"error: not enough memory\n")


def _describe_variable(error: BaseException) -> str:
  """Of an error of JAX about a variable of the environment, which it reads while it is imported; empty for others."""
  trace = error.__traceback__
  while trace is not None and trace.tb_next is not None:
    trace = trace.tb_next
  where = "" if trace is None else trace.tb_frame.f_globals.get("__name__")
  if where != "jax._src.config" or not isinstance(error, ValueError):
    return ""
  quoted = str(error).replace('"', "'")
  named = (f"{name}={value}: {error}" for name, value in os.environ.items()
           if name.startswith("JAX_") and repr(value) in quoted)
  return " ".join(next(named, "").split())


def _drop_leftovers(fault: Any) -> None:
  """What comes too late to be raised, usually of a destructor, but for what follows a checkpoint that failed: its loop
  of events is thrown away unfinished, and threads have answers for it that nobody waits for. The failure itself is
  raised.
  """
  is_of_loop = getattr(fault.object, "__qualname__", "") == "BaseEventLoop.__del__"
  if not is_of_loop and str(fault.exc_value) != "Event loop is closed":
    sys.__unraisablehook__(fault)


def _is_of_memory(error: BaseException | None) -> bool:
  """Whether an error, or one that it came of, is that memory does not suffice, also for a library that is loaded."""
  while error is not None:
    if isinstance(error, MemoryError) or isinstance(error, ImportError) and "failed to map segment" in str(error):
      return True
    error = error.__cause__ or error.__context__
  return False


def _stop(*_: object) -> NoReturn:
  # Not by an exception, which the importing library may take for its own; nothing is open yet.
  with contextlib.suppress(OSError):  # of a standard error that is closed
    os.write(2, b"stopped\n")
  os._exit(STOPPED)
