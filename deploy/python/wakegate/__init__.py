"""Workers for WakeGate: silent pushes, background tasks and background transfers on Linux."""

from .errors import Release, TaskError, TransferError, WakeGateError
from .scheduler import Scheduler, Submission
from .wakes import Progress, Push, Result, Resumption, Task
from .transfers import BackgroundSession
from .worker import Worker

__version__ = "0.1.0"

__all__ = ["BackgroundSession", "Progress", "Push", "Release", "Result", "Resumption", "Scheduler", "Submission"]
__all__ += ["Task", "TaskError", "TransferError", "WakeGateError", "Worker"]
