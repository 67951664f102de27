"""Formats that one program writes for programs: traces, reports, snapshots, records. Text for people is read by shapes."""
