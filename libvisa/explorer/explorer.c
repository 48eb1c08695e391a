#include "libvisa/explorer/explorer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libvisa/explorer/asset.h"
#include "libvisa/explorer/origin.h"

enum {
    BODY_BYTES_MAX = 1 << 20,
    CONNECTIONS_MAX = 32,
    ANSWERS_AT_ONCE = 4,
    IDLE_SECONDS = 30,
    THREAD_STACK_BYTES = 8 << 20, /* as that of a program: NESTING_MAX levels fit in less */
};

struct explorer {
    struct MHD_Daemon *daemon;
    unsigned port;
    reply_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t done;
    unsigned working; /* answers under way */
};

/* The body of a request as it comes. */
typedef struct exchange_body {
    char *bytes;
    size_t size, capacity;
    bool too_large, no_memory;
} exchange_body;

/* ---- answers ---- */

static void add_headers(struct MHD_Response *r, const char *type)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        /* Nothing from elsewhere, and no script but ours; a picture (SVG) brings its own styles. */
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src "
         "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        MHD_add_response_header(r, rows[i].name, rows[i].value);
}

static enum MHD_Result send_bytes(struct MHD_Connection *to, unsigned status, const char *type, const void *bytes, size_t size,
                                  enum MHD_ResponseMemoryMode whose)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, whose);
    if (!r)
        return MHD_NO;
    add_headers(r, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
    enum MHD_Result queued = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return queued;
}

