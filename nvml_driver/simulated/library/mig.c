/*
 * MIG: mode, profiles, placements, GPU instances and compute instances, and the MIG devices that
 * the latter are.
 *
 * The id of a GPU instance follows from its place, in the order of a binary tree over the memory
 * slices: 0 for all of them, 1 and 2 for the halves, down to 7 to 13 for single slices, as
 * `nvidia-smi mig -lgi` numbers them. A MIG device that is made again has a new UUID.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "simulated.h"

enum { HOPPER = 9, SHARED_ENGINES = 0, MIG_CONFIG_CHANGE = 0x100 };

/* Compute slices by NVML_COMPUTE_INSTANCE_PROFILE_*. */
static const unsigned ci_slices[] = {1, 2, 3, 4, 7, 8, 6};

const mig_profile_t *profile_of(const gi_t *gi) { return &gi->gpu->mig_profiles[gi->profile]; }

/* Ends what state_begin began; a change that is stored is told to who waits for it. */
static int changed(gpu_t *gpu, int token, int result)
{
    int stored = state_end(gpu->machine, token);
    if (result == SUCCESS)
        result = stored;
    if (result == SUCCESS) {
        events_post(gpu, MIG_CONFIG_CHANGE, 0, UINT_MAX, UINT_MAX);
        events_wake(gpu->machine);
    }
    return result;
}

static bool overlap(unsigned a, unsigned a_size, unsigned b, unsigned b_size)
{
    return a < b + b_size && b < a + a_size;
}

static bool has_start(const mig_profile_t *profile, unsigned start)
{
    for (unsigned i = 0; i < profile->start_count; i++)
        if (profile->starts[i] == start)
            return true;
    return false;
}

static bool room_for_gi(const gpu_t *gpu, unsigned profile, unsigned start)
{
    unsigned alike = 0;
    for (unsigned i = 0; i < MAX_GIS; i++) {
        const gi_t *gi = &gpu->gis[i];
        if (!gi->used)
            continue;
        alike += gi->profile == profile;
        if (overlap(start, gpu->mig_profiles[profile].size, gi->start, gi->size))
            return false;
    }
    return alike < gpu->mig_profiles[profile].instances;
}

gi_t *place_gi(gpu_t *gpu, unsigned profile, unsigned start, int *result)
{
    const mig_profile_t *wanted = &gpu->mig_profiles[profile];
    *result = INVALID_ARGUMENT;
    if (!has_start(wanted, start))
        return NULL;
    *result = INSUFFICIENT_RESOURCES;
    if (!room_for_gi(gpu, profile, start))
        return NULL;
    gi_t *gi = &gpu->gis[gpu->mig_slices / wanted->size - 1 + start / wanted->size];
    gi->used = true;
    gi->profile = profile;
    gi->start = start;
    gi->size = wanted->size;
    *result = SUCCESS;
    return gi;
}

static bool room_for_ci(const gi_t *gi, unsigned start, unsigned size)
{
    for (unsigned i = 0; i < MAX_CIS; i++)
        if (gi->cis[i].used && overlap(start, size, gi->cis[i].start, gi->cis[i].size))
            return false;
    return start + size <= profile_of(gi)->slices;
}

/* 1, 2 and 4 slices start at their multiples; 3 start where 4 could. */
static unsigned ci_step(unsigned slices) { return slices == 3 ? 4 : slices; }

static ci_t *place_ci_at(gi_t *gi, unsigned profile, unsigned start, int slot, int *result)
{
    *result = NOT_SUPPORTED;
    if (profile >= sizeof ci_slices / sizeof *ci_slices
        || ci_slices[profile] > profile_of(gi)->slices)
        return NULL;
    *result = INSUFFICIENT_RESOURCES;
    if (!room_for_ci(gi, start, ci_slices[profile]))
        return NULL;
    for (int i = 0; slot < 0 && i < MAX_CIS; i++)
        if (!gi->cis[i].used)
            slot = i;
    if (slot < 0 || gi->cis[slot].used)
        return NULL;
    ci_t *ci = &gi->cis[slot];
    ci->used = true;
    ci->profile = profile;
    ci->start = start;
    ci->size = ci_slices[profile];
    ci->serial = gi->gpu->created++;
    *result = SUCCESS;
    return ci;
}

