/* libvisa/explorer/: who may ask, what is answered, and the port. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/explorer/asset.h"
#include "libvisa/explorer/explorer.h"
#include "libvisa/explorer/origin.h"
#include "test/fixture.h"
#include "test/suite.h"

START_TEST(hosts)
{
    static const char *const ours[] = {"127.0.0.1:10240", "localhost:10240", "LocalHost:10240"}, *const others[] = {
                                                                                                     "",
                                                                                                     "127.0.0.1",
                                                                                                     "localhost",
                                                                                                     "127.0.0.1:10241",
                                                                                                     "127.0.0.1:102400",
                                                                                                     "evil.example:10240",
                                                                                                     "localhost.evil.example:10240",
                                                                                                     "127.0.0.1:10240.evil.example",
                                                                                                     "127.0.0.1:10240@evil.example",
                                                                                                     "0.0.0.0:10240",
                                                                                                     "[::1]:10240"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        ck_assert_msg(origin_host_is_ours(ours[i], 10240), "%s", ours[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!origin_host_is_ours(others[i], 10240), "%s", others[i]);
    ck_assert(!origin_host_is_ours(NULL, 10240));
    ck_assert(origin_host_is_ours("localhost", 80) && origin_host_is_ours("127.0.0.1", 80) && origin_host_is_ours("127.0.0.1:80", 80));
    ck_assert(!origin_host_is_ours("evil.example", 80));
    ck_assert(origin_page_is_ours(NULL, 10240) && origin_page_is_ours("http://localhost:10240", 10240));
    ck_assert(!origin_page_is_ours("null", 10240) && !origin_page_is_ours("https://localhost:10240", 10240));
    ck_assert(!origin_page_is_ours("http://evil.example", 10240));
}
END_TEST

static json_t *answer_of(const char *path, json_t *question, int status)
{
    static const reply_limits limits = {.max_milliseconds = 20000};
    char *body = json_dumps(question, 0);
    reply r = reply_make(path, body, strlen(body), &limits);
    ck_assert_int_eq(r.status, status);
    json_t *j = json_loadb(r.text, r.bytes, 0, NULL);
    ck_assert(json_is_object(j));
    json_decref(question);
    free(body);
    free(r.text);
    return j;
}

/* Every example compiles, and has every view that it should have. */
START_TEST(examples)
{
    asset a;
    size_t count = 0;
    for (; asset_example(count, &a); count++) {
        json_t *j = answer_of("/api/compile",
                              json_pack("{s:o, s:[s,s,s,s,s]}", "source", json_stringn((const char *)a.bytes, a.size), "views", "tables",
                                        "timeline", "memory", "commands", "order"),
                              200),
               *views = json_object_get(j, "views"), *view;
        const char *name;
        ck_assert_msg(json_integer_value(json_object_get(j, "errors")) == 0, "%s", a.name);
        ck_assert_uint_eq(json_object_size(views), 5);
        json_object_foreach(views, name, view)
            ck_assert_msg(json_is_string(view) || (json_is_object(view) && !json_object_get(view, "left_out")), "%s of %s", name, a.name);
        json_decref(j);
    }
    ck_assert_uint_gt(count, 10);
}
END_TEST

/* What is no question is told so, and is no crash. */
START_TEST(no_questions)
{
    static const char *const bodies[] = {"",
                                         "{",
                                         "[]",
                                         "\"\"",
                                         "{\"source\": 1}",
                                         "{\"source\": \"\", \"offset\": 1}",
                                         "{\"source\": \"\", \"offset\": -1}",
                                         "{\"source\": \"\", \"define\": []}",
                                         "{\"source\": \"\", \"define\": {\"M\": \"8\"}}",
                                         "{\"source\": \"\", \"dialect\": \"7\"}",
                                         "{\"source\": \"\", \"timing\": \"none\"}",
                                         "\xff",
                                         "{\"source\": \"\xff\"}"},
                             *const paths[] = {"/api/compile", "/api/hover", "/api/complete", "/api/format"};
    static const reply_limits limits = {0};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++)
        for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
            reply r = reply_make(paths[p], bodies[i], strlen(bodies[i]), &limits);
            ck_assert_msg(r.status == 400, "%s %s: %d", paths[p], bodies[i], r.status);
            free(r.text);
        }
    json_decref(answer_of("/api/tune", json_object(), 400));
    json_decref(answer_of("/api/tune", json_pack("{s:s, s:i}", "question", "C[m] = A[m] * B[m]", "seconds", 11), 400));
    json_decref(answer_of("/api/tune", json_pack("{s:s, s:{s:[i,i]}}", "question", "", "sizes", "m", 1, 2), 400));
    json_decref(answer_of("/api/none", json_object(), 404));
    char deep[4096];
    memset(deep, '[', sizeof deep);
    reply r = reply_make("/api/compile", deep, sizeof deep, &limits);
    ck_assert_int_eq(r.status, 400);
    free(r.text);
}
END_TEST

/* An answer that costs too much says so. */
START_TEST(bounded)
{
    static const reply_limits limits = {.max_steps = 2000};
    asset a;
    ck_assert(asset_example(0, &a));
    json_t *q = json_pack("{s:o, s:[s,s]}", "source", json_stringn((const char *)a.bytes, a.size), "views", "tables", "pictures");
    char *body = json_dumps(q, 0);
    reply r = reply_make("/api/compile", body, strlen(body), &limits);
    ck_assert_int_eq(r.status, 200);
    ck_assert_ptr_nonnull(strstr(r.text, "\"gave_up\":true"));
    json_decref(q);
    free(body);
    free(r.text);
}
END_TEST

START_TEST(port_taken)
{
    explorer *first = explorer_begin(&(explorer_settings){0}, &diags);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(explorer_begin(&(explorer_settings){.port = explorer_port(first)}, &diags));
    strbuf s;
    strbuf_init(&s, memory);
    diag_list_put(&diags, NULL, &s);
    char expected[128];
    snprintf(expected, sizeof expected, "E-SERVE: port %u of 127.0.0.1 cannot be listened on: ", explorer_port(first));
    ck_assert_msg(strncmp(s.text, expected, strlen(expected)) == 0, "%s", s.text);
    ck_assert_ptr_nonnull(strstr(s.text, "--port=0"));
    explorer_end(first);
}
END_TEST

int main(void)
{
    return suite_of("explorer", setup, teardown, hosts, examples, no_questions, bounded, port_taken);
}
