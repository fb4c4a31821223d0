/*
 * Reads descriptions and control lines: one "key value" per line, which
 * nvml_driver/simulated/profile.py writes from a JSON profile, where the checks that a person
 * should understand are made. Here a bad line is refused with its number, and no length or count
 * is taken on trust.
 *
 *     nvml-simulated 2
 *     driver_version 580.95.05          ... of the machine, until the first
 *     gpu
 *     minor 0                           ... of that GPU, until the next
 *
 * Control lines change a running machine, in the profile's script or in the control file:
 *
 * A GPU is meant by its index or its PCI bus id (0000:00:1e.0).
 *
 *     fault <gpu or -> <function or *> <result> [<first call> [<last call>]]
 *     clear <gpu or -> <function or *>
 *     event <gpu> <type> <data> [<GPU instance> <compute instance>]
 *     recovery <gpu> <what NVML says that has to be done, 0 for nothing>
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulated.h"

bool read_number(const char *text, long long low, long long high, long long *out)
{
    char *end = NULL;
    if (text == NULL)
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
        return false;
    *out = value;
    return true;
}

/* The next word of a line, which is cut up; NULL at its end. */
char *next_word(char **rest)
{
    char *word = *rest;
    if (word == NULL || *word == '\0')
        return NULL;
    char *space = strchr(word, ' ');
    if (space != NULL)
        *space++ = '\0';
    *rest = space;
    return *word != '\0' ? word : NULL;
}

static bool read_text(const char *text, char *out, size_t size)
{
    size_t length = strlen(text);
    if (length == 0 || length >= size)
        return false;
    memcpy(out, text, length + 1);
    return true;
}

static bool next_number(char **rest, long long low, long long high, unsigned *out)
{
    long long value = 0;
    if (!read_number(next_word(rest), low, high, &value))
        return false;
    *out = (unsigned)value;
    return true;
}

static bool read_fault(char *text, faults_t *faults)
{
    unsigned result = 0;
    char *function = next_word(&text);
    if (faults->count >= MAX_FAULTS || function == NULL)
        return false;
    fault_t *fault = &faults->list[faults->count];
    *fault = (fault_t){.first = 1, .last = UINT_MAX};
    if (!read_text(function, fault->function, MAX_TEXT) || !next_number(&text, 1, 999, &result))
        return false;
    fault->result = (int)result;
    if (text != NULL && !next_number(&text, 1, UINT_MAX, &fault->first))
        return false;
    if (text != NULL && !next_number(&text, 1, UINT_MAX, &fault->last))
        return false;
    if (text != NULL || fault->last < fault->first)
        return false;
    faults->count++;
    return true;
}

/* index id slices instances SMs copy dec enc jpeg ofa MiB size start[,start...] name */
static bool read_mig_profile(char *text, gpu_t *gpu)
{
    unsigned memory = 0;
    if (gpu->mig_profile_count >= MAX_MIG_PROFILES)
        return false;
    mig_profile_t *profile = &gpu->mig_profiles[gpu->mig_profile_count];
    memset(profile, 0, sizeof *profile);
    if (!next_number(&text, 0, 63, &profile->index) || !next_number(&text, 0, 1023, &profile->id)
        || !next_number(&text, 1, MAX_SLICES, &profile->slices)
        || !next_number(&text, 1, MAX_SLICES, &profile->instances)
        || !next_number(&text, 0, 65535, &profile->multiprocessors)
        || !next_number(&text, 0, 255, &profile->copy_engines)
        || !next_number(&text, 0, 255, &profile->decoders)
        || !next_number(&text, 0, 255, &profile->encoders)
        || !next_number(&text, 0, 255, &profile->jpeg_engines)
        || !next_number(&text, 0, 255, &profile->ofa_engines)
        || !next_number(&text, 0, INT_MAX, &memory)
        || !next_number(&text, 1, MAX_SLICES, &profile->size)
        || (profile->size & (profile->size - 1)) != 0)
        return false;
    profile->memory_mb = memory;
    char *starts = next_word(&text);
    for (char *comma = starts; starts != NULL; starts = comma) {
        long long start = 0;
        comma = strchr(starts, ',');
        if (comma != NULL)
            *comma++ = '\0';
        if (profile->start_count >= MAX_PLACEMENTS
            || !read_number(starts, 0, MAX_SLICES - profile->size, &start)
            || start % profile->size != 0)
            return false;
        profile->starts[profile->start_count++] = (unsigned)start;
    }
    if (profile->start_count == 0 || text == NULL || !read_text(text, profile->name, MAX_TEXT))
        return false;
    gpu->mig_profile_count++;
    return true;
}