/* In the given slot, or the first free one for -1; at the first start where there is room. */
ci_t *place_ci(gi_t *gi, unsigned profile, int slot, int *result)
{
    unsigned slices = profile < sizeof ci_slices / sizeof *ci_slices ? ci_slices[profile] : 1;
    for (unsigned start = 0; start < profile_of(gi)->slices; start += ci_step(slices)) {
        ci_t *ci = place_ci_at(gi, profile, start, slot, result);
        if (ci != NULL || *result != INSUFFICIENT_RESOURCES)
            return ci;
    }
    return NULL;
}

/* All instances as they are after a boot. */
void mig_boot(machine_t *machine)
{
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        gpu_t *gpu = &machine->gpus[i];
        int result;
        gpu->mig_mode = gpu->boot_mig_mode;
        gpu->created = 0;
        for (unsigned g = 0; g < MAX_GIS; g++) {
            gpu->gis[g].used = false;
            for (unsigned c = 0; c < MAX_CIS; c++)
                gpu->gis[g].cis[c].used = false;
        }
        for (unsigned b = 0; b < gpu->boot_instance_count; b++) {
            gi_t *gi = place_gi(gpu, gpu->boot_instances[b].profile, gpu->boot_instances[b].start,
                                &result);
            for (unsigned p = 0; gi != NULL && p < sizeof ci_slices / sizeof *ci_slices; p++)
                if (ci_slices[p] == profile_of(gi)->slices)
                    place_ci(gi, p, -1, &result);
        }
    }
}

void mig_uuid(const ci_t *ci, char out[MAX_TEXT])
{
    char text[2 * MAX_TEXT];
    u64 halves[2];
    snprintf(text, sizeof text, "%s/%u", ci->gi->gpu->uuid, ci->serial);
    for (unsigned i = 0; i < 2; i++) {
        halves[i] = 14695981039346656037ull + i; /* FNV-1a */
        for (const char *at = text; *at != '\0'; at++)
            halves[i] = (halves[i] ^ (unsigned char)*at) * 1099511628211ull;
        halves[i] ^= halves[i] >> 29;
    }
    snprintf(out, MAX_TEXT, "MIG-%08llx-%04llx-5%03llx-a%03llx-%012llx", halves[0] >> 32,
             (halves[0] >> 16) & 0xffff, halves[0] & 0xfff, halves[1] >> 52,
             halves[1] & 0xffffffffffffull);
}

/* ---- mode --------------------------------------------------------------------------------------- */

API int nvmlDeviceGetMigMode(device_t device, unsigned *now, unsigned *pending)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, now, &gpu));
    if (pending == NULL)
        return INVALID_ARGUMENT;
    if (!gpu->has_mig)
        return NOT_SUPPORTED;
    *now = *pending = gpu->mig_mode;
    return SUCCESS;
}

static bool has_instances(const gpu_t *gpu)
{
    for (unsigned i = 0; i < MAX_GIS; i++)
        if (gpu->gis[i].used)
            return true;
    return false;
}

API int nvmlDeviceSetMigMode(device_t device, unsigned mode, int *activation)
{
    LOCKED;
    gpu_t *gpu;
    int token;
    CHECK(check_gpu(__func__, device, activation, &gpu));
    if (!gpu->has_mig)
        return NOT_SUPPORTED;
    if (mode > 1)
        return INVALID_ARGUMENT;
    CHECK(state_begin(gpu->machine, &token));
    int result = has_instances(gpu) && mode == 0 ? IN_USE : SUCCESS;
    if (result == SUCCESS)
        gpu->mig_mode = mode;
    *activation = SUCCESS;
    return changed(gpu, token, result);
}

/* ---- profiles and placements of GPU instances -------------------------------------------------- */

