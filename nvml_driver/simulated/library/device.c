/* What GPUs and MIG devices say of themselves. */
#include <stdio.h>
#include <string.h>

#include "simulated.h"

/* ---- finding devices --------------------------------------------------------------------------- */

API int nvmlDeviceGetCount_v2(unsigned *count)
{
    LOCKED;
    CHECK(check_machine(__func__, count));
    *count = selected_machine()->gpu_count;
    return SUCCESS;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device)
{
    LOCKED;
    CHECK(check_machine(__func__, device));
    machine_t *machine = selected_machine();
    if (index >= machine->gpu_count)
        return INVALID_ARGUMENT;
    CHECK(fault_of(&machine->gpus[index].faults, __func__));
    *device = &machine->gpus[index];
    return SUCCESS;
}

API int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device)
{
    LOCKED;
    CHECK(check_machine(__func__, device));
    machine_t *machine = selected_machine();
    if (uuid == NULL)
        return INVALID_ARGUMENT;
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        gpu_t *gpu = &machine->gpus[i];
        if (strcmp(gpu->uuid, uuid) == 0) {
            CHECK(fault_of(&gpu->faults, __func__));
            *device = gpu;
            return SUCCESS;
        }
        for (unsigned g = 0; g < MAX_GIS; g++) {
            for (unsigned c = 0; gpu->gis[g].used && c < MAX_CIS; c++) {
                char own[MAX_TEXT];
                ci_t *ci = &gpu->gis[g].cis[c];
                if (!ci->used)
                    continue;
                mig_uuid(ci, own);
                if (strcmp(own, uuid) == 0) {
                    *device = ci;
                    return SUCCESS;
                }
            }
        }
    }
    return NOT_FOUND;
}

/* domain:bus:device.function, bus:device.function or domain:bus:device, in hexadecimal. */
static bool read_bus_id(const char *text, unsigned *domain, unsigned *bus, unsigned *slot)
{
    const char *forms[] = {"%8x:%2x:%2x.0%n", "%8x:%2x:%2x%n"};
    for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
        int end = -1;
        if (sscanf(text, forms[i], domain, bus, slot, &end) == 3 && end > 0 && text[end] == '\0')
            return true;
    }
    int end = -1;
    *domain = 0;
    return sscanf(text, "%2x:%2x.0%n", bus, slot, &end) == 2 && end > 0 && text[end] == '\0';
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device_t *device)
{
    LOCKED;
    unsigned domain = 0, bus = 0, slot = 0;
    CHECK(check_machine(__func__, device));
    machine_t *machine = selected_machine();
    if (bus_id == NULL || !read_bus_id(bus_id, &domain, &bus, &slot))
        return INVALID_ARGUMENT;
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        gpu_t *gpu = &machine->gpus[i];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == slot) {
            CHECK(fault_of(&gpu->faults, __func__));
            *device = gpu;
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

/* Of a MIG device: which it is of its GPU, as nvmlDeviceGetMigDeviceHandleByIndex counts. */
API int nvmlDeviceGetIndex(device_t device, unsigned *index)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, index, &gpu, &ci));
    *index = ci == NULL ? (unsigned)(gpu - gpu->machine->gpus) : mig_index(ci);
    return SUCCESS;
}

/* ---- what a device is -------------------------------------------------------------------------- */

API int nvmlDeviceGetName(device_t device, char *name, unsigned length)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    char full[3 * MAX_TEXT];
    CHECK(check_any(__func__, device, name, &gpu, &ci));
    snprintf(full, sizeof full, "%s%s%s", gpu->name, ci != NULL ? " MIG " : "",
             ci != NULL ? profile_of(ci->gi)->name : "");
    return give_text(full, name, length);
}

API int nvmlDeviceGetUUID(device_t device, char *uuid, unsigned length)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    char own[MAX_TEXT];
    CHECK(check_any(__func__, device, uuid, &gpu, &ci));
    if (ci == NULL)
        return give_text(gpu->uuid, uuid, length);
    mig_uuid(ci, own);
    return give_text(own, uuid, length);
}

API int nvmlDeviceGetMinorNumber(device_t device, unsigned *minor)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, minor, &gpu));
    *minor = gpu->minor;
    return SUCCESS;
}

API int nvmlDeviceGetBrand(device_t device, int *brand)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, brand, &gpu, &ci));
    *brand = gpu->brand;
    return SUCCESS;
}

API int nvmlDeviceGetArchitecture(device_t device, unsigned *architecture)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, architecture, &gpu, &ci));
    *architecture = gpu->architecture;
    return SUCCESS;
}

API int nvmlDeviceGetCudaComputeCapability(device_t device, int *major, int *minor)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, major, &gpu, &ci));
    if (minor == NULL)
        return INVALID_ARGUMENT;
    *major = gpu->cc_major;
    *minor = gpu->cc_minor;
    return SUCCESS;
}

