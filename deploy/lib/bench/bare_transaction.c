// The transaction of a gateway on PostgreSQL with nothing around it: devices' rows locked and read, written back, the
// books of the connection written, committed. libpq alone, in pipeline mode, with prepared statements and binary
// arrays; one thread, several connections, one transaction at a time on each.
//
//     bare_transaction CONNINFO DEVICES ROWS CONNECTIONS SECONDS
//
// Makes its tables and all devices first, and says so by an empty line. Prints
// {"rows": ..., "transactions": ..., "seconds": ...} at its end, and ends when its input does.

#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TOKEN_BYTES = 32, RECORD_BYTES = 400, BOOKS_BYTES = 256, ROWS_MAX = 4096, CONNECTIONS_MAX = 64 };
enum { OID_BYTEA = 17 };

static const char *const tables =
    "DROP SCHEMA IF EXISTS bare CASCADE; CREATE SCHEMA bare;"
    "CREATE TABLE bare.device (token bytea PRIMARY KEY, version bigint NOT NULL, record bytea NOT NULL)"
    " WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);"
    "ALTER TABLE bare.device ALTER record SET STORAGE EXTERNAL;"
    "CREATE TABLE bare.books (gateway integer, connection integer, counts bytea NOT NULL,"
    " PRIMARY KEY (gateway, connection)) WITH (fillfactor = 50)";
static const char *const lock_rows =
    "SELECT token, version, record FROM bare.device WHERE token = ANY($1::bytea[]) ORDER BY token FOR UPDATE";
static const char *const write_rows =
    "INSERT INTO bare.device AS d SELECT token, 1, record FROM unnest($1::bytea[], $2::bytea[]) u(token, record)"
    " ON CONFLICT (token) DO UPDATE SET version = d.version + 1, record = excluded.record";
static const char *const write_books =
    "INSERT INTO bare.books SELECT 1, $1::integer, $2::bytea"
    " ON CONFLICT (gateway, connection) DO UPDATE SET counts = excluded.counts";

typedef struct {
    PGconn *connection;
    int number;
    bool is_writing;
    int rows;
    char *tokens, *records;
    int tokens_length, records_length;
} Lane;

static uint64_t state = 88172645463325252u;

static uint64_t mixed(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static uint64_t drawn(void) {
    state += 1;
    return mixed(state);
}

static void fail(PGconn *connection, const char *what) {
    fprintf(stderr, "bare_transaction: %s: %s", what, PQerrorMessage(connection));
    exit(1);
}

static char *put(char *at, int32_t value) {
    uint32_t big = htobe32((uint32_t)value);
    memcpy(at, &big, 4);
    return at + 4;
}

static char *array_head(char *at, int count) {
    at = put(at, 1);
    at = put(at, 0);
    at = put(at, OID_BYTEA);
    at = put(at, count);
    return put(at, 1);
}

static int by_value(const void *one, const void *other) {
    uint64_t first = *(const uint64_t *)one, second = *(const uint64_t *)other;
    return first < second ? -1 : first > second;
}

// The arrays of a transaction over these devices, each once.
static void fill(Lane *lane, uint64_t *devices, int count) {
    qsort(devices, (size_t)count, sizeof *devices, by_value);
    int kept = 0;
    for (int place = 0; place < count; place++)
        if (place == 0 || devices[place] != devices[kept - 1]) devices[kept++] = devices[place];
    char *token = array_head(lane->tokens, kept), *record = array_head(lane->records, kept);
    for (int place = 0; place < kept; place++) {
        token = put(token, TOKEN_BYTES);
        for (int word = 0; word < 4; word++, token += 8) {
            uint64_t value = mixed(devices[place] * 4 + (uint64_t)word);
            memcpy(token, &value, 8);
        }
        record = put(record, RECORD_BYTES);
        for (int word = 0; word < RECORD_BYTES / 8; word++, record += 8) {
            uint64_t value = drawn();
            memcpy(record, &value, 8);
        }
    }
    lane->rows = kept;
    lane->tokens_length = (int)(token - lane->tokens);
    lane->records_length = (int)(record - lane->records);
}

static void execute(Lane *lane, const char *name, int count, const char *const *values, const int *lengths) {
    static const int binary[] = {1, 1};
    if (!PQsendQueryPrepared(lane->connection, name, count, values, lengths, binary, 1)) fail(lane->connection, name);
}

static void end_run(Lane *lane) {
    if (!PQpipelineSync(lane->connection) || PQflush(lane->connection) < 0) fail(lane->connection, "flush");
}

static void send_lock(Lane *lane) {
    execute(lane, "begin", 0, NULL, NULL);
    execute(lane, "lock", 1, (const char *const[]){lane->tokens}, (int[]){lane->tokens_length});
    lane->is_writing = false;
    end_run(lane);
}

static void send_write(Lane *lane) {
    char number[4], books[BOOKS_BYTES];
    put(number, lane->number);
    uint64_t value = drawn();
    for (int at = 0; at < BOOKS_BYTES; at += 8) memcpy(books + at, &value, 8);
    execute(lane, "write", 2, (const char *const[]){lane->tokens, lane->records},
            (int[]){lane->tokens_length, lane->records_length});
    execute(lane, "books", 2, (const char *const[]){number, books}, (int[]){4, BOOKS_BYTES});
    execute(lane, "commit", 0, NULL, NULL);
    lane->is_writing = true;
    end_run(lane);
}

// Takes what is there; true once the run has ended.
static bool receive(Lane *lane) {
    if (!PQconsumeInput(lane->connection)) fail(lane->connection, "read");
    bool has_ended = false;
    while (!PQisBusy(lane->connection)) {
        PGresult *result = PQgetResult(lane->connection);
        if (result == NULL) {
            // Nothing more of one statement; after the end of the run there is nothing at all.
            if (has_ended) break;
            continue;
        }
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_PIPELINE_SYNC) has_ended = true;
        else if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(lane->connection, "statement");
        PQclear(result);
        if (has_ended) break;
    }
    return has_ended;
}

