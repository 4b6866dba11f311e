"""What starts a training program, peeled off from outside in: each launcher says how many GPUs, nodes and processes there are.

| understood | what it says |
|---|---|
| sbatch, salloc, srun, #SBATCH lines | nodes, GPUs a node and their type, tasks, host memory; Slurm's variables |
| mpirun, mpiexec, horovodrun | processes, `-x NAME=value` |
| torchrun, python -m torch.distributed.run or launch, tune run, composer, colossalai run | nodes × processes a node |
| accelerate launch | processes in all, machines, GPU ids, those of its config file; the rest stays in `launcher_flags` |
| deepspeed | GPUs, nodes, `--include`, host file |
| ray job submit, docker, apptainer, enroot, uv, poetry, conda run, env, numactl, nsys, timeout | where the command begins, variables |
| bash, sh with a script or `-c` | the commands in it |
| python | the script, or the module behind `-m` |

Precedence: what is nearer to the program wins over what is outside of it, and a difference that cannot be meant (more processes than GPUs,
other nodes than were asked for) is a warning that names both places; `#PEAKGATE` lines win over everything, readers included. `litgpt`,
`axolotl`, `llamafactory-cli`, `swift`, `trl` and the like are programs, not launchers: they stay the first word.
Not understood: host lists of MPI that a run makes, hydra launchers, programs that start a scheduler's jobs themselves.
"""