static bool read_boot_instance(char *text, gpu_t *gpu)
{
    unsigned index = 0, start = 0;
    if (gpu->boot_instance_count >= MAX_SLICES || !next_number(&text, 0, 63, &index)
        || !next_number(&text, 0, MAX_SLICES - 1, &start) || text != NULL)
        return false;
    for (unsigned i = 0; i < gpu->mig_profile_count; i++) {
        if (gpu->mig_profiles[i].index == index) {
            gpu->boot_instances[gpu->boot_instance_count].profile = i;
            gpu->boot_instances[gpu->boot_instance_count++].start = start;
            return true;
        }
    }
    return false;
}

static bool read_gpu_line(gpu_t *gpu, const char *key, char *value)
{
    long long number = 0;
    int end = -1;
    if (strcmp(key, "name") == 0)
        return read_text(value, gpu->name, MAX_TEXT);
    if (strcmp(key, "uuid") == 0)
        return read_text(value, gpu->uuid, MAX_TEXT) && strchr(value, ' ') == NULL;
    if (strcmp(key, "compute_capability") == 0)
        return sscanf(value, "%3d.%3d%n", &gpu->cc_major, &gpu->cc_minor, &end) == 2
               && value[end] == '\0';
    if (strcmp(key, "pci_bus_id") == 0)
        return sscanf(value, "%8x:%2x:%2x.0%n", &gpu->pci_domain, &gpu->pci_bus, &gpu->pci_device,
                      &end) == 3
               && end > 0 && value[end] == '\0' && gpu->pci_device < 32;
    if (strcmp(key, "fault") == 0)
        return read_fault(value, &gpu->faults);
    if (strcmp(key, "mig_profile") == 0)
        return read_mig_profile(value, gpu);
    if (strcmp(key, "mig_instance") == 0)
        return read_boot_instance(value, gpu);
    if (strcmp(key, "memory_total") == 0) {
        gpu->has_memory = read_number(value, 0, LLONG_MAX, &number);
        gpu->memory_total = (u64)number;
        return gpu->has_memory;
    }
    if (!read_number(value, INT_MIN, UINT_MAX, &number))
        return false;
    if (strcmp(key, "numa_node") == 0) {
        gpu->has_numa = true;
        gpu->numa_node = (int)number;
        return number <= INT_MAX;
    }
    if (number < 0)
        return false;
    if (strcmp(key, "minor") == 0)
        gpu->minor = (unsigned)number;
    else if (strcmp(key, "brand") == 0)
        gpu->brand = (int)(number & INT_MAX);
    else if (strcmp(key, "architecture") == 0)
        gpu->architecture = (unsigned)number;
    else if (strcmp(key, "memory_used") == 0)
        gpu->memory_used = (u64)number;
    else if (strcmp(key, "pci_device_id") == 0)
        gpu->pci_device_id = (unsigned)number;
    else if (strcmp(key, "pci_subsystem_id") == 0)
        gpu->pci_subsystem_id = (unsigned)number;
    else if (strcmp(key, "event_types") == 0)
        gpu->event_types = (u64)number;
    else if (strcmp(key, "addressing_mode") == 0)
        gpu->has_addressing_mode = true, gpu->addressing_mode = (unsigned)number;
    else if (strcmp(key, "mig_mode") == 0 && number <= 1)
        gpu->has_mig = true, gpu->boot_mig_mode = (unsigned)number;
    else if (strcmp(key, "mig_slices") == 0 && (number == 4 || number == 8))
        gpu->mig_slices = (unsigned)number;
    else
        return false;
    return true;
}

