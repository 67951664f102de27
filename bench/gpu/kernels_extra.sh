#!/usr/bin/env bash
# Compiles kernels_extra.cu and profiles every kernel once. Usage: kernels_extra.sh OUT_FOLDER [PYTHON]
# Leaves in OUT: extra.ncu-rep.gz, extra_details.csv, extra_raw.csv, extra_summary.csv, extra_text.txt, extra_basic.csv
# and, where PYTHON has torch, library_details.csv and library_raw.csv.
set -euo pipefail
out=${1:?usage: kernels_extra.sh OUT_FOLDER [PYTHON]}
python=${2:-python3}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
newest=$(ls -d /opt/nvidia/nsight-compute/* 2>/dev/null | tail -1 || true)
export PATH="$PATH:/usr/local/cuda/bin:$newest"
nvcc -O3 -std=c++17 -arch=sm_90 -lineinfo -o "$out/kernels_extra" "$here/kernels_extra.cu"
"$out/kernels_extra"
ncu --set full --clock-control none -f -o "$out/extra" "$out/kernels_extra"
ncu --import "$out/extra.ncu-rep" --csv --page details >"$out/extra_details.csv"
ncu --import "$out/extra.ncu-rep" --csv --page raw >"$out/extra_raw.csv"
ncu --import "$out/extra.ncu-rep" --csv --page details --print-summary per-kernel >"$out/extra_summary.csv"
ncu --import "$out/extra.ncu-rep" --page details >"$out/extra_text.txt"
# What a hurried user has: the basic set, straight to the terminal, with the tool's own noise before the header.
ncu --set basic --clock-control none --csv --page details "$out/kernels_extra" >"$out/extra_basic.csv" || true
if "$python" -c 'import torch' 2>/dev/null; then
    ncu --set full --clock-control none --profile-from-start off -f -o "$out/library" "$python" "$here/kernels_library.py" || true
    ncu --import "$out/library.ncu-rep" --csv --page details >"$out/library_details.csv" || true
    ncu --import "$out/library.ncu-rep" --csv --page raw >"$out/library_raw.csv" || true
    rm -f "$out/library.ncu-rep"
fi
gzip -f "$out/extra.ncu-rep"
rm -f "$out/kernels_extra"
ls -la "$out"
