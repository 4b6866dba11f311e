/* Accounting: the driver keeps the exact peak of a process, also after its end.
 *
 * As nvml.h says: only root switches it, a GPU in MIG mode has it off, switching it off forgets everything. As NVIDIA's open kernel
 * modules do it (src/nvidia/src/kernel/gpu/accounting/gpu_acct.c): times are the wall clock's, utilization is a sum of one sample a
 * second, and when a pid is used again the entry of the process that ended is found first, until the new one ends too. That only
 * processes which begin while it is on are accounted is our reading of that file. */
#include "simulation.h"
#include <string.h>

enum { BUFFER = 4000 }; /* of all seven captures that nvml_memory.c names */

static u64 mode_now(nvmlDevice_t device) { return device->parent || in_mig_mode(device) ? 0 : value_at(&device->accounting, scenario_time()); }
static double on_since(nvmlDevice_t device) {
    double since = 0;
    for (int i = 0; i < device->accounting.steps && device->accounting.step[i].at <= scenario_time(); i++)
        if (device->accounting.step[i].value == 1 && (!i || device->accounting.step[i - 1].value != 1)) since = device->accounting.step[i].at;
    return since;
}
static int is_kept(nvmlDevice_t device, const Process *p) {
    double now = scenario_time(), end = end_of(&p->memory);
    if (!p->pid || !runs_on(p, device) || start_of(&p->memory) > now || start_of(&p->memory) < on_since(device)) return 0;
    return end > now || end > device->accounting_cleared_at;
}
static const Process *accounted(nvmlDevice_t device, unsigned int pid) { /* the one that ended last, else the one that runs */
    const Process *found = NULL;
    for (int i = 0; i < sim.processes; i++) {
        const Process *p = &sim.process[i];
        if (p->pid != pid || !is_kept(device, p)) continue;
        double end = end_of(&p->memory), best = found ? end_of(&found->memory) : -1;
        int ended = end <= scenario_time(), best_ended = found && best <= scenario_time();
        if (!found || ended > best_ended || (ended == best_ended && ended && end >= best)) found = p;
    }
    return found;
}

static u64 peak_bytes(const Process *p) { /* NOT_AVAILABLE when no figure ever was */
    u64 peak = NOT_AVAILABLE;
    for (int i = 0; i < p->memory.steps && p->memory.step[i].at <= scenario_time(); i++) {
        u64 bytes = p->memory.step[i].value;
        if (bytes < NOTHING && (peak == NOT_AVAILABLE || bytes > peak)) peak = bytes;
    }
    return peak;
}
static double seconds_so_far(const Process *p) {
    double now = scenario_time(), end = end_of(&p->memory);
    return (end < now ? end : now) - start_of(&p->memory);
}
static u64 sum_of_samples(const Series *percent, const Process *p) { /* in hundredths of a percent; NOT_AVAILABLE without a figure */
    u64 sum = 0;
    if (!percent->steps) return NOT_AVAILABLE;
    for (long second = 0; second < (long)seconds_so_far(p); second++) {
        u64 value = value_at(percent, start_of(&p->memory) + (double)second);
        sum += value < NOTHING ? value * 100 : 0;
    }
    return sum;
}
static nvmlReturn_t stats_of(nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_v2_t *stats) {
    if (mode_now(device) != 1) return NVML_ERROR_NOT_SUPPORTED;
    const Process *p = accounted(device, pid);
    if (!p) return NVML_ERROR_NOT_FOUND;
    int running = end_of(&p->memory) > scenario_time();
    u64 sm = sum_of_samples(&p->sm_utilization, p), memory = sum_of_samples(&p->memory_utilization, p);
    unsigned int samples = (unsigned int)seconds_so_far(p), divisor = samples ? samples * 100 : 1;
    *stats = (nvmlAccountingStats_v2_t){
        .pid = pid, .isRunning = (unsigned int)running, .maxMemoryUsage = peak_bytes(p), .sampleCount = samples,
        .gpuUtilization = sm == NOT_AVAILABLE ? (unsigned int)NVML_VALUE_NOT_AVAILABLE : (unsigned int)(sm / divisor),
        .memoryUtilization = memory == NOT_AVAILABLE ? (unsigned int)NVML_VALUE_NOT_AVAILABLE : (unsigned int)(memory / divisor),
        .sumGpuUtil = sm == NOT_AVAILABLE ? 0 : sm, .sumFbUtil = memory == NOT_AVAILABLE ? 0 : memory,
        .time = running ? 0 : (u64)(seconds_so_far(p) * 1e3), .startTime = wall_microseconds(start_of(&p->memory)),
    };
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
    ENTER(device);
    u64 now = mode_now(device);
    *mode = now == 1 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return now == NOT_AVAILABLE ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode) {
    ENTER(device);
    u64 now = mode_now(device), wanted = mode == NVML_FEATURE_ENABLED;
    if (device->parent || in_mig_mode(device) || now == NOT_AVAILABLE) return NVML_ERROR_NOT_SUPPORTED;
    if (!sim.privileged) return NVML_ERROR_NO_PERMISSION;
    if (now != wanted) device->accounting = (Series){ .steps = 1, .step = {{ .at = scenario_time(), .value = wanted }} };
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device) {
    ENTER(device);
    if (mode_now(device) != 1) return NVML_ERROR_NOT_SUPPORTED;
    if (!sim.privileged) return NVML_ERROR_NO_PERMISSION;
    device->accounting_cleared_at = scenario_time();
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *size) {
    ENTER(device);
    *size = BUFFER;
    return mode_now(device) == 1 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
API nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count, unsigned int *pids) {
    ENTER(device);
    if (mode_now(device) != 1) return NVML_ERROR_NOT_SUPPORTED;
    unsigned int found = 0, capacity = *count;
    for (int i = 0; i < sim.processes; i++) {
        const Process *p = &sim.process[i];
        if (!p->pid || accounted(device, p->pid) != p) continue;
        if (pids && found < capacity) pids[found] = p->pid;
        found++;
    }
    *count = found;
    return found > capacity ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t *stats) {
    ENTER(device);
    return stats_of(device, stats->pid, stats);
}
API nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats) {
    nvmlAccountingStats_v2_t all;
    ENTER(device);
    nvmlReturn_t result = stats_of(device, pid, &all);
    if (result != NVML_SUCCESS) return result;
    *stats = (nvmlAccountingStats_t){ .gpuUtilization = all.gpuUtilization, .memoryUtilization = all.memoryUtilization,
                                      .maxMemoryUsage = all.maxMemoryUsage, .time = all.time, .startTime = all.startTime,
                                      .isRunning = all.isRunning };
    return NVML_SUCCESS;
}
