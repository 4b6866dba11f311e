/* A scripted libnvidia-ml.so.1: answers NVML calls from a scenario (scenario.c), so that the real pynvml runs without a GPU.
 *
 * Semantics follow nvml.h and captures of real cards: total = reserved + used + free in v2, used includes reserved in v1.
 * Compile with -DOFFICIAL_HEADER to check every prototype and structure against NVIDIA's own nvml.h. */
#define _GNU_SOURCE
#include "simulation.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef OFFICIAL_HEADER
#include <nvml.h>
#else
typedef unsigned int u32;
typedef int nvmlReturn_t;
typedef int nvmlEnableState_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct { u64 total, free, used; } nvmlMemory_t;
typedef struct { u32 version; u64 total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { u32 pid; u64 usedGpuMemory; u32 gpuInstanceId, computeInstanceId; } nvmlProcessInfo_t;
typedef struct { u32 gpuUtilization, memoryUtilization; u64 maxMemoryUsage, time, startTime; u32 isRunning, reserved[5]; } nvmlAccountingStats_t;
typedef struct { nvmlDevice_t device; u64 eventType, eventData; u32 gpuInstanceId, computeInstanceId; } nvmlEventData_t;
#endif

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, VERSION_MISMATCH = 25 };
enum { MIG_SLOTS = 7, ACCOUNTING_BUFFER = 4000 };

/* ---- what is true now ---- */
static nvmlReturn_t scripted_result(const char *function, nvmlDevice_t d) {
    sim.calls++;
    if (sim.latency_us) usleep((useconds_t)sim.latency_us);
    double now = scenario_time();
    for (int i = 0; i < sim.errors; i++) {
        const ErrorWindow *e = &sim.error[i];
        int function_matches = e->function[0] == '*' || !strcmp(e->function, function);
        int device_matches = e->index < 0 || (d && d->index == e->index);
        if (function_matches && device_matches && now >= e->from && now < e->until) return (nvmlReturn_t)e->code;
    }
    return (nvmlReturn_t)(sim.initialized || !strncmp(function, "nvmlInit", 8) ? OK : UNINITIALIZED);
}
#define RETURN_SCRIPTED(device) do { nvmlReturn_t r_ = scripted_result(__func__, device); if (r_ != (nvmlReturn_t)OK) return r_; } while (0)
#define RESULT(code) ((nvmlReturn_t)(code))

static int alive(const Process *p, double now, u64 *bytes) {
    int i = -1;
    while (i + 1 < p->steps && p->step[i + 1].at <= now) i++;
    if (i < 0 || p->step[i].end) return 0;
    *bytes = p->step[i].bytes;
    return 1;
}
static int runs_on(const Process *p, nvmlDevice_t d) { return p->index == d->index && (!d->parent || (p->gi == d->gi && p->ci == d->ci)); }
static u64 used_bytes(nvmlDevice_t d) {
    u64 sum = 0, bytes;
    double now = scenario_time();
    for (int i = 0; i < sim.processes; i++)
        if (runs_on(&sim.process[i], d) && alive(&sim.process[i], now, &bytes) && bytes != NOT_AVAILABLE) sum += bytes;
    u64 room = d->total - d->reserved;
    return sum < room ? sum : room;
}
static nvmlReturn_t list_processes(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *out, char kind) {
    unsigned found = 0, capacity = *count;
    u64 bytes;
    double now = scenario_time();
    for (int i = 0; i < sim.processes; i++) {
        const Process *p = &sim.process[i];
        if (!p->pid || p->kind != kind || !runs_on(p, d) || !alive(p, now, &bytes)) continue;
        if (out && found < capacity)
            out[found] = (nvmlProcessInfo_t){ .pid = p->pid, .usedGpuMemory = bytes, .gpuInstanceId = (unsigned)p->gi, .computeInstanceId = (unsigned)p->ci };
        found++;
    }
    if (out && found) found += sim.late_processes;
    *count = found;
    return RESULT(found > capacity ? INSUFFICIENT_SIZE : OK);
}
static int has_mig(nvmlDevice_t d) {
    for (int i = 0; i < sim.devices; i++)
        if (sim.device[i].parent == d) return 1;
    return 0;
}
static int accounts(nvmlDevice_t d) { return !d->parent && !has_mig(d) && d->accounting == 1; }
static const Process *accounted(nvmlDevice_t d, unsigned pid) { /* the latest process wins when a pid is used again */
    for (int i = sim.processes - 1; i >= 0; i--) {
        const Process *p = &sim.process[i];
        if (p->pid == pid && runs_on(p, d) && p->step[0].at <= scenario_time()) return p;
    }
    return NULL;
}

