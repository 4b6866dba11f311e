/* What a GPU measures about itself. What the scenario does not give is not supported: a figure is never made up. */
#include "simulation.h"

static nvmlReturn_t read_series(nvmlDevice_t device, const Series *series, unsigned int *value) {
    u64 now = value_at(series, scenario_time());
    if (device->parent || now == NOTHING || now == NOT_AVAILABLE) return NVML_ERROR_NOT_SUPPORTED;
    *value = (unsigned int)now;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    ENTER(device);
    utilization->memory = 0;
    read_series(device, &device->memory_utilization, &utilization->memory);
    return read_series(device, &device->gpu_utilization, &utilization->gpu);
}
API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *temperature) {
    ENTER(device);
    return sensor == NVML_TEMPERATURE_GPU ? read_series(device, &device->temperature, temperature) : NVML_ERROR_INVALID_ARGUMENT;
}
API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature) {
    unsigned int celsius = 0;
    ENTER(device);
    if (temperature->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t result = read_series(device, &device->temperature, &celsius);
    temperature->temperature = (int)celsius;
    return result;
}
API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
    ENTER(device);
    return read_series(device, &device->power_mw, milliwatts);
}
API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    ENTER(device);
    return read_series(device, &device->power_limit_mw, milliwatts);
}
API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    ENTER(device);
    return read_series(device, &device->power_limit_mw, milliwatts);
}
API nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent) {
    ENTER(device);
    return read_series(device, &device->fan, percent);
}
API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
    unsigned int on = 0;
    ENTER(device);
    nvmlReturn_t result = read_series(device, &device->persistence, &on);
    *mode = on ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return result;
}

/* One sample a second for each process that has a utilization; its time is the wall clock's, in microseconds. */
API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,
                                                 unsigned long long last_seen) {
    ENTER(device);
    if (device->parent || in_mig_mode(device)) return NVML_ERROR_NOT_SUPPORTED;
    double second = (double)(long)scenario_time();
    unsigned int found = 0, capacity = *count;
    for (int i = 0; i < sim.processes && wall_microseconds(second) > last_seen; i++) {
        const Process *p = &sim.process[i];
        u64 sm = value_at(&p->sm_utilization, second), memory = value_at(&p->memory_utilization, second);
        if (!p->pid || !runs_on(p, device) || value_at(&p->memory, second) == NOTHING || sm >= NOTHING) continue;
        if (samples && found < capacity)
            samples[found] = (nvmlProcessUtilizationSample_t){ .pid = p->pid, .timeStamp = wall_microseconds(second),
                                                               .smUtil = (unsigned int)sm, .memUtil = memory < NOTHING ? (unsigned int)memory : 0 };
        found++;
    }
    *count = found;
    if (!found) return NVML_ERROR_NOT_FOUND;
    return found > capacity ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