/* Ampere only tells of profiles while MIG is enabled. */
static bool tells_profiles(const gpu_t *gpu)
{
    return gpu->has_mig && (gpu->mig_mode == 1 || gpu->architecture >= HOPPER);
}

static const mig_profile_t *profile_by_id(const gpu_t *gpu, unsigned id)
{
    for (unsigned i = 0; i < gpu->mig_profile_count; i++)
        if (gpu->mig_profiles[i].id == id)
            return &gpu->mig_profiles[i];
    return NULL;
}

typedef struct {
    unsigned id, p2p, slices, instances, multiprocessors, copy, decoders, encoders, jpeg, ofa;
    u64 memory_mb;
} gi_profile_info_t;

typedef struct {
    unsigned version;
    unsigned id, p2p, slices, instances, multiprocessors, copy, decoders, encoders, jpeg, ofa;
    u64 memory_mb;
    char name[96];
} gi_profile_info_v2_t;

static int find_profile(const gpu_t *gpu, unsigned index, const mig_profile_t **found)
{
    if (!tells_profiles(gpu))
        return NOT_SUPPORTED;
    for (unsigned i = 0; i < gpu->mig_profile_count; i++) {
        if (gpu->mig_profiles[i].index == index) {
            *found = &gpu->mig_profiles[i];
            return SUCCESS;
        }
    }
    return index < MAX_MIG_PROFILES ? NOT_SUPPORTED : INVALID_ARGUMENT;
}

API int nvmlDeviceGetGpuInstanceProfileInfo(device_t device, unsigned index,
                                            gi_profile_info_t *info)
{
    LOCKED;
    gpu_t *gpu;
    const mig_profile_t *p;
    CHECK(check_gpu(__func__, device, info, &gpu));
    CHECK(find_profile(gpu, index, &p));
    *info = (gi_profile_info_t){p->id, 0, p->slices, p->instances, p->multiprocessors,
                                p->copy_engines, p->decoders, p->encoders, p->jpeg_engines,
                                p->ofa_engines, p->memory_mb};
    return SUCCESS;
}

API int nvmlDeviceGetGpuInstanceProfileInfoV(device_t device, unsigned index,
                                             gi_profile_info_v2_t *info)
{
    LOCKED;
    gpu_t *gpu;
    const mig_profile_t *p;
    CHECK(check_gpu(__func__, device, info, &gpu));
    if (info->version != (sizeof(gi_profile_info_v2_t) | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    CHECK(find_profile(gpu, index, &p));
    unsigned version = info->version;
    *info = (gi_profile_info_v2_t){version, p->id, 0, p->slices, p->instances, p->multiprocessors,
                                   p->copy_engines, p->decoders, p->encoders, p->jpeg_engines,
                                   p->ofa_engines, p->memory_mb, ""};
    snprintf(info->name, sizeof info->name, "MIG %.90s", p->name);
    return SUCCESS;
}

typedef struct {
    unsigned start, size;
} placement_t;

API int nvmlDeviceGetGpuInstancePossiblePlacements_v2(device_t device, unsigned id,
                                                      placement_t *placements, unsigned *count)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, count, &gpu));
    const mig_profile_t *profile = tells_profiles(gpu) ? profile_by_id(gpu, id) : NULL;
    if (profile == NULL)
        return NOT_SUPPORTED;
    unsigned room = *count;
    *count = profile->start_count;
    if (placements == NULL)
        return SUCCESS;
    if (room < profile->start_count)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < profile->start_count; i++)
        placements[i] = (placement_t){profile->starts[i], profile->size};
    return SUCCESS;
}

API int nvmlDeviceGetGpuInstanceRemainingCapacity(device_t device, unsigned id, unsigned *count)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, count, &gpu));
    const mig_profile_t *profile = gpu->mig_mode == 1 ? profile_by_id(gpu, id) : NULL;
    if (profile == NULL)
        return NOT_SUPPORTED;
    *count = 0;
    for (unsigned i = 0; i < profile->start_count; i++)
        *count += room_for_gi(gpu, (unsigned)(profile - gpu->mig_profiles), profile->starts[i]);
    return SUCCESS;
}

