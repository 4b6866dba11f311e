/* What is true at this moment of the scenario. */
#include "simulation.h"

u64 value_at(const Series *series, double time) {
    int i = -1;
    while (i + 1 < series->steps && series->step[i + 1].at <= time) i++;
    return i < 0 ? NOTHING : series->step[i].value;
}
double start_of(const Series *series) { return series->step[0].at; }
double end_of(const Series *series) { /* infinite for one that does not end */
    const Step *last = &series->step[series->steps - 1];
    return last->value == NOTHING ? last->at : 1e18;
}

const Driver *driver_now(void) {
    const Driver *driver = &sim.driver[0];
    double now = sim.drivers > 1 ? scenario_time() : 0;
    for (int i = 1; i < sim.drivers; i++)
        if (sim.driver[i].from <= now) driver = &sim.driver[i];
    return driver;
}

int exists(const struct nvmlDevice_st *device) {
    if (device < sim.device || device >= sim.device + sim.devices) return 0;
    double now = device->parent ? scenario_time() : 0;
    return !device->parent || (device->from <= now && now < device->until);
}
int in_mig_mode(const struct nvmlDevice_st *device) { return !device->parent && device->mig == NVML_DEVICE_MIG_ENABLE; }

int runs_on(const Process *process, const struct nvmlDevice_st *device) {
    if (process->index != device->index) return 0;
    return !device->parent || (process->gi == device->gi && process->ci == device->ci);
}

u64 used_bytes(const struct nvmlDevice_st *device) {
    u64 sum = 0, room = device->total - device->reserved;
    double now = scenario_time();
    for (int i = 0; i < sim.processes; i++) {
        if (!runs_on(&sim.process[i], device)) continue;
        u64 bytes = value_at(&sim.process[i].memory, now);
        if (bytes != NOTHING && bytes != NOT_AVAILABLE) sum += bytes;
    }
    return sum < room ? sum : room;
}
