"""What became of a job that `stallwise run` or `record` started, and what its recorder could see."""

from __future__ import annotations

from stallwise.evidence.capture import Capture
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

BUNDLE = Capture("a recorded run", "stallwise run -- python train.py", "one run")

EXIT_CODE = Quantity("job.exit_code", Unit.COUNT, "exit code of the job, as a shell gives it", BUNDLE)
SIGNAL = Quantity("job.signal", Unit.TEXT, "the signal that killed the job", BUNDLE)
LAST_WORDS = Quantity("job.last_words", Unit.TEXT, "the last line of the job's output that says why it ended", BUNDLE)
KILLED_FOR_MEMORY = Quantity(
    "job.killed_for_memory", Unit.TEXT, "what the kernel says of killing the job for memory", BUNDLE
)
FAILED_WRITE = Quantity("job.failed_write", Unit.TEXT, "what the job says of a file that it could not write", BUNDLE)
RECORDED_STEPS = Quantity("job.recorded_steps", Unit.COUNT, "steps that the recorder saw end in this process", BUNDLE)
COMMAND = Quantity("job.command", Unit.TEXT, "the command that started the job, as it was typed", BUNDLE)
SCRIPT = Quantity("job.script", Unit.TEXT, "the program that the job runs", BUNDLE)
PROCESSES = Quantity("job.processes", Unit.COUNT, "Python processes of the job that the recorder reached", BUNDLE)
RECORDER_NOTE = Quantity("job.recorder_note", Unit.TEXT, "what could not be recorded, and why", BUNDLE)
PROFILER_START = Quantity("job.profiler_start_s", Unit.SECOND, "starting the profiler took so long", BUNDLE)
PROFILER_STOP = Quantity("job.profiler_stop_s", Unit.SECOND, "stopping it and writing the trace took so long", BUNDLE)
UNTRACED_STEP = Quantity(
    "job.untraced_step", Unit.SECOND, "wall time of a step of the same run that nothing traced", BUNDLE
)
STEP_BOUNDARY = Quantity("job.step_border", Unit.TEXT, "what showed that a step had ended", BUNDLE)

RAISED = Quantity("job.raised", Unit.TEXT, "an exception that a traceback ends in, as the program prints it", BUNDLE)
RAISED_AT = Quantity("job.raised_at", Unit.TEXT, "the innermost line of the user's own code in a traceback", BUNDLE)