/* ---- GPU instances ------------------------------------------------------------------------------ */

static int create_gi(gpu_t *gpu, unsigned id, const placement_t *placement, gi_t **made)
{
    int token, result = SUCCESS;
    const mig_profile_t *profile = gpu->mig_mode == 1 ? profile_by_id(gpu, id) : NULL;
    if (profile == NULL)
        return NOT_SUPPORTED;
    if (placement != NULL && placement->size != profile->size)
        return INVALID_ARGUMENT;
    CHECK(state_begin(gpu->machine, &token));
    *made = NULL;
    for (unsigned i = 0; *made == NULL && i < (placement != NULL ? 1 : profile->start_count); i++)
        *made = place_gi(gpu, (unsigned)(profile - gpu->mig_profiles),
                         placement != NULL ? placement->start : profile->starts[i], &result);
    return changed(gpu, token, result);
}

API int nvmlDeviceCreateGpuInstance(device_t device, unsigned id, gi_t **made)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, made, &gpu));
    return create_gi(gpu, id, NULL, made);
}

API int nvmlDeviceCreateGpuInstanceWithPlacement(device_t device, unsigned id,
                                                 const placement_t *placement, gi_t **made)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, made, &gpu));
    return placement == NULL ? INVALID_ARGUMENT : create_gi(gpu, id, placement, made);
}

static int check_gi(const char *function, const void *handle, const void *out, gi_t **gi)
{
    gpu_t *gpu;
    ci_t *ci;
    machine_t *machine = selected_machine();
    if (!locate(handle, &gpu, gi, &ci))
        return machine == NULL || machine->init_count == 0 ? UNINITIALIZED : NOT_FOUND;
    if (*gi == NULL || ci != NULL)
        return INVALID_ARGUMENT;
    return check_gpu(function, gpu, out, &gpu);
}

API int nvmlDeviceGetGpuInstanceById(device_t device, unsigned id, gi_t **found)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, found, &gpu));
    if (gpu->mig_mode != 1)
        return NOT_SUPPORTED;
    if (id >= MAX_GIS || !gpu->gis[id].used)
        return NOT_FOUND;
    *found = &gpu->gis[id];
    return SUCCESS;
}

API int nvmlDeviceGetGpuInstances(device_t device, unsigned id, gi_t **found, unsigned *count)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, count, &gpu));
    const mig_profile_t *profile = gpu->mig_mode == 1 ? profile_by_id(gpu, id) : NULL;
    if (profile == NULL)
        return NOT_SUPPORTED;
    if (found == NULL)
        return INVALID_ARGUMENT;
    *count = 0;
    for (unsigned i = 0; i < MAX_GIS; i++)
        if (gpu->gis[i].used && profile_of(&gpu->gis[i]) == profile)
            found[(*count)++] = &gpu->gis[i]; /* the caller has room for `instances` of it */
    return SUCCESS;
}

typedef struct {
    device_t device;
    unsigned id, profile_id;
    placement_t placement;
} gi_info_t;

API int nvmlGpuInstanceGetInfo(gi_t *handle, gi_info_t *info)
{
    LOCKED;
    gi_t *gi;
    CHECK(check_gi(__func__, handle, info, &gi));
    *info = (gi_info_t){gi->gpu, gi->id, profile_of(gi)->id, {gi->start, gi->size}};
    return SUCCESS;
}

API int nvmlGpuInstanceDestroy(gi_t *handle)
{
    LOCKED;
    gi_t *gi;
    int token, result = SUCCESS;
    CHECK(check_gi(__func__, handle, handle, &gi));
    CHECK(state_begin(gi->gpu->machine, &token));
    for (unsigned i = 0; i < MAX_CIS; i++)
        if (gi->cis[i].used)
            result = IN_USE;
    if (result == SUCCESS)
        gi->used = false;
    return changed(gi->gpu, token, result);
}

/* ---- compute instances --------------------------------------------------------------------------- */

typedef struct {
    unsigned id, slices, instances, multiprocessors, copy, decoders, encoders, jpeg, ofa;
} ci_profile_info_t;

