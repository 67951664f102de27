"""`stallwise try` inside the job: one thing changed at a time, blocks with and without it in turn, the difference measured."""
