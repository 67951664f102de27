from stallwise.evidence.quantity import Quantity

EXIT_CODE: Quantity
SIGNAL: Quantity
LAST_WORDS: Quantity
KILLED_FOR_MEMORY: Quantity
FAILED_WRITE: Quantity
RECORDED_STEPS: Quantity
COMMAND: Quantity
SCRIPT: Quantity
PROCESSES: Quantity
RECORDER_NOTE: Quantity
PROFILER_START: Quantity
PROFILER_STOP: Quantity
UNTRACED_STEP: Quantity
STEP_BOUNDARY: Quantity
RAISED: Quantity
RAISED_AT: Quantity