static void wait_for(Lane *lane) {
    while (!receive(lane)) {
        struct pollfd descriptor = {.fd = PQsocket(lane->connection), .events = POLLIN};
        if (PQflush(lane->connection) == 1) descriptor.events |= POLLOUT;
        poll(&descriptor, 1, -1);
    }
}

static void prepare(Lane *lane, const char *name, const char *sql) {
    PGresult *result = PQprepare(lane->connection, name, sql, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) fail(lane->connection, name);
    PQclear(result);
}

static void connect_lane(Lane *lane, const char *where, int number) {
    lane->number = number;
    lane->connection = PQconnectdb(where);
    if (PQstatus(lane->connection) != CONNECTION_OK) fail(lane->connection, "connect");
    lane->tokens = malloc(20 + ROWS_MAX * (4 + TOKEN_BYTES));
    lane->records = malloc(20 + ROWS_MAX * (4 + RECORD_BYTES));
    if (number == 0) {
        PGresult *result = PQexec(lane->connection, tables);
        if (PQresultStatus(result) != PGRES_COMMAND_OK) fail(lane->connection, "tables");
        PQclear(result);
    }
    prepare(lane, "begin", "BEGIN");
    prepare(lane, "commit", "COMMIT");
    prepare(lane, "lock", lock_rows);
    prepare(lane, "write", write_rows);
    prepare(lane, "books", write_books);
    if (PQsetnonblocking(lane->connection, 1) != 0 || !PQenterPipelineMode(lane->connection))
        fail(lane->connection, "pipeline");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void begin(Lane *lane, uint64_t devices, int rows) {
    static uint64_t chosen[ROWS_MAX];
    for (int place = 0; place < rows; place++) chosen[place] = drawn() % devices;
    fill(lane, chosen, rows);
    send_lock(lane);
}

int main(int count, char **words) {
    if (count != 6) return 64;
    uint64_t devices = strtoull(words[2], NULL, 10);
    int rows = atoi(words[3]), lanes_count = atoi(words[4]);
    double seconds = atof(words[5]);
    if (rows < 1 || rows > ROWS_MAX || lanes_count < 1 || lanes_count > CONNECTIONS_MAX) return 64;
    static Lane lanes[CONNECTIONS_MAX];
    for (int number = 0; number < lanes_count; number++) connect_lane(&lanes[number], words[1], number);

    for (uint64_t first = 0; first < devices; first += 1000) {
        uint64_t some[1000];
        int length = devices - first < 1000 ? (int)(devices - first) : 1000;
        for (int place = 0; place < length; place++) some[place] = first + (uint64_t)place;
        fill(&lanes[0], some, length);
        send_lock(&lanes[0]);
        wait_for(&lanes[0]);
        send_write(&lanes[0]);
        wait_for(&lanes[0]);
    }

    printf("\n");
    fflush(stdout);
    struct pollfd descriptors[CONNECTIONS_MAX];
    double started = now();
    uint64_t written = 0, transactions = 0;
    int under_way = lanes_count;
    for (int number = 0; number < lanes_count; number++) begin(&lanes[number], devices, rows);
    while (under_way > 0) {
        for (int number = 0; number < lanes_count; number++) {
            descriptors[number].fd = PQsocket(lanes[number].connection);
            descriptors[number].events = POLLIN | (PQflush(lanes[number].connection) == 1 ? POLLOUT : 0);
        }
        poll(descriptors, (nfds_t)lanes_count, -1);
        for (int number = 0; number < lanes_count; number++) {
            Lane *lane = &lanes[number];
            if (!(descriptors[number].revents & (POLLIN | POLLERR | POLLHUP)) || !receive(lane)) continue;
            if (!lane->is_writing) {
                send_write(lane);
                continue;
            }
            written += (uint64_t)lane->rows;
            transactions += 1;
            if (now() - started < seconds) begin(lane, devices, rows);
            else under_way -= 1;
        }
    }
    printf("{\"rows\": %llu, \"transactions\": %llu, \"seconds\": %.6f}\n", (unsigned long long)written,
           (unsigned long long)transactions, now() - started);
    fflush(stdout);
    // Its CPU clock can be read as long as it is there.
    while (getchar() != EOF) {
    }
    return 0;
}
