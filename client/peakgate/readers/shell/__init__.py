"""Commands and scripts as a shell reads them, without running anything.

`lexer` makes tokens of text, `parser` a tree of tokens, `expand` (with `parameter`, `arithmetic`, `substitute`) words of tokens, `walk`
goes through the tree in the order of a run and keeps the commands that may train; `script` is the way in.

Understood: quotes, escapes, continued lines, comments; assignments, arrays, `+=`, export, local, declare; `$X`, `${X:-…}`, `${X:=…}`,
`${X:+…}`, `${X#…}`, `${X%…}`, `${X/…/…}`, `${X:o:n}`, `${#X}`, `${!X}`, `${X^^}`; arithmetic on known numbers; arguments of the script and
of functions, `shift`, `set --`; `&& || ; & |`, groups, subshells, functions; `if`, `case` and `while` (decided where the test is known,
else each branch is a candidate), `for` with its first value; `source`, `eval`, `cd`; files that are written with a here-document or `echo`;
Slurm's variables from the #SBATCH lines.
Not understood: what a command prints (but for paths, sums, and counts of GPUs and nodes), globs, brace lists, coprocesses, traps. What is
not known stays in its word as it was written (`$NAME`), so that a setting that needs it is a warning of that setting.
An `exit 1` in a branch is passed over, as is what a variable that nobody sets would stop: that the job runs is given.
"""