typedef struct {
    u64 total, free, used;
} memory_t;

typedef struct {
    unsigned version;
    u64 total, reserved, free, used;
} memory_v2_t;

static int memory_of(const gpu_t *gpu, const ci_t *ci, memory_t *memory)
{
    u64 total = ci != NULL ? profile_of(ci->gi)->memory_mb << 20 : gpu->memory_total;
    u64 used = ci != NULL ? 0 : gpu->memory_used;
    if (ci == NULL && !gpu->has_memory)
        return NOT_SUPPORTED;
    if (used > total)
        used = total;
    *memory = (memory_t){total, total - used, used};
    return SUCCESS;
}

API int nvmlDeviceGetMemoryInfo(device_t device, memory_t *memory)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, memory, &gpu, &ci));
    return memory_of(gpu, ci, memory);
}

API int nvmlDeviceGetMemoryInfo_v2(device_t device, memory_v2_t *memory)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    memory_t plain;
    CHECK(check_any(__func__, device, memory, &gpu, &ci));
    if (memory->version != (sizeof(memory_v2_t) | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    CHECK(memory_of(gpu, ci, &plain));
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return SUCCESS;
}

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info_t;

API int nvmlDeviceGetPciInfo_v3(device_t device, pci_info_t *pci)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, pci, &gpu, &ci));
    memset(pci, 0, sizeof *pci);
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pci_device_id = gpu->pci_device_id;
    pci->pci_subsystem_id = gpu->pci_subsystem_id;
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0",
             gpu->pci_domain & 0xffffu, gpu->pci_bus & 0xffu, gpu->pci_device & 0x1fu);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", gpu->pci_domain,
             gpu->pci_bus & 0xffu, gpu->pci_device & 0x1fu);
    return SUCCESS;
}

/* What these names stood for before: a structure that ends sooner. */
static int older_pci_info(const char *function, device_t device, void *pci, size_t size)
{
    gpu_t *gpu;
    ci_t *ci;
    pci_info_t full;
    CHECK(check_any(function, device, pci, &gpu, &ci));
    CHECK(nvmlDeviceGetPciInfo_v3(device, &full));
    memcpy(pci, &full, size);
    return SUCCESS;
}

API int nvmlDeviceGetPciInfo(device_t device, void *pci)
{
    LOCKED;
    return older_pci_info(__func__, device, pci, offsetof(pci_info_t, pci_subsystem_id));
}

API int nvmlDeviceGetPciInfo_v2(device_t device, void *pci)
{
    LOCKED;
    return older_pci_info(__func__, device, pci, offsetof(pci_info_t, bus_id));
}

/* ---- names from before they had versions --------------------------------------------------------- */

API int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

API int nvmlDeviceGetHandleByIndex(unsigned index, device_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

API int nvmlDeviceGetHandleByPciBusId(const char *bus_id, device_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* ---- what else a device says ----------------------------------------------------------------------- */

typedef struct {
    unsigned version, value;
} addressing_mode_t;

API int nvmlDeviceGetAddressingMode(device_t device, addressing_mode_t *mode)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, mode, &gpu));
    if (mode->version != (sizeof(addressing_mode_t) | 1u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    if (!gpu->has_addressing_mode)
        return NOT_SUPPORTED;
    mode->value = gpu->addressing_mode;
    return SUCCESS;
}

API int nvmlDeviceGetNumaNodeId(device_t device, int *node)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, node, &gpu));
    if (!gpu->has_numa)
        return NOT_SUPPORTED;
    *node = gpu->numa_node;
    return SUCCESS;
}

API int nvmlDeviceGetVirtualizationMode(device_t device, int *mode)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, mode, &gpu));
    *mode = 0; /* NVML_GPU_VIRTUALIZATION_MODE_NONE */
    return SUCCESS;
}

typedef struct {
    uint32_t field_id, scope_id;
    int64_t timestamp, latency_us;
    int32_t value_type, result;
    union {
        unsigned value;
        u64 whole;
    };
} field_value_t;

enum { GPU_RECOVERY_ACTION = 230, VALUE_UNSIGNED_INT = 1, MAX_FIELDS = 256 };

API int nvmlDeviceGetFieldValues(device_t device, int count, field_value_t *values)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, values, &gpu));
    if (count < 1 || count > MAX_FIELDS)
        return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].whole = 0;
        values[i].value_type = VALUE_UNSIGNED_INT;
        values[i].result = values[i].field_id == GPU_RECOVERY_ACTION ? SUCCESS : NOT_SUPPORTED;
        if (values[i].result == SUCCESS)
            values[i].value = gpu->recovery_action;
    }
    return SUCCESS;
}
