/* Events: Xid errors and changes of the MIG configuration. A set hears of what happens after it registered for it, once. */
#define _GNU_SOURCE
#include "simulation.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SETS = 16, TICK_US = 2000 };
#define SUPPORTED (u64)(nvmlEventTypeXidCriticalError | nvmlEventMigConfigChange)

struct nvmlEventSet_st { int used, delivered[MAX_EVENTS]; u64 types[MAX_DEVICES]; double since[MAX_DEVICES]; };
static struct nvmlEventSet_st sets[MAX_SETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_set(nvmlEventSet_t set) { return set >= sets && set < sets + MAX_SETS && set->used; }
static nvmlDevice_t device_of(const Event *event) {
    for (int i = 0; i < sim.devices; i++)
        if (!sim.device[i].parent && sim.device[i].index == event->index) return &sim.device[i];
    return NULL;
}
static int deliver(nvmlEventSet_t set, nvmlEventData_t *out) {
    for (int i = 0; i < sim.events; i++) {
        const Event *event = &sim.event[i];
        nvmlDevice_t device = device_of(event);
        if (!device || set->delivered[i] || event->at > scenario_time()) continue;
        if (!(set->types[device - sim.device] & event->type) || event->at < set->since[device - sim.device]) continue;
        set->delivered[i] = 1;
        *out = (nvmlEventData_t){ .device = device, .eventType = event->type, .eventData = event->data,
                                  .gpuInstanceId = (unsigned int)event->gi, .computeInstanceId = (unsigned int)event->ci };
        return 1;
    }
    return 0;
}
void forget_event_sets(void) {
    pthread_mutex_lock(&lock);
    memset(sets, 0, sizeof sets);
    pthread_mutex_unlock(&lock);
}

API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_RESOURCES;
    ENTER_NODE();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_SETS && result != NVML_SUCCESS; i++) {
        if (sets[i].used) continue;
        sets[i] = (struct nvmlEventSet_st){ .used = 1 };
        *set = &sets[i];
        result = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    ENTER_NODE();
    if (!is_set(set)) return NVML_ERROR_INVALID_ARGUMENT;
    set->used = 0;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    ENTER(device);
    *types = device->parent ? 0 : SUPPORTED;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    ENTER(device);
    if (!is_set(set) || !types) return NVML_ERROR_INVALID_ARGUMENT;
    if (device->parent || (types & ~SUPPORTED)) return NVML_ERROR_NOT_SUPPORTED; /* not by a MIG device's handle */
    pthread_mutex_lock(&lock);
    set->types[device - sim.device] |= types;
    set->since[device - sim.device] = scenario_time();
    pthread_mutex_unlock(&lock);
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    ENTER_NODE();
    if (!is_set(set)) return NVML_ERROR_INVALID_ARGUMENT;
    for (double stop = monotonic() + timeout_ms / 1e3;; usleep(TICK_US)) {
        pthread_mutex_lock(&lock);
        int delivered = deliver(set, data);
        pthread_mutex_unlock(&lock);
        if (delivered) return NVML_SUCCESS;
        if (monotonic() >= stop) return NVML_ERROR_TIMEOUT;
    }
}
