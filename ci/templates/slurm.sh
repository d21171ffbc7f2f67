#!/usr/bin/env bash
# A gate as a Slurm job: one node, one device, nobody beside it. sbatch ci/templates/slurm.sh
#SBATCH --job-name=perfgate
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --exclusive
#SBATCH --time=00:30:00
set -euo pipefail
export CI=1
# module load, or: source path/to/environment/bin/activate
cd "${SLURM_SUBMIT_DIR:-.}"
rm -f .perfgate/records/last record.json report.html # what an earlier job left here is not this one's
status=0
# A baseline whose test is gone fails the run only beneath a folder that is named here.
# Every core of the node, as a plain run has them: the cores that a process may use are part of a measurement's identity.
srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_ON_NODE:-1}" --cpu-bind=none pytest tests/bench --perfgate=full --junitxml=junit.xml || status=$?
perfgate report --html report.html --to json:record.json || { code=$?; [ "$status" -ne 0 ] || status=$code; }
# The comment of a change, as the other templates leave it: GITHUB_TOKEN=... PERFGATE_COMMENT=github:OWNER/NAME#12 sbatch
# ci/templates/slurm.sh, or GITLAB_TOKEN and gitlab:GROUP/NAME!12. A job of Slurm does not know its change by itself.
if [ -n "${PERFGATE_COMMENT:-}" ]; then perfgate report record.json --to "$PERFGATE_COMMENT" || echo "no comment was written"; fi
exit "$status"
