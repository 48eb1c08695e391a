/* The dump says everything that the binary says, and visa-objdump is the dump. */
#define _GNU_SOURCE
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/dump.h"
#include "codegen/loops.h"
#include "support/output.h"
#include "test/binary/sample_binary.h"
#include "test/fixture.h"

/* The sample as a reader sees it, symbols and all. */
static binary read_sample(void)
{
    binary b = sample_binary(memory), read;
    const unsigned char *bytes;
    size_t size;
    ck_assert(sample_write(&b, memory, &diags, &bytes, &size));
    ck_assert(binary_read(bytes, size, memory, &diags, &read));
    return read;
}

/* libcheck cannot print texts of this length. */
static void same_text(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    ck_assert_msg(a[i] == b[i], "from byte %zu on: %.60s / %.60s", i, a + i, b + i);
}

START_TEST(test_text)
{
    static const char *const parts[] = {
        "visa binary, format 12, target rngd\n",
        "kernel matmul\n",
        "    1: N = 8 elements\n",
        "    1: in b bf16 in hbm, address 2048 bytes\n",
        "      element  m![N, K], 256 positions\n",
        "  einsum MK,NK->MN; MN->MN\n",
        "    %0 = contract a, b in f32 as bf16\n",
        "      sum K: size 2, weight 16 elements\n",
        "    0x0050 fetch, line 16\n      words 0000000000050020 0000000256600000 ",
        "      base              4096 bytes\n",
        "      dtype_in          bf16 (dtype code 6)\n",
        "        entry 0: size 32 iterations, stride 32 elements\n",
        "        for i0 in 0..32: addr += i0*32 elements\n          for i1 in 0..32: addr += i1*1 elements\n",
        "        entry 0: counter lane (counter code 1), div 1 positions, mod 32 positions, weight 1 "
        "coordinate\n",
        "        for i0 in 0..8: source += i0*64 bytes, destination += i0*64 bytes\n",
        "  matmul.out: .visa.ports.matmul, offset 0xc0, 64 bytes\n",
    };
    binary b = read_sample();
    const char *text = binary_to_text(&b, memory);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "missing: %s", parts[i]);
    same_text(text, binary_to_text(&b, memory));
}
END_TEST

/* The table of the TRF is numbered from the inside. */
START_TEST(test_loops)
{
    command c = {.op = OP_TRF_READ, .entry_count = 3};
    for (unsigned e = 0; e < 3; e++) {
        command_set_entry(&c, e, TRF_READ_ENTRY_SIZE, 10 + e);
        command_set_entry(&c, e, TRF_READ_ENTRY_STRIDE, -4 * (int64_t)e);
    }
    ck_assert_uint_eq(command_loop_count(&c), 3);
    ck_assert_uint_eq(command_loop_entry(&c, 0), 2);
    ck_assert_int_eq(command_loop_size(&c, 0), 12);
    ck_assert_str_eq(command_loop_steps(&c, 0, memory), "addr += i0*-8 bytes");
    c = (command){.op = OP_ACCUMULATE, .entry_count = 2};
    command_set_entry(&c, 1, ACCUMULATE_LOOP_SIZE, 7);
    command_set_entry(&c, 1, ACCUMULATE_LOOP_REDUCED, 1);
    ck_assert_uint_eq(command_loop_entry(&c, 1), 1);
    ck_assert_int_eq(command_loop_size(&c, 1), 7);
    ck_assert_str_eq(command_loop_steps(&c, 0, memory), "slot += i0*0 slots");
    ck_assert_str_eq(command_loop_steps(&c, 1, memory), "reduced, slot += i1*0 slots");
    c = (command){.op = OP_MASK, .entry_count = 2};
    ck_assert_uint_eq(command_loop_count(&c), 0);
    c = (command){.op = OP_CAST};
    ck_assert_uint_eq(command_loop_count(&c), 0);
}
END_TEST

static json_t *at(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    ck_assert_msg(value != NULL, "no %s", key);
    return value;
}

