"""Adapters for training frameworks. Stages are found automatically under all of them; these add marks, gauges and borders."""