/* ---- NVML: library and system ---- */
API nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    RETURN_SCRIPTED(NULL);
    sim.initialized++;
    return RESULT(OK);
}
API nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvmlReturn_t nvmlShutdown(void) {
    if (!sim.initialized) return RESULT(UNINITIALIZED);
    sim.initialized--;
    return RESULT(OK);
}
API const char *nvmlErrorString(nvmlReturn_t result) {
    static char text[40];
    snprintf(text, sizeof text, "simulated error %d", (int)result);
    return text;
}
API nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned length) {
    RETURN_SCRIPTED(NULL);
    snprintf(text, length, "%s", sim.driver);
    return RESULT(OK);
}
API nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, unsigned length) {
    RETURN_SCRIPTED(NULL);
    snprintf(text, length, "13.%s", sim.driver);
    return RESULT(OK);
}

/* ---- NVML: devices ---- */
API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    RETURN_SCRIPTED(NULL);
    *count = 0;
    for (int i = 0; i < sim.devices; i++) *count += !sim.device[i].parent;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    for (int i = 0; i < sim.devices; i++) {
        if (sim.device[i].parent || sim.device[i].index != (int)index) continue;
        RETURN_SCRIPTED(&sim.device[i]);
        *device = &sim.device[i];
        return RESULT(OK);
    }
    return RESULT(INVALID_ARGUMENT);
}
API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    for (int i = 0; i < sim.devices; i++) {
        if (strcmp(sim.device[i].uuid, uuid)) continue;
        RETURN_SCRIPTED(&sim.device[i]);
        *device = &sim.device[i];
        return RESULT(OK);
    }
    return RESULT(NOT_FOUND);
}
API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *text, unsigned length) {
    RETURN_SCRIPTED(d);
    snprintf(text, length, "%s", d->uuid);
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *text, unsigned length) {
    RETURN_SCRIPTED(d);
    snprintf(text, length, "%s", d->name);
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t d, unsigned *index) {
    RETURN_SCRIPTED(d);
    *index = (unsigned)d->index;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *memory) {
    RETURN_SCRIPTED(d);
    memory->total = d->total;
    memory->used = used_bytes(d) + d->reserved;
    memory->free = memory->total - memory->used;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *memory) {
    RETURN_SCRIPTED(d);
    if (memory->version != (sizeof *memory | 2u << 24)) return RESULT(VERSION_MISMATCH);
    memory->total = d->total;
    memory->reserved = d->reserved;
    memory->used = used_bytes(d);
    memory->free = memory->total - memory->reserved - memory->used;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *out) {
    RETURN_SCRIPTED(d);
    return list_processes(d, count, out, 'c');
}
API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *out) {
    RETURN_SCRIPTED(d);
    return list_processes(d, count, out, 'g');
}
API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *out) {
    RETURN_SCRIPTED(d);
    return list_processes(d, count, out, 'm');
}

