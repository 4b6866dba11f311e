/* Which GPUs there are, and what they are called. */
#include "simulation.h"
#include <stdio.h>
#include <string.h>

static nvmlReturn_t put_text(char *text, unsigned int length, const char *from) {
    return snprintf(text, length, "%s", from) < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
static int same_bus(const char *text, const char *other) { /* domain:bus:device[.function] or bus:device[.function], hexadecimal */
    unsigned a[3] = {0}, b[3] = {0};
    if (sscanf(text, "%x:%x:%x", &a[0], &a[1], &a[2]) != 3) {
        a[0] = 0;
        if (sscanf(text, "%x:%x", &a[1], &a[2]) != 2) return 0;
    }
    return sscanf(other, "%x:%x:%x", &b[0], &b[1], &b[2]) == 3 && !memcmp(a, b, sizeof a);
}

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    ENTER_NODE();
    *count = 0;
    for (int i = 0; i < sim.devices; i++) *count += !sim.device[i].parent;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    for (int i = 0; i < sim.devices; i++) {
        if (sim.device[i].parent || sim.device[i].index != (int)index) continue;
        ENTER(&sim.device[i]);
        *device = &sim.device[i];
        return NVML_SUCCESS;
    }
    ENTER_NODE();
    return NVML_ERROR_INVALID_ARGUMENT;
}
API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    for (int i = 0; i < sim.devices; i++) {
        if (!exists(&sim.device[i]) || strcmp(sim.device[i].uuid, uuid)) continue;
        ENTER(&sim.device[i]);
        *device = &sim.device[i];
        return NVML_SUCCESS;
    }
    ENTER_NODE();
    return NVML_ERROR_NOT_FOUND;
}
API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device) {
    for (int i = 0; i < sim.devices; i++) {
        if (sim.device[i].parent || !same_bus(bus, sim.device[i].pci)) continue;
        ENTER(&sim.device[i]);
        *device = &sim.device[i];
        return NVML_SUCCESS;
    }
    ENTER_NODE();
    return NVML_ERROR_NOT_FOUND;
}
API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    ENTER(device);
    return put_text(uuid, length, device->uuid);
}
API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    ENTER(device);
    return put_text(name, length, device->name);
}
API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    ENTER(device);
    *index = (unsigned int)device->index;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    ENTER(device);
    *minor = (unsigned int)device->minor;
    return device->parent ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    ENTER(device);
    memset(pci, 0, sizeof *pci);
    sscanf(device->pci, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff, pci->device & 0x1f);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0x1f);
    return NVML_SUCCESS;
}
