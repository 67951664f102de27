#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=16
#SBATCH --ntasks=64
#SBATCH -p sequana_cpu_dev
#SBATCH -J qe_test
#SBATCH --time=744:00:00
#SBATCH --mem=64Gb
module load quantum-espresso/7.3_+cuda-11.1+intel_2020_sequana
srun -n $SLURM_NTASKS $EXEC -in scf.in