static bool read_machine_line(machine_t *machine, const char *key, char *value)
{
    long long number = 0;
    if (strcmp(key, "driver_version") == 0)
        return read_text(value, machine->driver_version, MAX_TEXT);
    if (strcmp(key, "nvml_version") == 0)
        return read_text(value, machine->nvml_version, MAX_TEXT);
    if (strcmp(key, "fault") == 0)
        return read_fault(value, &machine->faults);
    if (strcmp(key, "state") == 0)
        return read_text(value, machine->state_path, MAX_PATH - 16);
    if (strcmp(key, "control") == 0)
        return read_text(value, machine->control_path, MAX_PATH);
    if (strcmp(key, "cuda_driver_version") == 0 && read_number(value, 0, INT_MAX, &number)) {
        machine->cuda_driver_version = (int)number;
        return true;
    }
    return false;
}

static int complain(char *error, size_t size, unsigned line, const char *what)
{
    if (error != NULL && size > 0)
        snprintf(error, size, "simulated NVML: line %u: %s", line, what);
    return INVALID_ARGUMENT;
}

typedef int line_fn(void *context, unsigned number, char *line, const char **complaint);

/* Cuts a text into lines; stops at the first that is refused. */
static int each_line(const char *text, size_t length, line_fn *read, void *context, char *error,
                     size_t error_size)
{
    static char line[MAX_LINE]; /* under the lock */
    unsigned number = 0;
    if (length > MAX_DESCRIPTION)
        return complain(error, error_size, 0, "the description is larger than 1 MiB");
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        size_t end = newline != NULL ? (size_t)(newline - text) : length;
        const char *complaint = "unknown key or bad value";
        number++;
        if (end - at >= sizeof line || memchr(text + at, '\0', end - at) != NULL)
            return complain(error, error_size, number, "the line is too long or not text");
        memcpy(line, text + at, end - at);
        line[end - at] = '\0';
        at = end + 1;
        if (read(context, number, line, &complaint) != SUCCESS)
            return complain(error, error_size, number, complaint);
    }
    return number > 0 ? SUCCESS : complain(error, error_size, 1, "must be 'nvml-simulated 2'");
}

struct reading {
    machine_t *machine;
    gpu_t *gpu;
};

static int count_gpus(void *context, unsigned number, char *line, const char **complaint)
{
    machine_t *machine = context;
    (void)number;
    *complaint = "more than 256 GPUs";
    if (strcmp(line, "gpu") == 0 && ++machine->gpu_count > MAX_GPUS)
        return INVALID_ARGUMENT;
    return SUCCESS;
}

static int read_line(void *context, unsigned number, char *line, const char **complaint)
{
    struct reading *reading = context;
    if (number == 1) {
        *complaint = "must be 'nvml-simulated 2'";
        return strcmp(line, "nvml-simulated 2") == 0 ? SUCCESS : INVALID_ARGUMENT;
    }
    if (line[0] == '\0')
        return SUCCESS;
    if (strcmp(line, "gpu") == 0) {
        reading->gpu = reading->gpu == NULL ? reading->machine->gpus : reading->gpu + 1;
        return SUCCESS;
    }
    char *value = strchr(line, ' ');
    if (value == NULL) {
        *complaint = "must be 'key value'";
        return INVALID_ARGUMENT;
    }
    *value++ = '\0';
    bool good = reading->gpu != NULL ? read_gpu_line(reading->gpu, line, value)
                                     : read_machine_line(reading->machine, line, value);
    return good ? SUCCESS : INVALID_ARGUMENT;
}

static int connect_handles(machine_t *machine, char *error, size_t error_size)
{
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        gpu_t *gpu = &machine->gpus[i];
        gpu->machine = machine;
        for (unsigned p = 0; p < gpu->mig_profile_count; p++) {
            const mig_profile_t *profile = &gpu->mig_profiles[p];
            for (unsigned s = 0; s < profile->start_count; s++)
                if (profile->starts[s] + profile->size > gpu->mig_slices)
                    return complain(error, error_size, 0, "a MIG placement beyond mig_slices");
        }
        for (unsigned g = 0; g < MAX_GIS; g++) {
            gpu->gis[g].gpu = gpu;
            gpu->gis[g].id = g;
            for (unsigned c = 0; c < MAX_CIS; c++)
                gpu->gis[g].cis[c].gi = &gpu->gis[g];
        }
    }
    return SUCCESS;
}

