"""What `ranks_job.py` plants, for the job and for its test: the test is collected without PyTorch."""

STEPS, MICROBATCHES, WIDTH = 12, 6, 16
TOKEN_S = 0.010  # of a forward pass of one stage and one microbatch of length 1
SLOW = 1.8
LONG = (0.4, 0.6, 1.9, 0.7, 0.5, 1.9)  # lengths of microbatches, turned by one each step; the mean is 1
