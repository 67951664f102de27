"""Jobs of every trade, plain and under the recorder: nothing that matters may differ."""
