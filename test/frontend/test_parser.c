#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/parse.h"
#include "frontend/render.h"
#include "test/suite.h"

typedef struct parsed {
    arena *arena;
    source_map *sources;
    diag_list diags;
    ast *root;
} parsed;

static parsed parse_bytes(const char *text, size_t bytes)
{
    parsed p = {.arena = arena_new()};
    diag_list_init(&p.diags, p.arena);
    p.sources = source_map_new(p.arena);
    int file = source_map_add(p.sources, "test.vm", text, bytes);
    p.root = parse_file(p.sources, file, p.arena, &p.diags);
    diag_list_sort(&p.diags);
    return p;
}

static parsed parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static const char *rendered(const parsed *p)
{
    return render_text(&p->diags, p->sources, false, p->arena);
}

static uint32_t depth_of(const ast *node)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < node->kid_count; i++) {
        uint32_t depth = depth_of(node->kids[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

/* Every node has a text, kids, and a range within its parent's file; the tree is as deep as it says, at most.
 */
static void check_tree(const ast *node, size_t bytes)
{
    ck_assert_ptr_nonnull(node);
    ck_assert_ptr_nonnull(node->text);
    ck_assert_int_lt(node->kind, AST_KIND_COUNT);
    ck_assert_uint_le(node->depth, NESTING_MAX + 1);
    ck_assert_msg(node->range.begin <= node->range.end && node->range.end <= bytes, "%s: range [%u, %u) of %zu bytes",
                  ast_kind_name(node->kind), node->range.begin, node->range.end, bytes);
    ck_assert_uint_le(node->name_range.end, bytes);
    for (uint32_t i = 0; i < node->kid_count; i++)
        check_tree(node->kids[i], bytes);
}

static bool has_error_node(const ast *node)
{
    bool found = node->kind == AST_ERROR;
    for (uint32_t i = 0; i < node->kid_count && !found; i++)
        found = has_error_node(node->kids[i]);
    return found;
}

/* What printed text must hold: it parses without a diagnostic, to an equal tree. */
static void check_round_trip(const parsed *p)
{
    const char *text = ast_text(p->root, p->arena);
    parsed again = parse(text);
    ck_assert_msg(again.diags.count == 0, "printed text does not parse:\n%s\n%s", text, rendered(&again));
    ck_assert_msg(ast_equal(p->root, again.root), "printed text has another tree:\n%s\n%s\n%s", text, ast_dump(p->root, p->arena),
                  ast_dump(again.root, again.arena));
    arena_free(again.arena);
}

static void check_accepted(const char *name, const char *text, size_t bytes)
{
    parsed p = parse_bytes(text, bytes);
    ck_assert_msg(p.diags.count == 0, "%s:\n%s", name, rendered(&p));
    ck_assert(!has_error_node(p.root));
    check_tree(p.root, bytes);
    check_round_trip(&p);
    arena_free(p.arena);
}

/* Any text: a tree, diagnostics that can be shown, and a round trip when there are none. */
static void check_survives(const char *text, size_t bytes)
{
    parsed p = parse_bytes(text, bytes);
    check_tree(p.root, bytes);
    ck_assert_ptr_nonnull(strstr(render_json(&p.diags, p.sources, p.arena), "["));
    if (p.diags.count == 0)
        check_round_trip(&p);
    else
        ck_assert_uint_gt(strlen(rendered(&p)), 0);
    arena_free(p.arena);
}

/* ---- What is accepted ---- */

static const char matmul[] = "axes![M = 32, N = 8, K = 32];\n"
                             "\n"
                             "#[device(chip = 1)]\n"
                             "fn matmul(\n"
                             "    ctx: &mut Context,\n"
                             "    a: &HbmTensor<bf16, m![1], m![M, K]>,\n"
                             "    b: &HbmTensor<bf16, m![1], m![N, K]>,\n"
                             ") -> HbmTensor<bf16, m![1], m![M, N]> {\n"
                             "    let a: DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![M, K]> = a.to_dm(&mut ctx.tdma, 0);\n"
                             "    let b: DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![N, K]> = b.to_dm(&mut ctx.tdma, 1 << 12);\n"
                             "\n"
                             "    let weights: TrfTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![N], m![K]> = ctx.sub\n"
                             "        .begin(b.view())\n"
                             "        .fetch::<bf16, m![N], m![K]>()\n"
                             "        .collect::<m![N, K / 16], m![K % 16]>()\n"
                             "        .to_trf(TrfAddress::Full);\n"
                             "\n"
                             "    let c: DmTensor<bf16, m![1], m![1 # 2], m![1 # 256], m![M, N]> = ctx.main\n"
                             "        .begin(a.view())\n"
                             "        .fetch::<bf16, m![M], m![K]>()\n"
                             "        .collect::<m![M, K / 16], m![K % 16]>()\n"
                             "        .align::<m![M], m![K], _, _>(&weights)\n"
                             "        .contract::<m![1]>()\n"
                             "        .accumulate::<m![M], m![N]>(AccumulationKind::Interleaved)\n"
                             "        .cast::<bf16, m![N # 16]>()\n"
                             "        .commit(1 << 13);\n"
                             "\n"
                             "    c.to_hbm(&mut ctx.tdma, 1 << 20)\n"
                             "}\n";

/* A listing as the book prints them: everything inside main, with what carries no meaning. */
static const char listing[] = "#![allow(unused)]\n"
                              "fn main() {\n"
                              "#![feature(adt_const_params)]\n"
                              "extern crate furiosa_visa_std;\n"
                              "use furiosa_visa_std::prelude::*;\n"
                              "axes![A = 8, B = 64];\n"
                              "/// Zeit und Packet: 한국어, \xe2\x80\x94 \xe2\x86\x92\n"
                              "fn collect<'l, const T: Tu>(\n"
                              "    input: FetchTensor<'l, { T }, i8, m![1], m![1], m![1], m![A], m![B]>,\n"
                              ") -> CollectTensor<'l, T, i8, m![1], m![1], m![1], m![A, B / 32], m![B % 32]> {\n"
                              "    input.collect()\n"
                              "}\n"
                              "}\n";

/* Each construct of the frequency table, and how it is printed. */
static const struct {
    const char *text, *canonical;
} constructs[] = {
    {"use std::*;", "use std::*;"},
    {"use a::b::c as d; use a as _;", "use a::b::c as d;\nuse a as _;"},
    {"use super::{A, B as C, d::*, e::{f, g},}; use {x, crate::y};", "use super::{A, B as C, d::*, e::{f, g}};\nuse {x, crate::y};"},
    {"pub use m::*; pub(crate) use a; pub(super) use b; pub(in crate::x) use c;", "use m::*;\nuse a;\nuse b;\nuse c;"},
    {"extern crate furiosa_visa_std; extern crate a as b;", "extern crate furiosa_visa_std;\nextern crate a as b;"},
    {"#![feature(adt_const_params)]", "#![feature(adt_const_params)]"},
    {"#[device(chip = 4)] #[allow(x, y(z))] #[expect(w, reason = \"a ] in ) a string\")]\nfn f();",
     "#[device(chip = 4)]\n#[allow(x, y(z))]\n#[expect(w, reason = \"a ] in ) a string\")]\nfn f();"},
    {"#[tokio::main] async fn main() { x().await; }", "#[tokio::main]\nasync fn main() {\n    x().await;\n}"},
    {"axes![M = 32, N = 0x10, K = 1_000, L = 16usize, O = 0b11,]", "axes![M = 32, N = 0x10, K = 1_000, L = 16usize, O = 0b11];"},
    {"axes!(M = 32); axes!{N = 3}", "axes![M = 32];\naxes![N = 3];"},
    {"type T = m![A, B / 2 % 3 # 4 = 5];", "type T = m![A, B / 2 % 3 # 4 = 5];"},
    {"type T = m!([A, B] / 2, (A) # 3, [C, [D, E]], {X}, {X<Y>} % 2);", "type T = m![[A, B] / 2, A # 3, [C, [D, E]], {X}, {X<Y>} % 2];"},
    {"type T = m!{ 1 # 2, 7, A / {N}, B % { N + 1 }, A #{!} 4, A # { 0 } 4, A #{*} 4, A # {N}, };",
     "type T = m![1 # 2, 7, A / {N}, B % {N + 1}, A #{!} 4, A #{0} 4, A #{*} 4, A # {N},];"},
    {"type G<'l, T> = Tensor<'l, T, -3, 4, { E::V }, true, _>;", "type G<'l, T> = Tensor<'l, T, -3, 4, { E::V }, true, _>;"},
    {"fn f<'l, const T: Tu, X: Clone + 'l + Foo<A>>(a: X) -> Y where T: Foo<{ X }>, U: for<'a> Fn(A) -> B { "
     "}",
     "fn f<'l, const T: Tu, X: Clone + 'l + Foo<A>>(a: X) -> Y {\n}"},
    {"fn f(a: &T, b: &mut T, c: &'l mut T, d: &&T, e: (), f: (A,), g: (A, B), h: [T; 4], i: [T], j: (A));",
     "fn f(a: &T, b: &mut T, c: &mut T, d: &&T, e: (), f: (A,), g: (A, B), h: [T; 4], i: [T], j: A);"},
    {"fn f(_: <m![A, B]>::SIZE, (a, mut b): ::std::V<V<T>>, &c: <T as U<V<W>>>::X);",
     "fn f(_: <m![A, B]>::SIZE, (a, mut b): ::std::V<V<T>>, &c: <T as U<V<W>>>::X);"},
    {"mod foo; mod bar { use x; mod baz { } }", "mod foo;\nmod bar {\n    use x;\n    mod baz {\n    }\n}"},
    {"const N: usize = 3 << 2; pub const unsafe fn f() {}", "const N: usize = 3 << 2;\nconst unsafe fn f() {\n}"},
    {"let a: X<Y>= 1; let mut b; let (c, _) = d; b = a; b += 1; b <<= 2;",
     "let a: X<Y> = 1;\nlet mut b;\nlet (c, _) = d;\nb = a;\nb += 1;\nb <<= 2;"},
    {"a.f().g::<A, _>(1,).h.0.k();", "a.f().g::<A, _>(1).h.0.k();"},
    {"HbmTensor::<bf16, m![1]>::from_addr(0x10_00);", "HbmTensor::<bf16, m![1]>::from_addr(0x10_00);"},
    {"f(&mut ctx.tdma, &[1, 0], &mut *ctx, -x, !y, *z);", "f(&mut ctx.tdma, &[1, 0], &mut *ctx, -x, !y, *z);"},
    {"S { a: 1, b, c: T::U { }, };", "S { a: 1, b, c: T::U {  } };"},
    {"unsafe { a } { b } unsafe { c }.d();", "unsafe {\n    a\n}\n{\n    b\n}\n(unsafe {\n    c\n}).d();"},
    {"x(1_000u32, 1.5f32, 2f64, 1e5, true, false, \"a\\\"b\");", "x(1_000u32, 1.5f32, 2f64, 1e5, true, false, \"a\\\"b\");"},
    {"a + b * c - (d - e) << 1 >> 2 & 3 | 4 ^ 5;", "a + b * c - (d - e) << 1 >> 2 & 3 | 4 ^ 5;"},
    {"a == b && c != d || e < f && g >= h; i <= j; k > l; m % n / o;", "a == b && c != d || e < f && g >= h;\ni <= j;\nk > l;\nm % n / o;"},
    {"a as usize < b; a?.b;", "a as usize < b;\na?.b;"},
    {"if a { b } else if c == N { d } else { e } let x = if a { 0 } else { 1 << 2 };",
     "if a {\n    b\n} else if c == N {\n    d\n} else {\n    e\n}\nlet x = if a {\n    0\n} else {\n    1 "
     "<< 2\n};"},
    {"if (S { a }) == b { c }", "if (S { a }) == b {\n    c\n}"},
    {"for i in 0..N { } for (i, t) in [1, 2].iter().enumerate() { axes![A = 1]; type T = m![A]; }",
     "for i in 0..N {\n}\nfor (i, t) in [1, 2].iter().enumerate() {\n    axes![A = 1];\n    type T = "
     "m![A];\n}"},
    {"let a = (); let b = (1,); let c = (1, 2); let d = (1); let e = [1, 2]; let f = [0; 4]; let g = e[1]; "
     "let h = ..=b;",
     NULL}, /* ..=b has no start: an error, below */
    {"let a = (); let b = (1,); let c = (1, 2); let d = (1); let e = [1, 2]; let f = [0; 4]; let g = e[1]; "
     "let h = a..=b;",
     "let a = ();\nlet b = (1,);\nlet c = (1, 2);\nlet d = 1;\nlet e = [1, 2];\nlet f = [0; 4];\nlet g = "
     "e[1];\nlet h = "
     "a..=b;"},
    {"struct S<const T: U> where A<{ T }>: B { x: [u8; 4] } struct T(u8); enum E { A } trait X { fn f(); }",
     "struct S<const T: U> where A<{ T }>: B { x: [u8; 4] }\nstruct T(u8);\nenum E { A }\ntrait X { fn f(); "
     "}"},
    {"impl<'l> A<'l, { T }> for B<C<{ N }>> { fn f(&self) -> u8 { '}' } } static X: [u8; 2] = [1, 2]; fn "
     "f();",
     "impl<'l> A<'l, { T }> for B<C<{ N }>> { fn f(&self) -> u8 { '}' } }\nstatic X: [u8; 2] = [1, 2];\nfn "
     "f();"},
    {"macro_rules! m { ($x:expr) => { m![$x] } } unsafe impl A for B { } fn f();",
     "macro_rules! m { ($x:expr) => { m![$x] } }\nunsafe impl A for B { }\nfn f();"},
    {"assert_eq!(a, \"{}\", m![A]); let v = vec![1]; fn f() { todo!() }",
     "assert_eq!(a, \"{}\", m![A]);\nlet v = vec![1];\nfn f() {\n    todo!()\n}"},
    {"f(|x| x + 1, || 2, move |(a, b): (A, B), c| { d });", "f(|x| x + 1, || 2, move |(a, b): (A, B), c| {\n    d\n});"},
    {"match x { A { b } => 3, _ => { 4 } } while let S(x) = y { z } loop { break 3; } return 4; continue;",
     "match x { A { b } => 3, _ => { 4 } }\nwhile let S(x) = y { z }\nloop { break 3; }\nreturn "
     "4;\ncontinue;"},
    {"/* a /* nested */ comment */ f(); // to the end\n/// doc\n//! doc", "f();"},
    {"(a.b)(c); (if a { b } else { c }); (|x| x)(1); (1).f(); (a + b).c; -(a.b); (-a).b; (a..b).c; (a = b);", NULL},
};

START_TEST(accepts_constructs)
{
    const char *text = constructs[_i].text, *canonical = constructs[_i].canonical;
    if (canonical == NULL)
        return;
    check_accepted(text, text, strlen(text));
    parsed p = parse(text);
    ck_assert_str_eq(ast_text(p.root, p.arena), arena_printf(p.arena, "%s\n", canonical));
    arena_free(p.arena);
}
END_TEST

START_TEST(accepts_kernels)
{
    check_accepted("matmul", matmul, strlen(matmul));
    check_accepted("listing", listing, strlen(listing));
    const char brackets[] = "(a.b)(c); (if a { b } else { c }); (|x| x)(1); (1).f(); (a + b).c; -(a.b); (-a).b; (a..b).c;"
                            "(match x { }); (a = b) + c; (f! { }); if (unsafe { a }) { } if { a } == b { }";
    check_accepted("brackets", brackets, strlen(brackets));
    check_accepted("empty", "", 0);
    check_accepted("comment", "// nothing", 10);
    check_accepted("byte order mark and CRLF",
                   "\xef\xbb\xbf"
                   "fn f() {\r\n}\r\n",
                   15);
}
END_TEST

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    char *text = malloc((1 << 20) + 1);
    *bytes = fread(text, 1, 1 << 20, file);
    fclose(file);
    return text;
}

/* Where the seeds' listings are, or NULL. */
static DIR *open_listings(char *folder, size_t bytes)
{
    const char *shared = getenv("VISA_SHARED"), *source = getenv("VISA_SOURCE");
    if (shared != NULL)
        snprintf(folder, bytes, "%s/seeds/listings", shared);
    else
        snprintf(folder, bytes, "%s/../shared/seeds/listings", source != NULL ? source : ".");
    DIR *d = opendir(folder);
    if (d == NULL)
        printf("skipped: no listings in %s\n", folder);
    return d;
}

START_TEST(accepts_seed_listings)
{
    char folder[1024], path[2048];
    DIR *d = open_listings(folder, sizeof folder);
    if (d == NULL)
        return;
    int listings = 0;
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < 3 || strcmp(entry->d_name + length - 3, ".vm") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        size_t bytes;
        char *text = read_file(path, &bytes);
        check_accepted(path, text, bytes);
        free(text);
        listings++;
    }
    closedir(d);
    ck_assert_int_ge(listings, 9);
}
END_TEST

START_TEST(trees)
{
    static const struct {
        const char *text, *dump;
    } rows[] = {
        {"type T = m![[A, B] / 2 % 3, 1 # 4];",
         "FILE\n  TYPE_ALIAS T\n    NONE\n    NONE\n    MAP\n      MAP_PAIR\n        MAP_MOD =3\n          "
         "MAP_DIV =2\n"
         "            MAP_PAIR\n              MAP_AXIS A\n              MAP_AXIS B\n            NONE\n       "
         "   NONE\n"
         "        MAP_PAD =4\n          MAP_NUMBER =1\n          NONE\n"},
        {"type T = m![$(A % 4:2, [B, C]: {N},) # 9];", "FILE\n  TYPE_ALIAS T\n    NONE\n    NONE\n    MAP\n      MAP_PAD =9\n"
                                                       "        MAP_WINDOW\n          MAP_SLIDE =2\n            MAP_MOD =4\n              "
                                                       "MAP_AXIS A\n              NONE\n            NONE\n"
                                                       "          MAP_SLIDE\n            MAP_PAIR\n              MAP_AXIS B\n              "
                                                       "MAP_AXIS C\n            PATH\n              SEGMENT N\n"
                                                       "                NONE\n        NONE\n"},
        {"type T = m![$(A:2 | 1..{N})];",
         "FILE\n  TYPE_ALIAS T\n    NONE\n    NONE\n    MAP\n      MAP_WINDOW\n        MAP_SLIDE =2\n          MAP_AXIS A\n          NONE\n"
         "        MAP_PLACES\n          INT 1 =1\n          CONST_ARG\n            PATH\n              SEGMENT N\n                NONE\n"},
        {"type T = m![A,];", "FILE\n  TYPE_ALIAS T\n    NONE\n    NONE\n    MAP\n      MAP_PAIR ,\n        MAP_AXIS A\n"},
        {"type T = m![(A, B)];", "FILE\n  TYPE_ALIAS T\n    NONE\n    NONE\n    MAP\n      MAP_PAIR\n        "
                                 "MAP_AXIS A\n        MAP_AXIS B\n"},
        {"type T = m![A #{ ! } 3, A / {N}];", "FILE\n  TYPE_ALIAS T\n    NONE\n    NONE\n    MAP\n      "
                                              "MAP_PAIR\n        MAP_PAD ! =3\n          MAP_AXIS A\n"
                                              "          NONE\n        MAP_DIV\n          MAP_AXIS A\n       "
                                              "   PATH\n            SEGMENT N\n              NONE\n"},
        {"1 - 2 - 3 * 4;", "FILE\n  EXPR_STMT ;\n    BINARY -\n      BINARY -\n        INT 1 =1\n        INT 2 =2\n"
                           "      BINARY *\n        INT 3 =3\n        INT 4 =4\n"},
        {"-a.b;", "FILE\n  EXPR_STMT ;\n    UNARY -\n      FIELD b\n        PATH\n          SEGMENT a\n      "
                  "      NONE\n"},
        {"#[device(chip = 0x4, x)] fn f();",
         "FILE\n  FN f\n    LIST\n      ATTR device\n        RAW (chip = 0x4, x)\n        ATTR_ARG chip\n    "
         "      INT 0x4 =4\n"
         "        ATTR_ARG x\n          NONE\n    NONE\n    LIST\n    NONE\n    NONE\n"},
        {"a = b = |x| c;", "FILE\n  EXPR_STMT ;\n    ASSIGN =\n      PATH\n        SEGMENT a\n          NONE\n      ASSIGN =\n"
                           "        PATH\n          SEGMENT b\n            NONE\n        UNSUPPORTED closure\n"
                           "          RAW |x|\n          PATH\n            SEGMENT c\n              NONE\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parsed p = parse(rows[i].text);
        ck_assert_msg(p.diags.count == 0, "%s", rendered(&p));
        ck_assert_str_eq(ast_dump(p.root, p.arena), rows[i].dump);
        arena_free(p.arena);
    }
}
END_TEST

START_TEST(different_trees_differ)
{
    static const char *const texts[] = {"a + b;",
                                        "a - b;",
                                        "b + a;",
                                        "(a + b) + c;",
                                        "a + (b + c);",
                                        "f(a);",
                                        "f(a, b);",
                                        "x(1);",
                                        "x(2);",
                                        "type T = m![A, B];",
                                        "type T = m![A, [B]] ;",
                                        "type T = m![[A, B], C];",
                                        "type T = m![A, [B, C]];",
                                        "type T = m![A # 2];",
                                        "type T = m![A #{!} 2];",
                                        "a",
                                        "a;"};
    size_t count = sizeof texts / sizeof *texts;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            parsed a = parse(texts[i]), b = parse(texts[j]);
            bool same = i == j || (i == 9 && j == 10) || (i == 10 && j == 9); /* [B] groups one element: B */
            if (a.diags.count == 0 && b.diags.count == 0)
                ck_assert_msg(ast_equal(a.root, b.root) == same, "%s | %s", texts[i], texts[j]);
            arena_free(a.arena);
            arena_free(b.arena);
        }
}
END_TEST

/* ---- Ranges ---- */

static const ast *find(const ast *node, ast_kind kind, const char *text)
{
    if (node->kind == kind && strcmp(node->text, text) == 0)
        return node;
    for (uint32_t i = 0; i < node->kid_count; i++) {
        const ast *found = find(node->kids[i], kind, text);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static void check_ranges(const char *text, ast_kind kind, const char *name, const char *whole, const char *underlined)
{
    parsed p = parse(text);
    const ast *node = find(p.root, kind, name);
    ck_assert_msg(node != NULL, "no %s %s in %s", ast_kind_name(kind), name, text);
    ck_assert_str_eq(arena_strndup(p.arena, text + node->range.begin, node->range.end - node->range.begin), whole);
    ck_assert_str_eq(arena_strndup(p.arena, text + node->name_range.begin, node->name_range.end - node->name_range.begin), underlined);
    arena_free(p.arena);
}

START_TEST(ranges)
{
    const char *chain = "x.y\n  .f::<A>(1)\n  .g(2) ;";
    check_ranges(chain, AST_METHOD, "f", "x.y\n  .f::<A>(1)", "f");
    check_ranges(chain, AST_METHOD, "g", "x.y\n  .f::<A>(1)\n  .g(2)", "g");
    check_ranges(chain, AST_FIELD, "y", "x.y", "y");
    const char *map = "type T = m![A, [B, C] / 16, D #{!} 4];";
    check_ranges(map, AST_MAP_DIV, "", "[B, C] / 16", "/ 16");
    check_ranges(map, AST_MAP_PAD, "!", "D #{!} 4", "#{!} 4");
    check_ranges(map, AST_MAP, "", "m![A, [B, C] / 16, D #{!} 4]", "m![A, [B, C] / 16, D #{!} 4]");
    check_ranges("type T = m![A, B, ];", AST_MAP_PAIR, ",", "A, B,", ",");
    check_ranges("type T = m![[A, B] # 4];", AST_MAP_PAIR, "", "[A, B]", "[A, B]");
    check_ranges("let a = (1 + 2) * 3;", AST_BINARY, "+", "(1 + 2)", "+");
    check_ranges("let a = b >> c;", AST_BINARY, ">>", "b >> c", ">>");
    check_ranges("#[device(chip = 4)]\npub fn f() {}", AST_FN, "f", "#[device(chip = 4)]\npub fn f() {}", "f");
    check_ranges("#[device(chip = 4)]\nfn f();", AST_ATTR_ARG, "chip", "chip = 4", "chip");
    check_ranges("axes![A = 3, B = 4];", AST_AXIS, "B", "B = 4", "B");
    check_ranges("f(&mut a.b);", AST_BORROW, "mut", "&mut a.b", "&mut");
    check_ranges("use a::{b as c};", AST_USE_RENAME, "c", "b as c", "c");
}
END_TEST

/* ---- What is refused ---- */

typedef struct fault {
    diag_id id;
    uint32_t line, column;
    uint32_t columns; /* underlined, on one line */
    const char *message;
} fault;

static void check_faults(const char *text, const fault *faults, size_t count)
{
    parsed p = parse(text);
    check_tree(p.root, strlen(text));
    ck_assert_msg(p.diags.count == count, "%s\nwants %zu diagnostics, has %zu:\n%s", text, count, p.diags.count, rendered(&p));
    for (size_t i = 0; i < count; i++) {
        const diag *d = p.diags.items[i];
        source_place begin = source_locate(p.sources, d->range.file, d->range.begin);
        source_place end = source_locate(p.sources, d->range.file, d->range.end);
        ck_assert_msg(d->id == faults[i].id && begin.line == faults[i].line && begin.column == faults[i].column &&
                          end.column - begin.column == faults[i].columns && strstr(d->message, faults[i].message) != NULL,
                      "%s\nfault %zu: wants %s at %u:%u (%u wide) with \"%s\", has:\n%s", text, i, diag_row_of(faults[i].id)->name,
                      faults[i].line, faults[i].column, faults[i].columns, faults[i].message, rendered(&p));
    }
    arena_free(p.arena);
}

#define LINE "fn f() {\n"
static const struct {
    const char *text;
    fault fault;
} single_faults[] = {
    {"type T = m![A * B];", {E_MAP_SYNTAX, 1, 15, 1, "not multiplied"}},
    {"type T = m![A @ 1024];", {E_MAP_SYNTAX, 1, 15, 1, "no address"}},
    {"type T = m![A, ...];", {E_MAP_SYNTAX, 1, 16, 3, "`...`"}},
    {"type T = m![A: 3];", {E_MAP_SYNTAX, 1, 14, 1, "no sizes"}},
    {"type T = m![$(A)];", {E_MAP_SYNTAX, 1, 16, 1, "expected `:`, found `)`"}},
    {"type T = m![$A];", {E_MAP_SYNTAX, 1, 14, 1, "expected `(`, found `A`"}},
    {"type T = m![$()];", {E_MAP_SYNTAX, 1, 15, 1, "expected a mapping, found `)`"}},
    {"type T = m![$(A:)];", {E_MAP_SYNTAX, 1, 17, 1, "expected a name or an integer, found `)`"}},
    {"type T = m![$(A:2 B:1)];", {E_MAP_SYNTAX, 1, 19, 1, "expected `,`, `)` or `|`, found `B`"}},
    {"type T = m![$(A:2 | 1)];", {E_MAP_SYNTAX, 1, 22, 1, "expected `..`, found `)`"}},
    {"type T = m![$(A:2 | ..3)];", {E_MAP_SYNTAX, 1, 21, 2, "`..` is no mapping"}},
    {"type T = m![$(A:2 | 1..3, B:1)];", {E_MAP_SYNTAX, 1, 25, 1, "expected `)`, found `,`"}},
    {"type T = m![0x10];", {E_MAP_SYNTAX, 1, 13, 4, "decimal"}},
    {"type T = m![A / 1_0];", {E_MAP_SYNTAX, 1, 17, 3, "decimal"}},
    {"type T = m![A % 16u8];", {E_MAP_SYNTAX, 1, 17, 4, "decimal"}},
    {"type T = m![A B];", {E_MAP_SYNTAX, 1, 15, 1, "expected `,` or `]`, found `B`"}},
    {"type T = m!(A B);", {E_MAP_SYNTAX, 1, 15, 1, "expected `,` or `)`, found `B`"}},
    {"type T = m![];", {E_MAP_SYNTAX, 1, 13, 1, "expected a mapping, found `]`"}},
    {"type T = m![A /];", {E_MAP_SYNTAX, 1, 16, 1, "expected a name or an integer, found `]`"}},
    {"type T = m![A,, B];", {E_MAP_SYNTAX, 1, 15, 1, "expected a mapping or `]`, found `,`"}},
    {"type T = m![A / , B];", {E_MAP_SYNTAX, 1, 17, 1, "expected a name or an integer, found `,`"}},
    {"type T = m![A / 99999999999999999999];", {E_LEX, 1, 17, 20, "63 bits"}},
    {"axes![A = 9223372036854775808];", {E_LEX, 1, 11, 19, "63 bits"}},
    {"axes![A = 12ab];", {E_LEX, 1, 11, 4, "neither a number nor a name"}},
    {"axes![A: 3];", {E_PARSE, 1, 8, 1, "expected `=`, found `:`"}},
    {"axes![A = 3 B = 4];", {E_PARSE, 1, 13, 1, "expected `,` or `]`, found `B`"}},
    {LINE "let a = b c;\n}", {E_PARSE, 2, 11, 1, "expected `;`, found `c`"}},
    {LINE "f(a b);\n}", {E_PARSE, 2, 5, 1, "expected `,` or `)`, found `b`"}},
    {LINE "let a = ;\n}", {E_PARSE, 2, 9, 1, "expected an expression, found `;`"}},
    {LINE "let 3 = a;\n}", {E_PARSE, 2, 5, 1, "expected a pattern, found `3`"}},
    {LINE "let a: = b;\n}", {E_PARSE, 2, 8, 1, "expected a type, found `=`"}},
    {LINE "let a = b\nlet c = d;\n}", {E_PARSE, 2, 10, 0, "expected `;`, found `let`"}},
    {LINE "x.f::<A B>();\n}", {E_PARSE, 2, 9, 1, "expected `,` or `>`, found `B`"}},
    {LINE "let a = ..=b;\n}", {E_PARSE, 2, 9, 3, "found `..=`"}},
    {"fn f(a) { let x = 1; }", {E_PARSE, 1, 7, 1, "expected `:`, found `)`"}},
    {"fn f() -> { let x = 1; }", {E_PARSE, 1, 11, 1, "expected a type, found `{`"}},
    {"fn 3() { }", {E_PARSE, 1, 4, 1, "expected a name, found `3`"}},
    {"use a::;", {E_PARSE, 1, 8, 1, "found `;`"}},
    {"#[a] }", {E_DELIMITER, 1, 6, 1, "`}` without an opening bracket"}},
    {"fn f() {\n let a = (1, 2;\n}", {E_DELIMITER, 2, 15, 1, "expected `)`, found `;`"}},
    {"fn f() {\n let a = (1, 2];\n}", {E_DELIMITER, 2, 15, 1, "expected `)`, found `]`"}},
    {"fn f() {\n g(1, 2\n}\nfn h() { }", {E_DELIMITER, 3, 1, 1, "expected `)`, found `}`"}},
    {"fn f() {\n g(1, 2\n let b = 3;\n}\nfn h() { }", {E_DELIMITER, 3, 2, 3, "expected `)`, found `let`"}},
    {"fn f() {\n x.g::<m![A, B>();\n}", {E_DELIMITER, 2, 15, 1, "expected `]`, found `>`"}},
    {"type T = m![A, [B];\nfn h() { }", {E_DELIMITER, 1, 19, 1, "expected `]`, found `;`"}},
    {"fn f() {\n", {E_DELIMITER, 1, 9, 0, "expected `}`, found the end of the file"}},
    {"fn f() { ))]  }", {E_DELIMITER, 1, 10, 1, "`)` without an opening bracket"}},
    {"fn f() { g(a; b) }", {E_PARSE, 1, 13, 1, "expected `,` or `)`, found `;`"}},
    {"fn f() { )  }", {E_DELIMITER, 1, 10, 1, "`)` without an opening bracket"}},
    {"fn f() { \"abc }\n }", {E_LEX, 1, 10, 6, "string has no end"}},
    {"fn f() { /* abc }\n", {E_LEX, 1, 10, 2, "comment has no end"}},
    {"let a = b \xc3\x97 c;\nf();", {E_LEX, 1, 11, 1, "outside ASCII"}},
    {"let gr\xc3\xb6\xc3\x9f"
     "e = 3;\nf();",
     {E_LEX, 1, 5, 5, "ASCII letters"}},
    {"let a = b \xff\xfe\xfd c;\nf();", {E_LEX, 1, 11, 3, "outside ASCII"}},
    {"let a = \x01;\nf();", {E_LEX, 1, 9, 1, "begins no token"}},
    {"a::<B>::<C>();", {E_PARSE, 1, 9, 3, "second list of generic arguments"}},
    {"/* \xec\x97\xac\xeb\x9f\xac */ let = 3;", {E_PARSE, 1, 14, 1, "expected a pattern, found `=`"}},
    {"fn f(", {E_DELIMITER, 1, 6, 0, "expected `)`, found the end of the file"}},
    {"let a = b", {E_PARSE, 1, 10, 0, "expected `;`, found the end of the file"}},
};

START_TEST(single_fault)
{
    check_faults(single_faults[_i].text, &single_faults[_i].fault, 1);
}
END_TEST

/* Many faults in one file: each is found, and nothing besides. */
START_TEST(independent_faults)
{
    static const char text[] = "axes![A = 8, b];\n"
                               "fn f(a: T<m![A * B], m![A @ 3]>) {\n"
                               "    let a = 3\n"
                               "    let b = 4;\n"
                               "    let c = foo(a b, { c; d });\n"
                               "    let d: T<m![A, ...]> = (e;\n"
                               "    let p = Foo { a: 1; b };\n"
                               "    if x y { a; b } else { c; d }\n"
                               "    for i 3 { a; b }\n"
                               "    good();\n"
                               "    let e = [1, 2;\n"
                               "    let g = { let h = ; good(); i j };\n"
                               "}\n"
                               "fn g(a, b) { let x = ; good(); y z; }\n"
                               "mod m { fn h() -> { let y = ; } good(); use ; }\n"
                               "fn good() { good(); }\n"
                               "fn i() { g(a; b); let t: T<m![A], m![B]] = a; }\n"
                               "fn good() { good(); }\n";
    static const fault faults[] = {
        {E_PARSE, 1, 15, 1, "expected `=`"},      {E_MAP_SYNTAX, 2, 16, 1, "multiplied"},
        {E_MAP_SYNTAX, 2, 27, 1, "address"},      {E_PARSE, 3, 14, 0, "expected `;`"},
        {E_PARSE, 5, 19, 1, "expected `,`"},      {E_MAP_SYNTAX, 6, 20, 3, "`...`"},
        {E_DELIMITER, 6, 30, 1, "expected `)`"},  {E_PARSE, 7, 23, 1, "found `;`"},
        {E_PARSE, 8, 10, 1, "found `y`"},         {E_PARSE, 9, 11, 1, "expected `in`"},
        {E_DELIMITER, 11, 18, 1, "expected `]`"}, {E_PARSE, 12, 23, 1, "expected an expression"},
        {E_PARSE, 12, 35, 1, "found `j`"},        {E_PARSE, 14, 7, 1, "expected `:`"},
        {E_PARSE, 14, 22, 1, "an expression"},    {E_PARSE, 14, 34, 1, "found `z`"},
        {E_PARSE, 15, 19, 1, "expected a type"},  {E_PARSE, 15, 29, 1, "an expression"},
        {E_PARSE, 15, 45, 1, "found `;`"},        {E_PARSE, 17, 13, 1, "expected `,` or `)`, found `;`"},
        {E_DELIMITER, 17, 40, 1, "`]` without"},
    };
    check_faults(text, faults, sizeof faults / sizeof *faults);
    parsed p = parse(text);
    ck_assert_ptr_nonnull(find(p.root, AST_FN, "good"));
    ck_assert_ptr_nonnull(find(p.root, AST_MOD, "m"));
    ck_assert_ptr_nonnull(find(p.root, AST_FN, "f"));
    arena_free(p.arena);
}
END_TEST

/* A thousand faults: the list stays short and says that it does. */
START_TEST(many_faults)
{
    char *text = malloc(1 << 20), *end = text;
    for (int i = 0; i < 5000; i++)
        end += sprintf(end, "let a = b c;\n");
    parsed p = parse(text);
    ck_assert_uint_gt(p.diags.count, 50);
    ck_assert_uint_lt(p.diags.count, 300);
    ck_assert_ptr_nonnull(strstr(p.diags.items[p.diags.count - 1]->message, "too many errors"));
    arena_free(p.arena);
    memset(text, 1, 5000);
    text[5000] = '\0';
    check_survives(text, 5000);
    free(text);
}
END_TEST

/* ---- Hostile input ---- */

static char *repeat(const char *before, const char *piece, const char *middle, const char *tail, const char *after, size_t count)
{
    size_t bytes = strlen(before) + count * (strlen(piece) + strlen(tail)) + strlen(middle) + strlen(after) + 1;
    char *text = malloc(bytes), *end = stpcpy(text, before);
    for (size_t i = 0; i < count; i++)
        end = stpcpy(end, piece);
    end = stpcpy(end, middle);
    for (size_t i = 0; i < count; i++)
        end = stpcpy(end, tail);
    strcpy(end, after);
    return text;
}

static const struct {
    const char *before, *piece, *middle, *tail, *after;
} nestings[] = {
    {"let a = ", "(", "1", ")", ";"},
    {"let a = ", "[", "1", "]", ";"},
    {"let a = ", "f(", "1", ")", ";"},
    {"let a = ", "-", "1", "", ";"},
    {"let a = ", "&", "b", "", ";"},
    {"let a = ", "* ", "b", "", ";"},
    {"let a = ", "b(", "c", ")", ";"},
    {"let a = b", ".f()", "", "", ";"},
    {"let a = b", " + c", "", "", ";"},
    {"let a = b", ".c", "", "", ";"},
    {"let a = b", "[0]", "", "", ";"},
    {"let a = b", "()", "", "", ";"},
    {"let a = b", "?", "", "", ";"},
    {"let a = b", " as c", "", "", ";"},
    {"", "a = ", "b", "", ";"},
    {"", "{", "", "}", ""},
    {"", "if a {", "", "}", ""},
    {"if a {}", " else if b {}", "", "", ""},
    {"", "for i in a {", "", "}", ""},
    {"", "unsafe {", "", "}", ""},
    {"", "mod m {", "", "}", ""},
    {"", "fn f() {", "", "}", ""},
    {"let a: ", "A<", "B", ">", ";"},
    {"let a: ", "&", "B", "", ";"},
    {"let a: ", "(", "B", ",)", ";"},
    {"let a: ", "[", "B", "]", ";"},
    {"let a: ", "&mut ", "B", "", ";"},
    {"type T = m![", "[", "A, B", "]", "];"},
    {"type T = m![A", " / 2", "", "", "];"},
    {"type T = ", "m![{", "A", "}]", ";"},
    {"let ", "(", "a", ",)", " = b;"},
    {"let ", "&", "a", "", " = b;"},
    {"use ", "a::{", "b", "}", ";"},
    {"let a = ", "|x| ", "b", "", ";"},
    {"let a = ", "S { a: ", "1", "}", ";"},
    {"let a = ", "return ", "1", "", ";"},
    {"let a = ", "{ let a = ", "1", "; }", ";"},
    {"", "match x {", "", "}", ""},
    {"let a = ", "<", "A", ">::B", ";"},
    {"let a = ", "f::<{", "A", "}>", ";"},
    {"#[a", "(", "", ")", "] fn f();"},
    {"let a = ", "b![", "", "]", ";"},
};

/* Far too deep: diagnosed, not overflowed. Alternating brackets that never close as well. */
START_TEST(nesting_is_bounded)
{
    static const size_t counts[] = {10, 100, 300, 3000, 20000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char *text = repeat(nestings[_i].before, nestings[_i].piece, nestings[_i].middle, nestings[_i].tail, nestings[_i].after, counts[i]);
        parsed p = parse(text);
        ck_assert_uint_le(depth_of(p.root), NESTING_MAX + 1);
        if (counts[i] <= 10)
            ck_assert_msg(p.diags.count == 0, "%.200s\n%s", text, rendered(&p));
        if (counts[i] >= 3000) {
            ck_assert_uint_ge(p.diags.count, 1);
            ck_assert_uint_le(p.diags.count, 2);
            ck_assert_msg(p.diags.items[0]->id == E_NESTING, "%.200s\n%s", text, rendered(&p));
        }
        arena_free(p.arena);
        check_survives(text, strlen(text));
        free(text);
    }
}
END_TEST

START_TEST(unfinished_input)
{
    /* One piece over and over: nothing may be quadratic enough to notice, nothing recursive. */
    static const char *const pieces[] = {
        "(",        "[",     "{",        "m![",   "axes![",   "<",      "if ",       "for ",    "match ", "while ", "loop ",   "unsafe ",
        "fn ",      "let ",  "where ",   "impl ", "struct ",  "#[",     "#!",        "else ",   "|",      "||",     "::",      "..",
        "\"",       "'",     "/*",       "/* */", "}",        ")",      "]",         ";",       ",",      "a ",     "1 ",      "if a ",
        "if a {",   "(}",    "{)",       "m![}",  "m![;",     "a!(",    "r#\"",      "r#\"\n",  "\"\n\\", "r\"",    "static ", "\\",
        "for<'a> ", "fn f(", "impl A {", "\x80",  "use a::{", "if a }", "match x }", "struct }"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        char *text = repeat("", pieces[i], "", "", "", 6000);
        check_survives(text, strlen(text));
        free(text);
    }
}
END_TEST

/* Cuts a text into tokens, roughly: words, and every other character alone. */
static size_t cut(const char *text, size_t *begins, size_t limit)
{
    size_t count = 0;
    for (size_t i = 0; text[i] != '\0' && count + 1 < limit;) {
        begins[count++] = i;
        bool word = false;
        while (text[i] == '_' || (text[i] >= '0' && text[i] <= '9') || ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z'))
            i++, word = true;
        i += !word;
    }
    begins[count] = strlen(text);
    return count;
}

/* Deletes, doubles and exchanges every `step`-th token, and cuts the text off there. */
static void mutate(const char *text, size_t step)
{
    enum { TOKENS_MAX = 4096 };
    size_t *begins = malloc(TOKENS_MAX * sizeof *begins), bytes = strlen(text);
    size_t count = cut(text, begins, TOKENS_MAX);
    char *mutant = malloc(2 * bytes + 16);
    for (size_t i = 0; i < count; i += step) {
        size_t begin = begins[i], end = begins[i + 1];
        if (end - begin == 1 && (text[begin] == ' ' || text[begin] == '\n'))
            continue;
        memcpy(mutant, text, begin); /* deleted */
        memcpy(mutant + begin, text + end, bytes - end);
        check_survives(mutant, bytes - (end - begin));
        memcpy(mutant, text, end); /* twice */
        memcpy(mutant + end, text + begin, bytes - begin);
        check_survives(mutant, bytes + (end - begin));
        if (i + 1 < count) { /* exchanged with the next one */
            size_t next = begins[i + 2] - end;
            memcpy(mutant, text, bytes);
            memcpy(mutant + begin, text + end, next);
            memcpy(mutant + begin + next, text + begin, end - begin);
            check_survives(mutant, bytes);
        }
        check_survives(text, begin); /* cut off */
    }
    free(mutant);
    free(begins);
}

START_TEST(mutants_of_constructs)
{
    mutate(constructs[_i].text, (size_t)suite_step(1));
}
END_TEST

START_TEST(mutants_of_kernels)
{
    mutate(_i == 0 ? matmul : listing, (size_t)suite_step(2));
}
END_TEST

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The repository's own case files, whatever they are expected to do. */
START_TEST(mutants_of_cases)
{
    char folder[1024], path[2048], *names[4096];
    size_t count = 0;
    const char *source = getenv("VISA_SOURCE");
    snprintf(folder, sizeof folder, "%s/test/cases", source != NULL ? source : ".");
    DIR *d = opendir(folder);
    if (d == NULL) {
        printf("skipped: no cases in %s\n", folder);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d)) != NULL && count < 4096;)
        if (strstr(entry->d_name, ".vm") != NULL)
            names[count++] = strdup(entry->d_name);
    closedir(d);
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        size_t bytes;
        char *text = i % (size_t)suite_step(2) == 0 ? read_file(path, &bytes) : NULL;
        if (text) {
            text[bytes] = '\0';
            check_survives(text, bytes);
            mutate(text, 1 + bytes / (suite_is_long() ? 40 : 8)); /* a few places in each file */
        }
        free(text);
        free(names[i]);
    }
}
END_TEST

START_TEST(random_tokens)
{
    static const char *const words[] = {"a",
                                        "T",
                                        "1",
                                        "0x1",
                                        "1.5f32",
                                        "\"s\"",
                                        "'l",
                                        "'c'",
                                        "(",
                                        ")",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "<",
                                        ">",
                                        "::",
                                        ".",
                                        ",",
                                        ";",
                                        ":",
                                        "=",
                                        "==",
                                        "&",
                                        "&&",
                                        "*",
                                        "/",
                                        "%",
                                        "#",
                                        "!",
                                        "|",
                                        "||",
                                        "..",
                                        "->",
                                        "m![",
                                        "axes![",
                                        "#[",
                                        "let",
                                        "fn",
                                        "if",
                                        "else",
                                        "for",
                                        "in",
                                        "unsafe",
                                        "mut",
                                        "use",
                                        "mod",
                                        "type",
                                        "const",
                                        "match",
                                        "while",
                                        "loop",
                                        "return",
                                        "impl",
                                        "struct",
                                        "where",
                                        "as",
                                        "_",
                                        "await",
                                        "pub",
                                        "self",
                                        "async",
                                        "extern crate",
                                        "macro_rules!",
                                        "f!(",
                                        "#{!}",
                                        "\n",
                                        "/*",
                                        "*/",
                                        "//",
                                        "\xc3\xa4",
                                        "+=",
                                        "...",
                                        "@"};
    uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(_i + 1);
    char text[2048];
    for (int round = 0; round < suite_rounds(150); round++) {
        char *end = text;
        for (int i = 0; i < 60; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            end += sprintf(end, "%s%s", words[state % (sizeof words / sizeof *words)], state >> 40 & 3 ? " " : "");
        }
        check_survives(text, (size_t)(end - text));
    }
}
END_TEST

START_TEST(random_bytes)
{
    uint64_t state = 88172645463325252u + (uint64_t)_i;
    char text[300];
    for (int round = 0; round < suite_rounds(100); round++) {
        for (size_t i = 0; i < sizeof text; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            text[i] = (char)(state >> 24);
        }
        check_survives(text, sizeof text);
    }
    static const char nuls[] = "a\0b;\0\"x\0y\"; '\0'";
    check_survives(nuls, sizeof nuls);
}
END_TEST

/* ---- Sources ---- */

START_TEST(places)
{
    arena *a = arena_new();
    source_map *sources = source_map_new(a);
    const char *text = "ab\n\xed\x95\x9c\xea\xb5\xad x\r\n\nend";
    int file = source_map_add(sources, "f.vm", text, strlen(text));
    ck_assert_int_eq(file, 0);
    ck_assert_uint_eq(source_line_count(sources, file), 4);
    source_place p = source_locate(sources, file, 0);
    ck_assert(p.line == 1 && p.column == 1);
    p = source_locate(sources, file, 2);
    ck_assert(p.line == 1 && p.column == 3);
    p = source_locate(sources, file, 3 + 6 + 1);
    ck_assert(p.line == 2 && p.column == 4);
    p = source_locate(sources, file, 1000);
    ck_assert(p.line == 4 && p.column == 4);
    source_line line = source_line_of(sources, file, 2);
    ck_assert(line.begin == 3 && line.bytes == 8);
    ck_assert_uint_eq(source_line_of(sources, file, 3).bytes, 0);
    ck_assert_uint_eq(source_line_of(sources, file, 5).bytes, 0);
    ck_assert_uint_eq(source_line_of(sources, file, 0).bytes, 0);
    ck_assert_str_eq(source_name(sources, 7), "<unknown>");
    ck_assert_str_eq(source_name(sources, -1), "<unknown>");
    ck_assert_int_eq(source_map_add(sources, "big", text, SOURCE_BYTES_MAX + 1), -1);
    int empty = source_map_add(sources, "empty", NULL, 0);
    p = source_locate(sources, empty, 0);
    ck_assert(p.line == 1 && p.column == 1 && source_line_count(sources, empty) == 1);
    arena_free(a);
}
END_TEST

int main(void)
{
    TCase *accept = suite_case("accept");
    tcase_add_loop_test(accept, accepts_constructs, 0, sizeof constructs / sizeof *constructs);
    suite_tests(accept, accepts_kernels, accepts_seed_listings, trees, different_trees_differ, ranges, places);
    TCase *refuse = suite_case("refuse");
    tcase_add_loop_test(refuse, single_fault, 0, sizeof single_faults / sizeof *single_faults);
    suite_tests(refuse, independent_faults, many_faults);
    TCase *hostile = suite_case("hostile");
    tcase_add_loop_test(hostile, nesting_is_bounded, 0, sizeof nestings / sizeof *nestings);
    suite_tests(hostile, unfinished_input);
    tcase_add_loop_test(hostile, mutants_of_constructs, 0, sizeof constructs / sizeof *constructs);
    tcase_add_loop_test(hostile, mutants_of_kernels, 0, 2);
    suite_tests(hostile, mutants_of_cases);
    tcase_add_loop_test(hostile, random_tokens, 0, 8);
    tcase_add_loop_test(hostile, random_bytes, 0, 4);
    return suite_status("parser", accept, refuse, hostile);
}
