#!/usr/bin/env bash
# A gate as a Slurm job: one node, one device, nobody beside it. sbatch ci/templates/slurm.sh
#SBATCH --job-name=perfgate
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --exclusive
#SBATCH --time=00:30:00
set -euo pipefail
export CI=1
cd "${SLURM_SUBMIT_DIR:-.}"
status=0
srun pytest tests/bench --perfgate=full --junitxml=junit.xml || status=$?
perfgate report --html report.html --to json:record.json
exit "$status"
