import sys
from tests.bench.cluster_sim import *
from tests.bench.cluster_methods import *
import numpy as np
acc={}
for seed in range(1000,1000+int(sys.argv[1])):
    jobs=cluster(seed); n=len(jobs)
    m=Learned(.01,None); r=play(jobs,m)
    late={g for g in range(30) if not any(j.group==g for j in jobs[:3600])}
    seg={"boot":lambda j:j.number<600,"steady":lambda j:600<=j.number<3000,"driftfw":lambda j:3000<=j.number<3600 and j.framework==UPGRADED,"otherfw":lambda j:3000<=j.number<3600 and j.framework!=UPGRADED,"late":lambda j:j.number>=3600 and j.group not in late,"coldgroups":lambda j:j.group in late,"down":lambda j:j.number>=4500 and j.framework==SLIMMED}
    for k,f in seg.items():
        x=figures(r,f); acc.setdefault(k,[]).append((100*x.miss,100*x.false_rejections,x.waste,x.jobs))
    qs=[m.calibrator._curve.quantile(.01)]
    acc.setdefault("Q",[]).append((qs[0],m.calibrator._curve.quantile(.05),0,0))
for k,v in acc.items(): print("%-10s"%k," ".join("%8.2f"%x for x in np.mean(v,0)))
