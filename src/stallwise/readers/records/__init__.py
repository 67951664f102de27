"""What several readers yield and the doctor merges: engine samples, rank records, trace splits, plain rows."""
