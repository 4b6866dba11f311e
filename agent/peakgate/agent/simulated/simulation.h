/* What a scenario describes (read by scenario.c), and what is true of it now (now.c); the nvml_*.c files answer from that. */
#ifndef SIMULATED_NVML_SIMULATION_H
#define SIMULATED_NVML_SIMULATION_H

#include <stddef.h>
#include "nvml_types.h"

#define API __attribute__((visibility("default")))
enum { MAX_DEVICES = 64, MAX_PROCESSES = 256, MAX_STEPS = 32, MAX_ERRORS = 64, MAX_EVENTS = 64, MAX_LATENCIES = 16, MAX_DRIVERS = 4 };
enum { TEXT_LENGTH = 80 };
enum { COMPUTE = 1, GRAPHICS = 2, MPS = 4 };

typedef unsigned long long u64;
#define NOT_AVAILABLE (~0ULL)  /* the value of a series that the device cannot say */
#define NOTHING (~0ULL - 1)    /* the value of a series before its first step and after `end` */

/* A value that changes at the times of its steps and stays between them. */
typedef struct { double at; u64 value; } Step;
typedef struct { int steps; Step step[MAX_STEPS]; } Series;

/* A GPU, or a MIG instance (which has a parent). */
struct nvmlDevice_st {
    int index, minor, gi, ci, slot;
    u64 total, reserved, bar1_total, bar1_used;
    u64 mig;                  /* 1 on, 0 off, NOT_AVAILABLE */
    double from, until;       /* a MIG instance exists in between */
    double accounting_cleared_at;
    Series accounting, persistence, gpu_utilization, memory_utilization, temperature, power_mw, power_limit_mw, fan;
    char uuid[TEXT_LENGTH], name[TEXT_LENGTH], pci[TEXT_LENGTH];
    struct nvmlDevice_st *parent;
};
typedef struct { int index, gi, ci, kind; unsigned pid; Series memory, sm_utilization, memory_utilization; } Process;
typedef struct { char function[TEXT_LENGTH]; int index, code; double from, until; } ErrorWindow;
typedef struct { int index, gi, ci; double at; u64 type, data; } Event;
typedef struct { char function[TEXT_LENGTH]; long microseconds; } Latency;
typedef struct { char version[TEXT_LENGTH], cuda[TEXT_LENGTH]; double from; } Driver;

typedef struct {
    struct nvmlDevice_st device[MAX_DEVICES];
    Process process[MAX_PROCESSES];
    ErrorWindow error[MAX_ERRORS];
    Event event[MAX_EVENTS];
    Latency latency[MAX_LATENCIES];
    Driver driver[MAX_DRIVERS];
    int devices, processes, errors, events, latencies, drivers;
    int library;              /* the driver that this copy of the library belongs to */
    int initialized, privileged;
    long late_processes, late_times;
    double loaded_at, speed, virtual_time; /* virtual_time < 0: not set */
    double epoch;             /* wall time of the scenario's second 0 */
} Simulation;

extern Simulation sim;

/* clock.c */
double monotonic(void);
double wall(void);
double scenario_time(void);
u64 wall_microseconds(double scenario_seconds);
void map_shared_clock(void);

/* calls.c */
nvmlReturn_t enter(const char *function, nvmlDevice_t device);
void forget_calls(void);
/* Begins an NVML function: counts the call, lets its time pass, and returns the error that the scenario has for it. */
#define ENTER_NODE() do { nvmlReturn_t result_ = enter(__func__, NULL); if (result_ != NVML_SUCCESS) return result_; } while (0)
#define ENTER(device) do { if (!(device)) return NVML_ERROR_INVALID_ARGUMENT; \
    nvmlReturn_t result_ = enter(__func__, device); if (result_ != NVML_SUCCESS) return result_; } while (0)

/* now.c */
u64 value_at(const Series *series, double time);
double start_of(const Series *series);
double end_of(const Series *series);
const Driver *driver_now(void);
int exists(const struct nvmlDevice_st *device);
int in_mig_mode(const struct nvmlDevice_st *device);
int runs_on(const Process *process, const struct nvmlDevice_st *device);
u64 used_bytes(const struct nvmlDevice_st *device);

/* nvml_events.c */
void forget_event_sets(void);

/* What a program that loads the library by its path may call. */
API int simulated_nvml_load(const char *scenario);
API void simulated_nvml_set_time(double seconds);
API double simulated_nvml_time(void);
API long simulated_nvml_calls(void);
API long simulated_nvml_calls_of(const char *function);

#endif
