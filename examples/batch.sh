#!/bin/sh
#SBATCH --job-name=tumble
#SBATCH --time=02:00:00
#SBATCH --signal=USR1@300
#
# A scene that takes longer than one job of a batch system (here Slurm): each job goes on where the last one ended and,
# while the run is not finished, submits the next. Change the three names and submit it with `sbatch batch.sh`.
#
# --wall-time ends the run in time, with a checkpoint. Should a step take longer than thought, the system sends SIGUSR1
# (a checkpoint, and the run goes on) five minutes before the end, and then SIGTERM (last frame, checkpoint, exit code 143).

scene=scene.toml
out=run.h5
script=batch.sh

if [ -e "$out" ]; then resume=--resume; else resume=; fi
tumble run "$scene" --out "$out" $resume --wall-time 1:50:00 || exit $?
tumble info "$out" --json | grep -q '"finished": true' || sbatch "$script"
