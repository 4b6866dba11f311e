import sys, time
from tests.bench.cluster_sim import *
from tests.bench.cluster_methods import *
import numpy as np
def late_part(jobs): n=len(jobs); return lambda j: j.number>=.1*n
rows={}
for seed in range(1000, 1000+int(sys.argv[1])):
    jobs=cluster(seed)
    for name,m in (("fixed15",FixedMargin(.15)),("a.01",Learned(.01,None)),("a.05",Learned(.05,None)),("policy",Learned())):
        t=time.process_time(); r=play(jobs,m); t=time.process_time()-t
        f=figures(r,late_part(jobs))
        d=[j for j in jobs if j.framework==UPGRADED and j.number>=3000][40:120]
        ms=np.mean([j.need>r.bounds[j.number] for j in d])
        al=m.calibrator.alarms if hasattr(m,"calibrator") else 0
        rows.setdefault(name,[]).append((100*f.miss,100*f.oom_among_admitted,100*f.false_rejections,f.waste,100*ms,al,t))
for k,v in rows.items(): print("%-8s"%k, " ".join("%7.2f"%x for x in np.mean(v,0)), "| max", " ".join("%7.2f"%x for x in np.max(v,0)))