typedef struct {
    unsigned version;
    ci_profile_info_t plain;
    char name[96];
} ci_profile_info_v2_t;

static int ci_profile(const gi_t *gi, unsigned index, unsigned engines, ci_profile_info_t *info)
{
    const mig_profile_t *p = profile_of(gi);
    if (engines != SHARED_ENGINES)
        return INVALID_ARGUMENT;
    if (index >= sizeof ci_slices / sizeof *ci_slices || ci_slices[index] > p->slices)
        return NOT_SUPPORTED;
    unsigned slices = ci_slices[index];
    *info = (ci_profile_info_t){index, slices, p->slices / slices,
                                p->multiprocessors * slices / p->slices, p->copy_engines,
                                p->decoders, p->encoders, p->jpeg_engines, p->ofa_engines};
    return SUCCESS;
}

API int nvmlGpuInstanceGetComputeInstanceProfileInfo(gi_t *handle, unsigned index,
                                                     unsigned engines, ci_profile_info_t *info)
{
    LOCKED;
    gi_t *gi;
    CHECK(check_gi(__func__, handle, info, &gi));
    return ci_profile(gi, index, engines, info);
}

API int nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi_t *handle, unsigned index,
                                                      unsigned engines, ci_profile_info_v2_t *info)
{
    LOCKED;
    gi_t *gi;
    CHECK(check_gi(__func__, handle, info, &gi));
    if (info->version != (sizeof(ci_profile_info_v2_t) | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    CHECK(ci_profile(gi, index, engines, &info->plain));
    if (info->plain.slices == profile_of(gi)->slices)
        snprintf(info->name, sizeof info->name, "MIG %.80s", profile_of(gi)->name);
    else
        snprintf(info->name, sizeof info->name, "MIG %uc.%.80s", info->plain.slices,
                 profile_of(gi)->name);
    return SUCCESS;
}

API int nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi_t *handle, unsigned index,
                                                           unsigned *count)
{
    LOCKED;
    gi_t *gi;
    ci_profile_info_t info;
    CHECK(check_gi(__func__, handle, count, &gi));
    CHECK(ci_profile(gi, index, SHARED_ENGINES, &info));
    *count = 0;
    for (unsigned start = 0; start < profile_of(gi)->slices; start += ci_step(info.slices))
        *count += room_for_ci(gi, start, info.slices);
    return SUCCESS;
}

API int nvmlGpuInstanceGetComputeInstancePossiblePlacements(gi_t *handle, unsigned index,
                                                            placement_t *placements,
                                                            unsigned *count)
{
    LOCKED;
    gi_t *gi;
    ci_profile_info_t info;
    unsigned found = 0;
    CHECK(check_gi(__func__, handle, count, &gi));
    CHECK(ci_profile(gi, index, SHARED_ENGINES, &info));
    unsigned room = placements != NULL ? *count : 0;
    for (unsigned start = 0; start + info.slices <= profile_of(gi)->slices;
         start += ci_step(info.slices), found++)
        if (found < room)
            placements[found] = (placement_t){start, info.slices};
    *count = found;
    return placements == NULL || found <= room ? SUCCESS : INSUFFICIENT_SIZE;
}

static int create_ci(gi_t *gi, unsigned index, const placement_t *placement, ci_t **made)
{
    int token, result;
    CHECK(state_begin(gi->gpu->machine, &token));
    *made = placement != NULL ? place_ci_at(gi, index, placement->start, -1, &result)
                              : place_ci(gi, index, -1, &result);
    return changed(gi->gpu, token, result);
}

API int nvmlGpuInstanceCreateComputeInstance(gi_t *handle, unsigned index, ci_t **made)
{
    LOCKED;
    gi_t *gi;
    CHECK(check_gi(__func__, handle, made, &gi));
    return create_ci(gi, index, NULL, made);
}

API int nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi_t *handle, unsigned index,
                                                          const placement_t *placement, ci_t **made)
{
    LOCKED;
    gi_t *gi;
    CHECK(check_gi(__func__, handle, made, &gi));
    return placement == NULL ? INVALID_ARGUMENT : create_ci(gi, index, placement, made);
}

