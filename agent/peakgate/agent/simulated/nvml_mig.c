/* MIG: instances of a GPU as devices of their own. A slot without an instance answers NOT_FOUND, a handle whose instance is gone
 * INVALID_ARGUMENT (nvml.h). */
#include "simulation.h"

enum { SLOTS = 7 }; /* of an A100 or H100: seven compute instances at most (NVIDIA Multi-Instance GPU User Guide, supported profiles) */

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    ENTER(device);
    if (device->parent || device->mig == NOT_AVAILABLE) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = (unsigned int)device->mig;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    ENTER(device);
    *count = in_mig_mode(device) ? SLOTS : 0;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int slot, nvmlDevice_t *instance) {
    ENTER(device);
    for (int i = 0; i < sim.devices; i++) {
        if (sim.device[i].parent != device || sim.device[i].slot != (int)slot || !exists(&sim.device[i])) continue;
        *instance = &sim.device[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}
API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    ENTER(device);
    *is_mig = device->parent != NULL;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
    ENTER(device);
    *id = (unsigned int)device->gi;
    return device->parent ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
    ENTER(device);
    *id = (unsigned int)device->ci;
    return device->parent ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *parent) {
    ENTER(device);
    *parent = device->parent;
    return device->parent ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