/* `message` is a literal. */
static enum MHD_Result send_fault(struct MHD_Connection *to, unsigned status, const char *message)
{
    return send_bytes(to, status, "text/plain; charset=utf-8", message, strlen(message), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result send_reply(explorer *e, struct MHD_Connection *to, const char *path, const exchange_body *body)
{
    pthread_mutex_lock(&e->lock);
    while (e->working == ANSWERS_AT_ONCE)
        pthread_cond_wait(&e->done, &e->lock);
    e->working++;
    pthread_mutex_unlock(&e->lock);
    reply r = reply_make(path, body->bytes ? body->bytes : "", body->size, &e->limits);
    pthread_mutex_lock(&e->lock);
    e->working--;
    pthread_cond_signal(&e->done);
    pthread_mutex_unlock(&e->lock);
    if (!r.text)
        return send_fault(to, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    return send_bytes(to, (unsigned)r.status, "application/json", r.text, r.bytes, MHD_RESPMEM_MUST_FREE);
}

/* ---- requests ---- */

static const char *header_of(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* NULL, or why the request is not answered. */
static const char *refusal_of(const explorer *e, struct MHD_Connection *c, bool asks)
{
    const char *site = header_of(c, "Sec-Fetch-Site"), *type = header_of(c, MHD_HTTP_HEADER_CONTENT_TYPE);
    static const char json[] = "application/json";
    if (!origin_host_is_ours(header_of(c, MHD_HTTP_HEADER_HOST), e->port))
        return "this server answers to 127.0.0.1 and localhost only\n";
    if (!origin_page_is_ours(header_of(c, MHD_HTTP_HEADER_ORIGIN), e->port))
        return "another page asks\n";
    if (asks && site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return "another page asks\n";
    if (asks && (!type || strncmp(type, json, sizeof json - 1) != 0)) /* a form of another page cannot send that */
        return "a question is application/json\n";
    return NULL;
}

static void body_add(exchange_body *b, const char *bytes, size_t size)
{
    if (size > BODY_BYTES_MAX - b->size) {
        b->too_large = true;
        return;
    }
    if (b->size + size > b->capacity) {
        size_t capacity = 2 * (b->size + size);
        char *grown = realloc(b->bytes, capacity);
        if (!grown) {
            b->no_memory = true;
            return;
        }
        b->bytes = grown;
        b->capacity = capacity;
    }
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static enum MHD_Result handle_request(void *user, struct MHD_Connection *c, const char *path, const char *method, const char *version,
                                      const char *bytes, size_t *size, void **state)
{
    (void)version;
    explorer *e = user;
    exchange_body *body = *state;
    bool asks = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    if (!body) { /* the headers are there, the body is not */
        *state = calloc(1, sizeof *body);
        const char *refused = refusal_of(e, c, asks), *length = header_of(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
        if (!*state)
            return MHD_NO;
        if (refused)
            return send_fault(c, MHD_HTTP_FORBIDDEN, refused);
        if (length && strtoull(length, NULL, 10) > BODY_BYTES_MAX)
            return send_fault(c, MHD_HTTP_CONTENT_TOO_LARGE, "a question has at most 1 MiB\n");
        return MHD_YES;
    }
    if (*size > 0) {
        if (!body->too_large && !body->no_memory)
            body_add(body, bytes, *size);
        *size = 0;
        return MHD_YES;
    }
    if (body->too_large)
        return send_fault(c, MHD_HTTP_CONTENT_TOO_LARGE, "a question has at most 1 MiB\n");
    if (body->no_memory)
        return send_fault(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    if (asks)
        return send_reply(e, c, path, body);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_fault(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET, HEAD and POST\n");
    asset a;
    if (!asset_find(path, &a))
        return send_fault(c, MHD_HTTP_NOT_FOUND, "there is no such file\n");
    return send_bytes(c, MHD_HTTP_OK, a.kind, a.bytes, a.size, MHD_RESPMEM_PERSISTENT);
}

static void forget_request(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
    (void)user, (void)c, (void)why;
    exchange_body *body = *state;
    if (body)
        free(body->bytes);
    free(body);
    *state = NULL;
}

/* ---- beginning and end ---- */

static int refuse_port(uint64_t port, int error, diag_list *diags)
{
    diag *d = diag_add(diags, E_SERVE, SRC_NOWHERE, "port %llu of 127.0.0.1 cannot be listened on: %s", (unsigned long long)port,
                       strerror(error));
    diag_help(diags, d, error == EADDRINUSE ? "another program has it: --port=0 takes any that is free" : "choose another one with --port");
    return -1;
}

/* A socket that only this machine reaches; -1: diagnosed. */
static int listen_here(uint64_t port, diag_list *diags)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (descriptor < 0)
        return refuse_port(port, errno, diags);
    /* What a server that has just ended leaves does not count. */
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(descriptor, (struct sockaddr *)&here, sizeof here) == 0 && listen(descriptor, CONNECTIONS_MAX) == 0)
        return descriptor;
    int error = errno;
    close(descriptor);
    return refuse_port(port, error, diags);
}

static unsigned port_of(int descriptor)
{
    struct sockaddr_in here = {0};
    socklen_t bytes = sizeof here;
    getsockname(descriptor, (struct sockaddr *)&here, &bytes);
    return ntohs(here.sin_port);
}

explorer *explorer_begin(const explorer_settings *settings, diag_list *diags)
{
    int descriptor = listen_here(settings->port, diags);
    explorer *e = descriptor < 0 ? NULL : calloc(1, sizeof *e);
    if (e) {
        *e = (explorer){.port = port_of(descriptor), .limits = settings->limits};
        pthread_mutex_init(&e->lock, NULL);
        pthread_cond_init(&e->done, NULL);
        e->daemon =
            MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL, NULL, handle_request,
                             e, MHD_OPTION_LISTEN_SOCKET, descriptor, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                             MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_THREAD_STACK_SIZE,
                             (size_t)THREAD_STACK_BYTES, MHD_OPTION_NOTIFY_COMPLETED, forget_request, NULL, MHD_OPTION_END);
    }
    if (e && e->daemon)
        return e;
    if (descriptor >= 0) {
        close(descriptor);
        refuse_port(settings->port, ENOMEM, diags);
    }
    if (e)
        explorer_end(e);
    return NULL;
}

unsigned explorer_port(const explorer *e)
{
    return e->port;
}

void explorer_end(explorer *e)
{
    if (e->daemon)
        MHD_stop_daemon(e->daemon);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->done);
    free(e);
}