static void same_fields(json_t *json, const command *c)
{
    const command_row *row = command_row_of(c->op);
    ck_assert_str_eq(json_string_value(at(json, "op")), row->name);
    ck_assert_int_eq(json_integer_value(at(json, "offset")), c->offset);
    ck_assert_int_eq(json_integer_value(at(json, "line")), c->line);
    ck_assert_uint_eq(json_array_size(at(json, "fields")), row->field_count);
    for (unsigned i = 0; i < row->field_count; i++) {
        const command_field_row *f = command_field_row_of((command_field)(row->first_field + i));
        json_t *field = json_array_get(at(json, "fields"), i), *value = at(field, "value");
        ck_assert_str_eq(json_string_value(at(field, "name")), f->name);
        ck_assert_str_eq(json_string_value(at(field, "unit")), f->unit);
        if (json_is_string(value))
            ck_assert_uint_eq(strtoull(json_string_value(value), NULL, 16), (uint64_t)c->fields[i]);
        else
            ck_assert_int_eq(json_integer_value(value), c->fields[i]);
    }
    for (unsigned e = 0; e < c->entry_count; e++) {
        json_t *entry = json_array_get(at(at(json, "table"), "entries"), e);
        for (unsigned i = 0; i < row->column_count; i++) {
            const command_field_row *f = command_column_row_of((command_column)(row->first_column + i));
            ck_assert_int_eq(json_integer_value(at(entry, f->name)), c->entries[e][i]);
            ck_assert_str_eq(json_string_value(at(at(at(json, "table"), "units"), f->name)), f->unit);
        }
    }
}

START_TEST(test_json)
{
    binary b = read_sample();
    const char *text = binary_to_json(&b, memory);
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s", error.text);
    same_text(text, binary_to_json(&b, memory));
    json_t *kernel = json_array_get(at(root, "kernels"), 0);
    for (int where = 0; where < 3; where++) {
        json_t *stream = at(at(kernel, "streams"), context_name((context)where));
        ck_assert_uint_eq(json_array_size(stream), b.kernels[0].streams[where].count);
        for (size_t i = 0; i < json_array_size(stream); i++)
            same_fields(json_array_get(stream, i), &b.kernels[0].streams[where].commands[i]);
    }
    json_t *second = json_array_get(at(kernel, "ports"), 1);
    ck_assert_str_eq(json_string_value(at(at(second, "mapping"), "element")), "N, K");
    ck_assert_int_eq(json_integer_value(at(at(second, "positions"), "element")), 256);
    ck_assert_int_eq(json_integer_value(at(second, "address")), 2048);
    ck_assert_str_eq(json_string_value(at(at(kernel, "einsum"), "text")), "MK,NK->MN; MN->MN");
    ck_assert_uint_eq(json_array_size(at(at(kernel, "einsum"), "statements")), 2);
    ck_assert_uint_eq(json_array_size(at(root, "symbols")), 4);
    json_decref(root);
}
END_TEST

/* A binary without einsum, ports or commands. */
START_TEST(test_nothing_to_say)
{
    binary_kernel k = {.name = "k", .einsum = {.text = ""}};
    binary b = {.target = target_by_name("rngd"), .kernels = &k, .kernel_count = 1};
    ck_assert_ptr_nonnull(strstr(binary_to_text(&b, memory), "kernel k\n"));
    json_t *root = json_loads(binary_to_json(&b, memory), 0, NULL);
    ck_assert(json_is_null(at(json_array_get(at(root, "kernels"), 0), "einsum")));
    json_decref(root);
    b.kernel_count = 0;
    ck_assert_ptr_nonnull(binary_to_text(&b, memory));
}
END_TEST

/* The tool */

typedef struct ran {
    int status;
    char *text; /* both outputs */
} ran;

static ran run(const char *arguments)
{
    const char *folder = getenv("VISA_BIN");
    ck_assert_msg(folder != NULL, "VISA_BIN is not set");
    FILE *pipe = popen(arena_printf(memory, "PATH='%s':$PATH; { %s; } 2>&1", folder, arguments), "r");
    ck_assert_ptr_nonnull(pipe);
    ran r = {.text = arena_alloc(memory, 1 << 18)};
    size_t bytes = fread(r.text, 1, (1 << 18) - 1, pipe);
    r.text[bytes] = '\0';
    r.status = WEXITSTATUS(pclose(pipe));
    return r;
}