API int nvmlGpuInstanceGetComputeInstanceById(gi_t *handle, unsigned id, ci_t **found)
{
    LOCKED;
    gi_t *gi;
    CHECK(check_gi(__func__, handle, found, &gi));
    if (id >= MAX_CIS || !gi->cis[id].used)
        return NOT_FOUND;
    *found = &gi->cis[id];
    return SUCCESS;
}

API int nvmlGpuInstanceGetComputeInstances(gi_t *handle, unsigned index, ci_t **found,
                                           unsigned *count)
{
    LOCKED;
    gi_t *gi;
    CHECK(check_gi(__func__, handle, count, &gi));
    if (found == NULL)
        return INVALID_ARGUMENT;
    *count = 0;
    for (unsigned i = 0; i < MAX_CIS; i++)
        if (gi->cis[i].used && gi->cis[i].profile == index)
            found[(*count)++] = &gi->cis[i];
    return SUCCESS;
}

static int check_ci(const char *function, const void *handle, const void *out, ci_t **ci)
{
    gpu_t *gpu;
    gi_t *gi;
    machine_t *machine = selected_machine();
    if (!locate(handle, &gpu, &gi, ci))
        return machine == NULL || machine->init_count == 0 ? UNINITIALIZED : NOT_FOUND;
    if (*ci == NULL)
        return INVALID_ARGUMENT;
    return check_gpu(function, gpu, out, &gpu);
}

typedef struct {
    device_t device;
    gi_t *gi;
    unsigned id, profile_id;
    placement_t placement;
} ci_info_t;

API int nvmlComputeInstanceGetInfo_v2(ci_t *handle, ci_info_t *info)
{
    LOCKED;
    ci_t *ci;
    CHECK(check_ci(__func__, handle, info, &ci));
    *info = (ci_info_t){ci->gi->gpu, ci->gi, (unsigned)(ci - ci->gi->cis), ci->profile,
                        {ci->start, ci->size}};
    return SUCCESS;
}

API int nvmlComputeInstanceDestroy(ci_t *handle)
{
    LOCKED;
    ci_t *ci;
    int token;
    CHECK(check_ci(__func__, handle, handle, &ci));
    CHECK(state_begin(ci->gi->gpu->machine, &token));
    ci->used = false;
    return changed(ci->gi->gpu, token, SUCCESS);
}

/* ---- MIG devices ---------------------------------------------------------------------------------- */

API int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *count)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, count, &gpu));
    *count = 0; /* also while the mode is off */
    for (unsigned i = 0; gpu->mig_mode == 1 && i < gpu->mig_profile_count; i++)
        if (gpu->mig_profiles[i].instances > *count)
            *count = gpu->mig_profiles[i].instances;
    return SUCCESS;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *mig)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, mig, &gpu));
    if (!gpu->has_mig || gpu->mig_mode != 1)
        return NOT_SUPPORTED;
    for (unsigned g = 0; g < MAX_GIS; g++)
        for (unsigned c = 0; gpu->gis[g].used && c < MAX_CIS; c++)
            if (gpu->gis[g].cis[c].used && index-- == 0) {
                *mig = &gpu->gis[g].cis[c];
                return SUCCESS;
            }
    return NOT_FOUND;
}

unsigned mig_index(const ci_t *wanted)
{
    const gpu_t *gpu = wanted->gi->gpu;
    unsigned index = 0;
    for (unsigned g = 0; g < MAX_GIS; g++)
        for (unsigned c = 0; gpu->gis[g].used && c < MAX_CIS; c++) {
            if (&gpu->gis[g].cis[c] == wanted)
                return index;
            index += gpu->gis[g].cis[c].used;
        }
    return index;
}

API int nvmlDeviceIsMigDeviceHandle(device_t device, unsigned *is_mig)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, is_mig, &gpu, &ci));
    *is_mig = ci != NULL;
    return SUCCESS;
}