/* ---- NVML: accounting (the exact peak of a process, also after its end; refused on MIG) ---- */
API nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t d, nvmlEnableState_t *mode) {
    RETURN_SCRIPTED(d);
    *mode = (nvmlEnableState_t)accounts(d);
    return RESULT(d->accounting < 0 ? NOT_SUPPORTED : OK);
}
API nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t d, nvmlEnableState_t mode) {
    RETURN_SCRIPTED(d);
    if (d->accounting < 0 || has_mig(d)) return RESULT(NOT_SUPPORTED);
    d->accounting = (int)mode;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t d, unsigned *size) {
    RETURN_SCRIPTED(d);
    if (!accounts(d)) return RESULT(NOT_SUPPORTED);
    *size = ACCOUNTING_BUFFER;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t d, unsigned *count, unsigned *pids) {
    RETURN_SCRIPTED(d);
    if (!accounts(d)) return RESULT(NOT_SUPPORTED);
    unsigned found = 0, capacity = *count;
    for (int i = 0; i < sim.processes; i++) {
        const Process *p = &sim.process[i];
        if (!p->pid || accounted(d, p->pid) != p) continue;
        if (pids && found < capacity) pids[found] = p->pid;
        found++;
    }
    *count = found;
    return RESULT(found > capacity ? INSUFFICIENT_SIZE : OK);
}
API nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t d, unsigned pid, nvmlAccountingStats_t *stats) {
    RETURN_SCRIPTED(d);
    if (!accounts(d)) return RESULT(NOT_SUPPORTED);
    const Process *p = accounted(d, pid);
    if (!p) return RESULT(NOT_FOUND);
    u64 bytes;
    double now = scenario_time();
    memset(stats, 0, sizeof *stats);
    stats->isRunning = (unsigned)alive(p, now, &bytes);
    stats->startTime = (u64)(p->step[0].at * 1e6);
    for (int i = 0; i < p->steps && p->step[i].at <= now; i++) {
        if (p->step[i].bytes > stats->maxMemoryUsage) stats->maxMemoryUsage = p->step[i].bytes;
        if (p->step[i].end) stats->time = (u64)((p->step[i].at - p->step[0].at) * 1e3);
    }
    return RESULT(OK);
}

/* ---- NVML: MIG ---- */
API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *current, unsigned *pending) {
    RETURN_SCRIPTED(d);
    *current = *pending = (unsigned)has_mig(d);
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned *count) {
    RETURN_SCRIPTED(d);
    *count = has_mig(d) ? MIG_SLOTS : 0;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned slot, nvmlDevice_t *instance) {
    RETURN_SCRIPTED(d);
    for (int i = 0; i < sim.devices; i++) {
        if (sim.device[i].parent != d || slot-- != 0) continue;
        *instance = &sim.device[i];
        return RESULT(OK);
    }
    return RESULT(NOT_FOUND);
}
API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t d, unsigned *is_mig) {
    RETURN_SCRIPTED(d);
    *is_mig = d->parent != NULL;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *id) {
    RETURN_SCRIPTED(d);
    *id = (unsigned)d->gi;
    return RESULT(d->parent ? OK : NOT_SUPPORTED);
}
API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned *id) {
    RETURN_SCRIPTED(d);
    *id = (unsigned)d->ci;
    return RESULT(d->parent ? OK : NOT_SUPPORTED);
}
API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t d, nvmlDevice_t *parent) {
    RETURN_SCRIPTED(d);
    *parent = d->parent;
    return RESULT(d->parent ? OK : INVALID_ARGUMENT);
}

/* ---- NVML: events ---- */
API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    RETURN_SCRIPTED(NULL);
    *set = (nvmlEventSet_t)(void *)&sim.event;
    return RESULT(OK);
}
API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    (void)set;
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, u64 *types) {
    RETURN_SCRIPTED(d);
    *types = 0x8 | 0x100; /* nvmlEventTypeXidCriticalError, nvmlEventMigConfigChange */
    return RESULT(OK);
}
API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, u64 types, nvmlEventSet_t set) {
    (void)types, (void)set;
    RETURN_SCRIPTED(d);
    return RESULT(OK);
}
static int deliver_event(nvmlEventData_t *out) {
    for (int i = 0; i < sim.events; i++) {
        Event *e = &sim.event[i];
        if (e->delivered || e->at > scenario_time()) continue;
        e->delivered = 1;
        memset(out, 0, sizeof *out);
        for (int k = 0; k < sim.devices; k++)
            if (!sim.device[k].parent && sim.device[k].index == e->index) out->device = &sim.device[k];
        out->eventType = e->type;
        out->eventData = e->data;
        out->gpuInstanceId = out->computeInstanceId = ~0u; /* outside MIG, as nvml.h says */
        return 1;
    }
    return 0;
}
API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *out, unsigned timeout_ms) {
    (void)set;
    RETURN_SCRIPTED(NULL);
    for (double stop = monotonic() + timeout_ms / 1e3;; usleep(2000)) {
        if (deliver_event(out)) return RESULT(OK);
        if (monotonic() >= stop) return RESULT(TIMEOUT);
    }
}
