/* Memory of the device and of its processes.
 *
 * As seven captures of real cards show (NVIDIA/k8s-test-infra, tests/e2e/go/assertions/nvidiasmi/testdata/hardware):
 * total = reserved + used + free in version 2, while `used` of version 1 includes what the driver reserves (nvml.h). */
#include "simulation.h"

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    ENTER(device);
    memory->total = device->total;
    memory->used = used_bytes(device) + device->reserved;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    ENTER(device);
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = device->total;
    memory->reserved = device->reserved;
    memory->used = used_bytes(device);
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
    ENTER(device);
    *memory = (nvmlBAR1Memory_t){ .bar1Total = device->bar1_total, .bar1Used = device->bar1_used,
                                  .bar1Free = device->bar1_total - device->bar1_used };
    return device->bar1_total ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static unsigned int late_processes(void) { /* they appear between the call that asks for the size and the one that fetches */
    if (!sim.late_times) return 0;
    if (sim.late_times > 0) sim.late_times--;
    return (unsigned int)sim.late_processes;
}
static nvmlReturn_t list_processes(nvmlDevice_t device, int kind, unsigned int *count, nvmlProcessInfo_t *out) {
    if (in_mig_mode(device) && !sim.privileged) return NVML_ERROR_NO_PERMISSION; /* of a whole MIG device only root sees the processes */
    unsigned int found = 0, capacity = *count;
    double now = scenario_time();
    for (int i = 0; i < sim.processes; i++) {
        const Process *p = &sim.process[i];
        if (!p->pid || !(p->kind & kind) || !runs_on(p, device)) continue;
        u64 bytes = value_at(&p->memory, now);
        if (bytes == NOTHING) continue;
        if (out && found < capacity)
            out[found] = (nvmlProcessInfo_t){ .pid = p->pid, .usedGpuMemory = bytes, /* NOT_AVAILABLE is NVML_VALUE_NOT_AVAILABLE */
                                              .gpuInstanceId = (unsigned int)p->gi, .computeInstanceId = (unsigned int)p->ci };
        found++;
    }
    if (out && found) found += late_processes();
    *count = found;
    return found > capacity ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* Versions 2 and 3 of the lists have the same rows (nvml.h: nvmlProcessInfo_v2_t, nvmlProcessInfo_t). */
#define PROCESS_LIST(name, kind)                                                                                     \
    API nvmlReturn_t name(nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_t *infos) {                  \
        ENTER(device);                                                                                               \
        return list_processes(device, kind, infoCount, infos);                                                       \
    }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS)
