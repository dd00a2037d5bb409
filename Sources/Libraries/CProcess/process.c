#define _GNU_SOURCE
#include "CProcess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// More groups than a stream has slots (4096).
enum { GROUPS_MAX = 8192, KILL_DELAY_MS = 2000, STEP_MS = 20 };

// Returns a duplicate that is at least `least` if needed, so that the placement below overwrites nothing.
static int above(int descriptor, int least) {
    return descriptor >= 0 && descriptor < least ? fcntl(descriptor, F_DUPFD_CLOEXEC, least) : descriptor;
}

static void place(int descriptor, int number) {
    if (descriptor >= 0) dup2(descriptor, number);
}

// The parent's handlers must not run in the child: they write to a pipe that both share.
static void reset_signals(void) {
    struct sigaction action;
    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, NULL, &action) != 0) continue;
        // Signals ignored at the start stay ignored, as `nohup` requires; SIGPIPE is ignored by this program itself.
        if (action.sa_handler == SIG_IGN && number != SIGPIPE) continue;
        memset(&action, 0, sizeof action);
        action.sa_handler = SIG_DFL;
        sigaction(number, &action, NULL);
    }
}

static void become(const struct wakegate_command *command, int report) {
    int32_t group = getpid();
    setpgid(0, 0);
    // Before the command runs: if the parent is killed now, the guard still learns of the group, since it sees the end
    // of the pipe only when this process has closed its own copy in exec.
    while (write(command->guard, &group, sizeof group) < 0 && errno == EINTR) {}
    int least = command->progress < 0 ? 3 : command->progress_number + 1;
    int input = above(command->input, least), output = above(command->output, least);
    int errors = above(command->errors, least), progress = above(command->progress, least);
    report = above(report, least);
    place(input, STDIN_FILENO);
    place(output, STDOUT_FILENO);
    place(errors, STDERR_FILENO);
    place(progress, command->progress_number);
    reset_signals();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(command->program, command->arguments, command->environment);
    int32_t reason = errno;
    while (write(report, &reason, sizeof reason) < 0 && errno == EINTR) {}
    _exit(127);
}

pid_t wakegate_command_start(const struct wakegate_command *command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) become(command, ends[1]);
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid > 0) {
        int32_t reason = 0;
        ssize_t count;
        while ((count = read(ends[0], &reason, sizeof reason)) < 0 && errno == EINTR) {}
        if (count == sizeof reason) {
            int32_t forgotten = -pid;
            while (write(command->guard, &forgotten, sizeof forgotten) < 0 && errno == EINTR) {}
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
            pid = -1;
            saved = reason;
        }
    }
    close(ends[0]);
    errno = saved;
    return pid;
}

struct registry {
    pid_t groups[GROUPS_MAX];
    int count;
};

static void take(struct registry *registry, int32_t record) {
    if (record > 0 && registry->count < GROUPS_MAX) {
        registry->groups[registry->count++] = record;
        return;
    }
    for (int index = 0; index < registry->count; index++) {
        if (registry->groups[index] != -record) continue;
        registry->groups[index] = registry->groups[--registry->count];
        return;
    }
}

// Sends a signal to each group, and forgets groups that no longer exist.
static void signal_groups(struct registry *registry, int number) {
    for (int index = registry->count - 1; index >= 0; index--) {
        if (kill(-registry->groups[index], number) == 0 || errno != ESRCH) continue;
        registry->groups[index] = registry->groups[--registry->count];
    }
}

static void guard(int descriptor) {
    static struct registry registry;
    int32_t records[256];
    size_t held = 0;
    while (1) {
        ssize_t count = read(descriptor, (char *)records + held, sizeof records - held);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        held += (size_t)count;
        size_t whole = held / sizeof records[0];
        for (size_t index = 0; index < whole; index++) take(&registry, records[index]);
        held -= whole * sizeof records[0];
        memmove(records, &records[whole], held);
    }
    signal_groups(&registry, SIGTERM);
    for (int waited = 0; registry.count > 0 && waited < KILL_DELAY_MS; waited += STEP_MS) {
        poll(NULL, 0, STEP_MS);
        signal_groups(&registry, 0);
    }
    signal_groups(&registry, SIGKILL);
    _exit(0);
}

static void become_guard(int descriptor) {
    // A separate session, with every signal blocked: signals to the worker's group do not reach the guard.
    setsid();
    prctl(PR_SET_NAME, "wakegate-guard");
    // The guard holds nothing open whose end other processes wait for.
    int none = open("/dev/null", O_RDWR);
    for (int standard = 0; standard < 3; standard++) place(none, standard);
    if (descriptor != 3) dup2(descriptor, 3);
    close_range(4, ~0U, 0);
    if (chdir("/") != 0) _exit(1);
    guard(3);
}

pid_t wakegate_guard_start(int *registry) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) become_guard(above(ends[0], 3));
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (pid < 0) close(ends[1]);
    else *registry = ends[1];
    errno = saved;
    return pid;
}

pid_t wakegate_ended_child(void) {
    siginfo_t found;
    memset(&found, 0, sizeof found);
    while (waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) != 0) {
        if (errno != EINTR) return 0;
    }
    return found.si_pid;
}
