/* The state that a scenario describes, shared by its reader (scenario.c) and the NVML functions (nvml.c). */
#ifndef SIMULATED_NVML_SIMULATION_H
#define SIMULATED_NVML_SIMULATION_H

#define API __attribute__((visibility("default")))
#define NOT_AVAILABLE (~0ULL) /* NVML_VALUE_NOT_AVAILABLE of nvml.h */
enum { MAX_DEVICES = 64, MAX_PROCESSES = 256, MAX_STEPS = 32, MAX_ERRORS = 64, MAX_EVENTS = 64 };

typedef unsigned long long u64;
struct nvmlDevice_st { int index, gi, ci, accounting; u64 total, reserved; char uuid[80], name[80]; struct nvmlDevice_st *parent; };
typedef struct { double at; u64 bytes; int end; } Step;
typedef struct { int index, gi, ci, steps; unsigned pid; char kind; Step step[MAX_STEPS]; } Process;
typedef struct { char function[64]; int index, code; double from, until; } ErrorWindow;
typedef struct { int index, delivered; double at; u64 type, data; } Event;

typedef struct {
    struct nvmlDevice_st device[MAX_DEVICES];
    Process process[MAX_PROCESSES];
    ErrorWindow error[MAX_ERRORS];
    Event event[MAX_EVENTS];
    int devices, processes, errors, events, initialized;
    unsigned late_processes;
    long latency_us, calls;
    double loaded_at, speed, virtual_time; /* virtual_time < 0: real time */
    char driver[80];
} Simulation;

extern Simulation sim;
double monotonic(void);
double scenario_time(void);

#endif
