/* What every NVML call goes through: it is counted, takes its time, and fails when the scenario says so. */
#define _GNU_SOURCE
#include "simulation.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FUNCTIONS = 128 };
static struct { const char *function; long calls; } counted[MAX_FUNCTIONS];
static int functions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* an agent waits for events in a thread of its own */

static void count(const char *function) {
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < functions && counted[i].function != function) i++;
    if (i == functions && functions < MAX_FUNCTIONS) counted[functions++].function = function;
    if (i < functions) counted[i].calls++;
    pthread_mutex_unlock(&lock);
}
static long latency_of(const char *function) { /* a latency for this function goes before one for all */
    long microseconds = 0;
    for (int i = 0; i < sim.latencies; i++) {
        if (!strcmp(sim.latency[i].function, function)) return sim.latency[i].microseconds;
        if (sim.latency[i].function[0] == '*') microseconds = sim.latency[i].microseconds;
    }
    return microseconds;
}
static nvmlReturn_t scripted_error(const char *function, nvmlDevice_t device) {
    double now = sim.errors ? scenario_time() : 0;
    for (int i = 0; i < sim.errors; i++) {
        const ErrorWindow *e = &sim.error[i];
        int function_matches = e->function[0] == '*' || !strcmp(e->function, function);
        int device_matches = e->index < 0 || (device && device->index == e->index);
        if (function_matches && device_matches && now >= e->from && now < e->until) return (nvmlReturn_t)e->code;
    }
    return NVML_SUCCESS;
}

/* `device` is NULL for a call about the whole node. */
nvmlReturn_t enter(const char *function, nvmlDevice_t device) {
    count(function);
    long microseconds = latency_of(function);
    if (microseconds) usleep((useconds_t)microseconds);
    if (driver_now() != &sim.driver[sim.library]) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    if (device && (device < sim.device || device >= sim.device + sim.devices)) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = scripted_error(function, device);
    if (result != NVML_SUCCESS) return result;
    if (!sim.initialized && strcmp(function, "nvmlInitWithFlags")) return NVML_ERROR_UNINITIALIZED;
    return device && !exists(device) ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static long taken(const char *function) {
    long calls = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < functions; i++) {
        if (function && strcmp(counted[i].function, function)) continue;
        calls += counted[i].calls;
        counted[i].calls = 0;
    }
    pthread_mutex_unlock(&lock);
    return calls;
}
void forget_calls(void) { taken(NULL); }
/* Calls since the scenario was loaded or this was last asked. */
API long simulated_nvml_calls(void) { return taken(NULL); }
/* The same of one function, such as nvmlDeviceGetMemoryInfo_v2. */
API long simulated_nvml_calls_of(const char *function) { return taken(function); }
