import sys
from tests.bench.cluster_bars import *
seeds=range(1000,1000+int(sys.argv[1]))
import numpy as np
def line(n, fs): print("%-28s miss %.2f max %.2f | oom %.2f max %.2f | FR %.2f max %.2f | waste %.2f"%(n,100*np.mean([f.miss for f in fs]),100*max(f.miss for f in fs),100*np.mean([f.oom_among_admitted for f in fs]),100*max(f.oom_among_admitted for f in fs),100*np.mean([f.false_rejections for f in fs]),100*max(f.false_rejections for f in fs),np.mean([f.waste for f in fs])),flush=True)
def run(name, mk, prep=lambda s: cluster(s), **k):
    fs=[];ms=[]
    for s in seeds:
        m=mk(); r=play(prep(s),m,**k); fs.append(figures(r,after_the_start(r.jobs))); ms.append(m)
    line(name,fs); return ms
run("fixed", lambda: FixedMargin(.15))
run("strict", strict); run("policy", policy)
ms=run("nodrift strict", strict, lambda s: cluster(s,World(drift=False))); print("alarms", [m.calibrator.alarms for m in ms])
run("poison3", strict, lambda s: cluster(s,World(poison=.03)))
run("attack", strict, lambda s: attacked(cluster(s),s,factor=1.4))
run("prior+6", lambda: Learned(.01,None,prior_offset=6.0), tries=False)
run("greedy all", strict, reporter=greedy(1.0)); run("greedy none", strict, reporter=greedy(0.0))
for sh in SHAPES: run(sh, strict, lambda s, sh=sh: cluster(s,World(shape=sh)))
for sh in SHAPES: run("fixed "+sh, lambda: FixedMargin(.15), lambda s, sh=sh: cluster(s,World(shape=sh)))