static int check_mig(const char *function, device_t device, const void *out, ci_t **ci)
{
    gpu_t *gpu;
    CHECK(check_any(function, device, out, &gpu, ci));
    return *ci != NULL ? SUCCESS : INVALID_ARGUMENT;
}

API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t mig, device_t *device)
{
    LOCKED;
    ci_t *ci;
    CHECK(check_mig(__func__, mig, device, &ci));
    *device = ci->gi->gpu;
    return SUCCESS;
}

typedef struct {
    unsigned multiprocessors, copy, decoders, encoders, jpeg, ofa, gi_slices, ci_slices;
    u64 memory_mb;
} attributes_t;

API int nvmlDeviceGetAttributes_v2(device_t device, attributes_t *attributes)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(__func__, device, attributes, &gpu, &ci));
    if (ci == NULL)
        return NOT_SUPPORTED; /* of MIG devices alone */
    const mig_profile_t *p = profile_of(ci->gi);
    *attributes = (attributes_t){p->multiprocessors * ci->size / p->slices, p->copy_engines,
                                 p->decoders, p->encoders, p->jpeg_engines, p->ofa_engines,
                                 p->slices, ci->size, p->memory_mb};
    return SUCCESS;
}

API int nvmlDeviceGetAttributes(device_t device, attributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(device, attributes);
}

API int nvmlDeviceGetGpuInstanceId(device_t mig, unsigned *id)
{
    LOCKED;
    ci_t *ci;
    CHECK(check_mig(__func__, mig, id, &ci));
    *id = ci->gi->id;
    return SUCCESS;
}

API int nvmlDeviceGetComputeInstanceId(device_t mig, unsigned *id)
{
    LOCKED;
    ci_t *ci;
    CHECK(check_mig(__func__, mig, id, &ci));
    *id = (unsigned)(ci - ci->gi->cis);
    return SUCCESS;
}

/* ---- what somebody else does ----------------------------------------------------------------------- */

static int others_create(gpu_t *gpu, unsigned id, unsigned start)
{
    int result = NOT_SUPPORTED;
    const mig_profile_t *profile = gpu->mig_mode == 1 ? profile_by_id(gpu, id) : NULL;
    gi_t *gi = profile == NULL
                   ? NULL
                   : place_gi(gpu, (unsigned)(profile - gpu->mig_profiles), start, &result);
    for (unsigned p = 0; gi != NULL && p < sizeof ci_slices / sizeof *ci_slices; p++)
        if (ci_slices[p] == profile->slices)
            place_ci(gi, p, -1, &result);
    return result;
}

static int others_destroy(gpu_t *gpu, unsigned id)
{
    if (id >= MAX_GIS || !gpu->gis[id].used)
        return NOT_FOUND;
    for (unsigned c = 0; c < MAX_CIS; c++)
        gpu->gis[id].cis[c].used = false;
    gpu->gis[id].used = false;
    return SUCCESS;
}

/* "create <profile id> <start>", "destroy <GPU instance id>" or "mode <0 or 1>". */
int mig_control(gpu_t *gpu, char *words)
{
    char *verb = next_word(&words);
    long long a = 0, b = 0;
    int token;
    if (verb == NULL || !gpu->has_mig || !read_number(next_word(&words), 0, INT_MAX, &a))
        return INVALID_ARGUMENT;
    bool create = strcmp(verb, "create") == 0;
    if ((create && !read_number(next_word(&words), 0, INT_MAX, &b)) || words != NULL)
        return INVALID_ARGUMENT;
    CHECK(state_begin(gpu->machine, &token));
    int result = INVALID_ARGUMENT;
    if (create)
        result = others_create(gpu, (unsigned)a, (unsigned)b);
    else if (strcmp(verb, "destroy") == 0)
        result = others_destroy(gpu, (unsigned)a);
    else if (strcmp(verb, "mode") == 0 && a <= 1) {
        result = a == 0 && has_instances(gpu) ? IN_USE : SUCCESS;
        if (result == SUCCESS)
            gpu->mig_mode = (unsigned)a;
    }
    return changed(gpu, token, result);
}
