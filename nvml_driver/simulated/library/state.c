/*
 * The state file: MIG mode and instances outlive the process that made them, as they do in
 * hardware, and two processes see the same. Without the file they are as after a boot, so that
 * deleting it is a reboot. Written to a new file that replaces the old one, under a lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "simulated.h"

enum { OPERATING_SYSTEM = 17 };

static gpu_t *by_uuid(machine_t *machine, const char *uuid)
{
    for (unsigned i = 0; uuid != NULL && i < machine->gpu_count; i++)
        if (strcmp(machine->gpus[i].uuid, uuid) == 0)
            return &machine->gpus[i];
    return NULL;
}

static void clear(machine_t *machine)
{
    for (unsigned i = 0; i < machine->gpu_count; i++)
        for (unsigned g = 0; g < MAX_GIS; g++) {
            machine->gpus[i].gis[g].used = false;
            for (unsigned c = 0; c < MAX_CIS; c++)
                machine->gpus[i].gis[g].cis[c].used = false;
        }
}

/*
 * "mode UUID 1", "gi UUID profile start", "ci UUID gi slot profile serial", "created UUID count";
 * other lines are skipped.
 */
static void read_state_line(machine_t *machine, char *line)
{
    int ignored;
    long long numbers[4] = {0};
    char *rest = line;
    char *verb = next_word(&rest);
    gpu_t *gpu = by_uuid(machine, next_word(&rest));
    if (verb == NULL || gpu == NULL)
        return;
    for (unsigned i = 0; i < 4 && rest != NULL; i++)
        if (!read_number(next_word(&rest), 0, INT_MAX, &numbers[i]))
            return;
    unsigned a = (unsigned)numbers[0], b = (unsigned)numbers[1], c = (unsigned)numbers[2];
    if (strcmp(verb, "mode") == 0 && gpu->has_mig)
        gpu->mig_mode = a == 1;
    else if (strcmp(verb, "gi") == 0 && a < gpu->mig_profile_count)
        place_gi(gpu, a, b, &ignored);
    else if (strcmp(verb, "created") == 0)
        gpu->created = a;
    else if (strcmp(verb, "ci") == 0 && a < MAX_GIS && gpu->gis[a].used && b < MAX_CIS) {
        ci_t *ci = place_ci(&gpu->gis[a], c, (int)b, &ignored);
        if (ci != NULL)
            ci->serial = (unsigned)numbers[3];
    }
}

void state_read(machine_t *machine)
{
    char line[MAX_LINE];
    if (machine->state_path[0] == '\0')
        return;
    FILE *file = fopen(machine->state_path, "re");
    if (file == NULL) {
        mig_boot(machine);
        return;
    }
    clear(machine);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        read_state_line(machine, line);
    }
    fclose(file);
}

int state_begin(machine_t *machine, int *token)
{
    char path[MAX_PATH];
    *token = -1;
    if (machine->state_path[0] == '\0')
        return SUCCESS;
    snprintf(path, sizeof path, "%.4080s.lock", machine->state_path);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || flock(file, LOCK_EX) != 0) {
        if (file >= 0)
            close(file);
        return OPERATING_SYSTEM;
    }
    *token = file;
    state_read(machine);
    return SUCCESS;
}

static void write_gpu(FILE *file, const gpu_t *gpu)
{
    if (!gpu->has_mig)
        return;
    fprintf(file, "mode %s %u\n", gpu->uuid, gpu->mig_mode);
    for (unsigned g = 0; g < MAX_GIS; g++) {
        const gi_t *gi = &gpu->gis[g];
        if (!gi->used)
            continue;
        fprintf(file, "gi %s %u %u\n", gpu->uuid, gi->profile, gi->start);
        for (unsigned c = 0; c < MAX_CIS; c++)
            if (gi->cis[c].used)
                fprintf(file, "ci %s %u %u %u %u\n", gpu->uuid, g, c, gi->cis[c].profile,
                        gi->cis[c].serial);
    }
    fprintf(file, "created %s %u\n", gpu->uuid, gpu->created);
}

int state_end(machine_t *machine, int token)
{
    char path[MAX_PATH];
    if (token < 0)
        return SUCCESS;
    snprintf(path, sizeof path, "%.4080s.new", machine->state_path);
    FILE *file = fopen(path, "we");
    bool good = file != NULL;
    for (unsigned i = 0; good && i < machine->gpu_count; i++)
        write_gpu(file, &machine->gpus[i]);
    if (file != NULL)
        good = fclose(file) == 0 && good;
    good = good && rename(path, machine->state_path) == 0;
    if (!good)
        state_read(machine); /* what could not be stored has not happened */
    close(token);
    return good ? SUCCESS : OPERATING_SYSTEM;
}