machine_t *describe(const char *text, size_t length, char *error, size_t error_size)
{
    machine_t *machine = calloc(1, sizeof *machine);
    if (machine == NULL)
        return NULL;
    machine->inotify = -1;
    struct reading reading = {machine, NULL};
    int result = each_line(text, length, count_gpus, machine, error, error_size);
    if (result == SUCCESS) {
        machine->gpus = calloc(machine->gpu_count + 1, sizeof(gpu_t));
        result = machine->gpus == NULL ? OUT_OF_MEMORY : SUCCESS;
    }
    for (unsigned i = 0; result == SUCCESS && i < machine->gpu_count; i++)
        machine->gpus[i].event_types = 0xb; /* single and double bit ECC errors, XIDs */
    if (result == SUCCESS)
        result = each_line(text, length, read_line, &reading, error, error_size);
    if (result == SUCCESS)
        result = connect_handles(machine, error, error_size);
    if (result == SUCCESS)
        return machine;
    free(machine->gpus);
    free(machine);
    return NULL;
}

/* ---- control lines ----------------------------------------------------------------------------- */

/* The GPU of that index or PCI bus id, NULL if there is none. */
static gpu_t *gpu_called(machine_t *machine, const char *where)
{
    long long index = 0;
    unsigned domain = 0, bus = 0, device = 0;
    int end = -1;
    if (read_number(where, 0, (long long)machine->gpu_count - 1, &index))
        return &machine->gpus[index];
    if (where == NULL || sscanf(where, "%8x:%2x:%2x.0%n", &domain, &bus, &device, &end) != 3
        || end < 0 || where[end] != '\0')
        return NULL;
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        gpu_t *gpu = &machine->gpus[i];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == device)
            return gpu;
    }
    return NULL;
}

static int control_line(void *context, unsigned number, char *line, const char **complaint)
{
    machine_t *machine = context;
    (void)number;
    char *rest = line;
    char *verb = next_word(&rest);
    if (verb == NULL)
        return SUCCESS;
    char *where = next_word(&rest);
    gpu_t *gpu = gpu_called(machine, where);
    *complaint = "there is no such GPU";
    if (where == NULL || (gpu == NULL && strcmp(where, "-") != 0))
        return INVALID_ARGUMENT;
    faults_t *faults = gpu != NULL ? &gpu->faults : &machine->faults;
    *complaint = "unknown command or bad value";
    if (strcmp(verb, "fault") == 0)
        return rest != NULL && read_fault(rest, faults) ? SUCCESS : INVALID_ARGUMENT;
    if (strcmp(verb, "clear") == 0 && rest != NULL) {
        unsigned kept = 0;
        for (unsigned i = 0; i < faults->count; i++)
            if (strcmp(rest, "*") != 0 && strcmp(faults->list[i].function, rest) != 0)
                faults->list[kept++] = faults->list[i];
        faults->count = kept;
        return SUCCESS;
    }
    if (strcmp(verb, "recovery") == 0 && gpu != NULL)
        return next_number(&rest, 0, 255, &gpu->recovery_action) && rest == NULL ? SUCCESS
                                                                                 : INVALID_ARGUMENT;
    if (strcmp(verb, "mig") == 0 && gpu != NULL) {
        *complaint = "the MIG device cannot be made or destroyed";
        return mig_control(gpu, rest);
    }
    if (strcmp(verb, "event") == 0 && gpu != NULL) {
        long long type = 0, data = 0;
        unsigned gi = UINT_MAX, ci = UINT_MAX;
        if (!read_number(next_word(&rest), 1, LLONG_MAX, &type)
            || !read_number(next_word(&rest), 0, LLONG_MAX, &data)
            || (rest != NULL
                && (!next_number(&rest, 0, UINT_MAX, &gi) || !next_number(&rest, 0, UINT_MAX, &ci)))
            || rest != NULL)
            return INVALID_ARGUMENT;
        return events_post(gpu, (u64)type, (u64)data, gi, ci);
    }
    return INVALID_ARGUMENT;
}

int control(machine_t *machine, const char *text, size_t length, char *error, size_t error_size)
{
    int result = each_line(text, length, control_line, machine, error, error_size);
    events_wake(machine);
    return result;
}