static char folder[] = "test_dump_XXXXXX";

static void make_folder(void)
{
    setup();
    strcpy(folder, "test_dump_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    binary b = sample_binary(memory);
    const unsigned char *bytes;
    size_t size;
    ck_assert(sample_write(&b, memory, &diags, &bytes, &size));
    ck_assert(output_write(arena_printf(memory, "%s/good", folder), bytes, size, &diags));
    ck_assert(output_write(arena_printf(memory, "%s/cut", folder), bytes, size - 1, &diags));
    ck_assert_int_eq(chdir(folder), 0);
}

static void remove_folder(void)
{
    ck_assert_int_eq(chdir(".."), 0);
    run(arena_printf(memory, "rm -r %s", folder));
    teardown();
}

START_TEST(test_tool_prints_the_dump)
{
    binary b = read_sample();
    ran plain = run("visa-objdump good"), piped = run("visa-objdump - < good"), json = run("visa-objdump --json good");
    ck_assert_int_eq(plain.status, 0);
    same_text(plain.text, binary_to_text(&b, memory));
    ck_assert_int_eq(piped.status, 0);
    same_text(piped.text, plain.text);
    ck_assert_int_eq(json.status, 0);
    same_text(json.text, binary_to_json(&b, memory));
    ran file = run("visa-objdump -o text good && cat text && ls");
    ck_assert_ptr_eq(strstr(file.text, plain.text), file.text);
    ck_assert_str_eq(file.text + strlen(plain.text), "cut\ngood\ntext\n"); /* and no file next to them */
}
END_TEST

START_TEST(test_tool_takes_several_files)
{
    ran text = run("visa-objdump good good"), json = run("visa-objdump --json good good good");
    ck_assert_int_eq(text.status, 0);
    ck_assert_ptr_nonnull(strstr(text.text, "\ngood:\nvisa binary"));
    json_t *root = json_loads(json.text, 0, NULL);
    ck_assert_uint_eq(json_array_size(root), 3);
    json_decref(root);
}
END_TEST

START_TEST(test_tool_refuses)
{
    ran cut = run("visa-objdump -o text good cut; echo $?; ls");
    ck_assert_ptr_eq(strstr(cut.text, "visa-objdump: cut: error[E-BIN-FORMAT]: file offset 0x"), cut.text);
    ck_assert_ptr_nonnull(strstr(cut.text, "\n1\ncut\ngood\n")); /* nothing is written after an error */
    ck_assert_str_eq(run("visa-objdump none; echo $?").text,
                     "visa-objdump: none: error[E-FILE-READ]: cannot read none: No such file or directory\n1\n");
    ck_assert_int_eq(run("visa-objdump .").status, 1);
    ck_assert_int_eq(run("visa-objdump - < /dev/null").status, 1);
    ck_assert_int_eq(run("visa-objdump good > /dev/full").status, 1);
    ck_assert_int_eq(run("visa-objdump -o none/text good").status, 1);
    ck_assert_int_eq(run("visa-objdump").status, 2);
    ck_assert_int_eq(run("visa-objdump --nonsense good").status, 2);
    ck_assert_int_eq(run("visa-objdump -o").status, 2);
}
END_TEST

START_TEST(test_tool_help)
{
    ran help = run("visa-objdump --help"), version = run("visa-objdump --version");
    ck_assert_int_eq(help.status, 0);
    ck_assert_ptr_eq(strstr(help.text, "Usage: visa-objdump"), help.text);
    ck_assert_int_eq(version.status, 0);
    ck_assert_ptr_eq(strstr(version.text, "visa-objdump "), version.text);
    ck_assert_int_eq(run("visa-objdump --help > /dev/full").status, 1);
}
END_TEST

int main(void)
{
    TCase *dump = suite_case_with("dump", setup, teardown), *tool = suite_case_with("tool", make_folder, remove_folder);
    suite_tests(dump, test_text, test_loops, test_json, test_nothing_to_say);
    suite_tests(tool, test_tool_prints_the_dump, test_tool_takes_several_files, test_tool_refuses, test_tool_help);
    return suite_status("dump", dump, tool);
}
