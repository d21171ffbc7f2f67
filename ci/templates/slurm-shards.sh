#!/usr/bin/env bash
# A suite over several nodes as one Slurm job: a task a device, each measures its shard, and one verdict of all.
# sbatch ci/templates/slurm-shards.sh, in a folder that all nodes see. SQLite does not work on a network disk:
# name a database of PostgreSQL as [tool.perfgate] history, or a file on the node's own disk.
#SBATCH --job-name=perfgate
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8 # a task's share of the node, always the same: it is part of a measurement's identity
#SBATCH --exclusive
#SBATCH --time=00:30:00
set -euo pipefail
export CI=1
# module load, or: source path/to/environment/bin/activate
cd "${SLURM_SUBMIT_DIR:-.}"
export RECORDS="shards/${SLURM_JOB_ID:-0}" # of this job alone: a record of an earlier one would stand for a lost shard
rm -f merged.json report.html
# --perfgate-shard auto reads SLURM_PROCID. A shard whose gate fails ends no other one; what each came to is in its record.
measure() { pytest tests/bench --perfgate=full --perfgate-shard auto --perfgate-json "$RECORDS/$SLURM_PROCID.json"; }
export -f measure
srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-8}" --kill-on-bad-exit=0 bash -c measure || true
# Exits as the gate did. What a lost task should have measured is NOT MEASURED and fails.
status=0
perfgate merge "$RECORDS" --expect "$SLURM_NTASKS" --to merged.json || status=$?
if [ -e merged.json ]; then
  perfgate report merged.json --html report.html || echo "no page was written"
  # As in slurm.sh: GITHUB_TOKEN=... PERFGATE_COMMENT=github:OWNER/NAME#12 sbatch ci/templates/slurm-shards.sh
  if [ -n "${PERFGATE_COMMENT:-}" ]; then perfgate report merged.json --to "$PERFGATE_COMMENT" || echo "no comment was written"; fi
fi
exit "$status"
