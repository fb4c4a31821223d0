/*
 * Event sets, and the control file whose lines inject events into a running process.
 *
 * Waiting sleeps in poll(2), outside the lock, on an eventfd for what this process posts and on
 * inotify for what others append to the control file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "simulated.h"

enum { MAX_SETS = 64, MAX_QUEUE = 64 };

typedef struct {
    device_t device;
    u64 type, data;
    unsigned gi, ci;
} event_t;

typedef struct {
    bool used, closing;
    machine_t *machine;
    int wake;
    unsigned waiters;
    u64 masks[MAX_GPUS];
    event_t queue[MAX_QUEUE];
    unsigned head, count;
} set_t;

static set_t sets[MAX_SETS];

static bool is_set(const set_t *set)
{
    uintptr_t at = (uintptr_t)set, first = (uintptr_t)sets;
    return at >= first && at < first + sizeof sets && (at - first) % sizeof *sets == 0 && set->used
           && !set->closing;
}

static void wake(const set_t *set)
{
    uint64_t one = 1;
    if (write(set->wake, &one, sizeof one) < 0)
        return; /* it is full, so the waiter wakes anyway */
}

static void release(set_t *set)
{
    set->closing = true;
    if (set->waiters > 0) {
        wake(set);
        return; /* the last waiter releases it */
    }
    close(set->wake);
    set->used = false;
}

void events_wake(machine_t *machine)
{
    for (unsigned i = 0; i < MAX_SETS; i++)
        if (sets[i].used && sets[i].machine == machine)
            wake(&sets[i]);
}

void events_drop(machine_t *machine)
{
    for (unsigned i = 0; i < MAX_SETS; i++)
        if (sets[i].used && !sets[i].closing && sets[i].machine == machine)
            release(&sets[i]);
}

/* Events that nobody registered for, and those beyond a full queue, are lost. */
int events_post(gpu_t *gpu, u64 type, u64 data, unsigned gi, unsigned ci)
{
    for (unsigned i = 0; i < MAX_SETS; i++) {
        set_t *set = &sets[i];
        if (!set->used || set->closing || set->machine != gpu->machine
            || (set->masks[gpu - gpu->machine->gpus] & type) == 0 || set->count >= MAX_QUEUE)
            continue;
        set->queue[(set->head + set->count++) % MAX_QUEUE] = (event_t){gpu, type, data, gi, ci};
    }
    return SUCCESS;
}

/* Obeys what was appended to the control file since the last look. */
void control_follow(machine_t *machine)
{
    char error[MAX_LINE], seen[4096];
    if (machine->control_path[0] == '\0')
        return;
    if (machine->inotify < 0) {
        machine->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (machine->inotify >= 0)
            inotify_add_watch(machine->inotify, machine->control_path, IN_MODIFY | IN_CLOSE_WRITE);
    }
    while (machine->inotify >= 0 && read(machine->inotify, seen, sizeof seen) > 0)
        ;
    FILE *file = fopen(machine->control_path, "re");
    char *text = file != NULL ? malloc(MAX_DESCRIPTION) : NULL;
    if (text != NULL && fseeko(file, machine->control_at, SEEK_SET) == 0) {
        size_t length = fread(text, 1, MAX_DESCRIPTION, file);
        while (length > 0 && text[length - 1] != '\n')
            length--; /* the rest of the line is still to come */
        machine->control_at += (off_t)length;
        if (length > 0 && control(machine, text, length, error, sizeof error) != SUCCESS)
            fprintf(stderr, "%s (%s)\n", error, machine->control_path);
    }
    free(text);
    if (file != NULL)
        fclose(file);
}

API int nvmlEventSetCreate(set_t **made)
{
    LOCKED;
    CHECK(check_machine(__func__, made));
    for (unsigned i = 0; i < MAX_SETS; i++) {
        if (sets[i].used)
            continue;
        int file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (file < 0)
            return UNKNOWN;
        memset(&sets[i], 0, sizeof sets[i]);
        sets[i].used = true;
        sets[i].machine = selected_machine();
        sets[i].wake = file;
        *made = &sets[i];
        return SUCCESS;
    }
    return OUT_OF_MEMORY;
}

API int nvmlEventSetFree(set_t *set)
{
    LOCKED;
    if (!is_set(set))
        return selected_machine() == NULL ? UNINITIALIZED : INVALID_ARGUMENT;
    release(set);
    return SUCCESS;
}

API int nvmlDeviceGetSupportedEventTypes(device_t device, u64 *types)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, types, &gpu));
    *types = gpu->event_types;
    return SUCCESS;
}

API int nvmlDeviceRegisterEvents(device_t device, u64 types, set_t *set)
{
    LOCKED;
    gpu_t *gpu;
    CHECK(check_gpu(__func__, device, set, &gpu));
    if (!is_set(set) || set->machine != gpu->machine)
        return INVALID_ARGUMENT;
    if ((types & ~gpu->event_types) != 0)
        return NOT_SUPPORTED;
    set->masks[gpu - gpu->machine->gpus] |= types;
    return SUCCESS;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One look: an event, a fault, or TIMEOUT for nothing yet. */
static int look(set_t *set, event_t *event)
{
    uint64_t drained;
    if (read(set->wake, &drained, sizeof drained) < 0)
        drained = 0;
    if (set->closing || set->machine->init_count == 0)
        return UNINITIALIZED;
    control_follow(set->machine);
    CHECK(fault_of(&set->machine->faults, "nvmlEventSetWait_v2"));
    if (set->count == 0)
        return TIMEOUT;
    *event = set->queue[set->head];
    set->head = (set->head + 1) % MAX_QUEUE;
    set->count--;
    return SUCCESS;
}

API int nvmlEventSetWait_v2(set_t *set, event_t *event, unsigned timeout_ms)
{
    int64_t deadline = now_ms() + timeout_ms;
    int result;
    simulated_lock();
    if (!is_set(set) || event == NULL) {
        int none = selected_machine() == NULL ? UNINITIALIZED : INVALID_ARGUMENT;
        simulated_unlock(&none);
        return none;
    }
    set->waiters++;
    for (;;) {
        result = look(set, event);
        int64_t left = deadline - now_ms();
        if (result != TIMEOUT || left <= 0)
            break;
        struct pollfd files[2] = {{set->wake, POLLIN, 0}, {set->machine->inotify, POLLIN, 0}};
        int held = 0;
        simulated_unlock(&held);
        poll(files, 2, left > 3600000 ? 3600000 : (int)left); /* a negative file is skipped */
        simulated_lock();
    }
    set->waiters--;
    if (set->closing && set->waiters == 0) {
        close(set->wake);
        set->used = false;
    }
    simulated_unlock(&result);
    return result;
}
