#include "exporter/base/buf.h"
#include "exporter/base/doc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A tree as one line: null, true, i1, d1.5, "text", [..], {key@line:column=..}, with !line:column before each
 * value. */
static void dump_scalar(const struct node *n, struct buf *into)
{
    static const char *const marks[] = {
        [NODE_NULL] = "null", [NODE_BOOL] = "b",        [NODE_INT] = "i",
        [NODE_DOUBLE] = "d",  [NODE_BROKEN] = "broken",
    };

    if (n->kind == NODE_STRING)
        buf_printf(into, "\"%.*s\"", STR_ARG(n->text));
    else if (n->kind == NODE_NULL || n->kind == NODE_BROKEN)
        buf_puts(into, marks[n->kind]);
    else
        buf_printf(into, "%s%.*s", marks[n->kind], STR_ARG(n->text));
    assert_int_equal(buf_failed(into), 0);
}

static void dump(const struct node *n, struct buf *into)
{
    bool map = n->kind == NODE_MAP;

    if (!map && n->kind != NODE_LIST) {
        dump_scalar(n, into);
        return;
    }
    buf_putc(into, map ? '{' : '[');
    assert_int_equal(buf_failed(into), 0);
    for (size_t i = 0; i < n->n; i++) {
        const struct node *x = n->items[i];

        assert_ptr_equal(x->parent, n);
        assert_int_equal(x->index, i);
        buf_puts(into, i ? "," : "");
        if (map)
            buf_printf(into, "%.*s=", STR_ARG(x->key));
        assert_int_equal(buf_failed(into), 0);
        dump(x, into);
    }
    buf_putc(into, map ? '}' : ']');
    assert_int_equal(buf_failed(into), 0);
}

/* The tree and then the problems that reading gives. */
static int read_doc(struct str text, struct buf *tree, struct buf *said)
{
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    struct problems p;
    int r;

    problems_init(&p, "f");
    r = doc_parse(&d, text, &p);
    if (r == 0)
        dump(d->root, tree);
    problems_sort(&p);
    problems_print(&p, said);
    assert_int_equal(buf_failed(said), 0);
    problems_done(&p);
    return r;
}

static void check_tree(const char *text, const char *want)
{
    BUF_AUTO(tree, 1 << 16);
    BUF_AUTO(said, 1 << 16);
    int r = read_doc(str_of(text), &tree, &said);

    if (r < 0 || said.n || !str_eq(buf_str(&tree), str_of(want)))
        fail_msg("%s\nr=%d, said: %.*s\ngot:      %.*s\nexpected: %s", text, r, STR_ARG(buf_str(&said)),
                 STR_ARG(buf_str(&tree)), want);
}

static void reads_values(void **state)
{
    static const char *const cases[][2] = {
        {"", "null"},
        {"  \n# only a comment\n", "null"},
        {"---\n", "null"},
        {"\xef\xbb\xbfk: 1", "{k=i1}"},
        {"\xef\xbb\xbf[1]", "[i1]"},
        {"a: 1\nb: -2\nc: +3\nd: 0\ne: 0x10\nf: 1_000\ng: -a\n",
         "{a=i1,b=i-2,c=i+3,d=i0,e=\"0x10\",f=\"1_000\",g=\"-a\"}"},
        {"- 1.5\n- .5\n- 1.\n- 1e3\n- -1.5E-7\n- 1.5.2\n- .\n- 1e\n- e1\n- 1e+\n- 30s\n- .inf\n",
         "[d1.5,d.5,d1.,d1e3,d-1.5E-7,\"1.5.2\",\".\",\"1e\",\"e1\",\"1e+\",\"30s\",d.inf]"},
        {"- ~\n- null\n-\n- Null\n- nULL\n", "[null,null,null,null,\"nULL\"]"},
        {"- true\n- False\n- yes\n- on\n- tRUE\n", "[btrue,bFalse,\"yes\",\"on\",\"tRUE\"]"},
        {"- \"1\"\n- 'true'\n- ''\n- !!str 5\n- !!int \"5\"\n- ! 5\n- |\n  a\n  b\n",
         "[\"1\",\"true\",\"\",\"5\",i5,\"5\",\"a\nb\n\"]"},
        {"a: {b: [1, {c: d}], e: []}\nf: {}\n", "{a={b=[i1,{c=\"d\"}],e=[]},f={}}"},
        {"\"a b\": \"\\u20ac\\n\"\n1: x\n", "{a b=\"\xe2\x82\xac\n\",1=\"x\"}"},
        {"a: &x 1\n", "{a=i1}"},
        {"%YAML 1.2\n---\na: b\n...\n", "{a=\"b\"}"},
        {"a: \"q\\\"uote\"\nb: [\"x\"]\n", "{a=\"q\"uote\",b=[\"x\"]}"},
        {" {\"a\":[1,-2.5,1e3,\"1\",true,false,null,{},[]],\"b\":{\"c\":\"d\"}} ",
         "{a=[i1,d-2.5,d1e3,\"1\",btrue,bfalse,null,{},[]],b={c=\"d\"}}"},
        {"[\"\\ud83d\\uDE00\\ude00\\ud83d\\ud83d\\ude00\\\\ud83d\"]",
         "[\"\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\\ud83d\"]"},
        {"[\"a\\\"b\\\\\\/\\n\\u20ac\\ud83d\\ude00\"]", "[\"a\"b\\/\n\xe2\x82\xac\xf0\x9f\x98\x80\"]"},
        {"{\"k\\u0065y\":\"\"}", "{key=\"\"}"},
        {"{}", "{}"},
        {"[]", "[]"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_tree(cases[i][0], cases[i][1]);
}

static void knows_places(void **state)
{
    static const char *const texts[] = {
        "\na:\n  - 1\n  - bb: x\n",
        "{\n\"a\":\n  [ 1,\n   {\"bb\" : \"x\"}] }",
    };
    static const unsigned want[][8] = {{2, 1, 3, 3, 5, 4, 5, 9}, {2, 1, 3, 3, 5, 4, 5, 12}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP(cleanup_doc_free) struct doc *d = NULL;
        struct problems p;
        const struct node *a, *x;

        problems_init(&p, "f");
        assert_int_equal(doc_parse(&d, str_of(texts[i]), &p), 0);
        a = node_get(d->root, "a");
        x = node_get(a->items[1], "bb");
        assert_int_equal(a->key_line, want[i][0]);
        assert_int_equal(a->key_column, want[i][1]);
        assert_int_equal(a->line, want[i][2]);
        assert_int_equal(a->column, want[i][3]);
        assert_int_equal(a->items[0]->column, want[i][4]);
        assert_int_equal(a->items[1]->line, want[i][5]);
        assert_int_equal(x->key_column, i == 0 ? want[i][6] : 5);
        assert_int_equal(x->column, want[i][7]);
        problems_done(&p);
    }
}

static void refuses(void **state)
{
    static const struct {
        struct str text;
        int r;
        const char *want;
    } cases[] = {
        {STR("a: 1\nb: 2\na: 3\n\"a\": 4\n"), 0,
         "f:3:1: error: a: duplicate key, first defined at line 1\nf:4:1: error: a: duplicate key, first "
         "defined at line 1\n"},
        {STR("a: 060\nb: -007\nc: 00\nd: 0\ne: 10\nf: '060'\ng: 0.5\n"), 0,
         "f:1:4: warning: 060 is read as the decimal number 60, not as an octal one\n"
         "f:2:4: warning: -007 is read as the decimal number -7, not as an octal one\n"
         "f:3:4: warning: 00 is read as the decimal number 0, not as an octal one\n"},
        {STR("l:\n- {x: {y: 1, y: 2}}\n"), 0,
         "f:2:14: error: l[0].x.y: duplicate key, first defined at line 2\n"},
        {STR("{\"a\":1,\n \"\\u0061\":2}"), 0, "f:2:2: error: a: duplicate key, first defined at line 1\n"},
        {STR("{\"a b\":1,\"a b\":2}"), 0,
         "f:1:10: error: [\"a b\"]: duplicate key, first defined at line 1\n"},
        {STR("a: &x 1\nb: *x\n"), 0, "f:2:4: error: aliases are not supported; repeat the value\n"},
        {STR("a: &x 1\n*x : 2\n"), -EINVAL, "f:2:1: error: aliases are not supported; repeat the value\n"},
        {STR("a: 1\n<<: {b: 1}\n"), -EINVAL,
         "f:2:1: error: merge keys (<<) are not supported; repeat the members\n"},
        {STR("? [a]\n: 1\n"), -EINVAL, "f:1:3: error: a list or an object cannot be a key\n"},
        {STR("a: !!float 1\nb: !x [1]\nc: !!int x\n"), 0,
         "f:1:4: error: tags other than !!str and !!int are not supported\n"
         "f:2:4: error: tags other than !!str and !!int are not supported\n"
         "f:3:4: error: tagged !!int but not a decimal integer\n"},
        {STR("a: 1\n---\nb: 2\n"), 0,
         "f:2:1: error: expected a single document, but another one starts here\n"},
        {STR("a: [1, 2\nb: 3\n"), -EINVAL,
         "f:2:2: error: YAML: did not find expected ',' or ']', while parsing a flow sequence (from line 1, "
         "column 4)\n"},
        {STR("a: b: c\n"), -EINVAL, "f:1:5: error: YAML: mapping values are not allowed in this context\n"},
        {STR("a:\n\t- b\n"), -EINVAL,
         "f:2:1: error: YAML: found character that cannot start any token, while scanning for the next token "
         "(from line "
         "2, column 1)\n"},
        {STR("a: b\nc: \x01\n"), -EINVAL, "f:2:4: error: YAML: control characters are not allowed\n"},
        {STR("a: b\nc: x\xff\n"), -EINVAL, "f:2:5: error: invalid UTF-8: byte 0xff\n"},
        {STR("\xff\xfe[\0]\0"), -EINVAL, "f:1:1: error: invalid UTF-8: byte 0xff\n"},
        {STR("[\"\xed\xa0\x80\"]"), -EINVAL, "f:1:3: error: invalid UTF-8: byte 0xed\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(tree, 1 << 16);
        BUF_AUTO(said, 1 << 16);
        int r = read_doc(cases[i].text, &tree, &said);

        if (r != cases[i].r || !str_eq(buf_str(&said), str_of(cases[i].want)))
            fail_msg("%.*s\nr=%d\ngot:\n%.*s\nexpected:\n%s", STR_ARG(cases[i].text), r,
                     STR_ARG(buf_str(&said)), cases[i].want);
    }
}

static void refuses_bad_json_with_its_place(void **state)
{
    static const struct {
        const char *text;
        const char *place;
    } cases[] = {
        {"[1,2", "f:2:1: error: YAML: unexpected end, while parsing a flow sequence"},
        {"[1] x", "f:1:5: error: "},
        {"[\"\\x\"]", "f:1:"},
        {"{\"a\" 1}", "f:1:6: error: "},
        {"[}", "f:1:2: error: "},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(tree, 1 << 16);
        BUF_AUTO(said, 1 << 16);

        assert_int_equal(read_doc(str_of(cases[i].text), &tree, &said), -EINVAL);
        if (!str_starts(buf_str(&said), str_of(cases[i].place)) ||
            memchr(said.p, '\n', said.n) != said.p + said.n - 1)
            fail_msg("%s\ngot:\n%.*s\nexpected:\n%s", cases[i].text, STR_ARG(buf_str(&said)), cases[i].place);
    }
}

/* n times `open`, in both languages. */
static void check_depth(const char *open, const char *close, size_t n, const char *want)
{
    BUF_AUTO(text, 1 << 16);
    BUF_AUTO(tree, 1 << 16);
    BUF_AUTO(said, 1 << 16);
    int r;

    for (size_t i = 0; i < n; i++)
        buf_puts(&text, open);
    buf_puts(&text, "1");
    for (size_t i = 0; i < n; i++)
        buf_puts(&text, close);
    assert_int_equal(buf_failed(&text), 0);
    r = read_doc(buf_str(&text), &tree, &said);
    assert_int_equal(r, *want ? -EINVAL : 0);
    assert_true(str_eq(buf_str(&said), str_of(want)));
}

static void has_a_depth_ceiling(void **state)
{
    (void)state;
    check_depth("[", "]", DOC_MAX_DEPTH, "");
    check_depth("[", "]", DOC_MAX_DEPTH + 1, "f:1:33: error: nested deeper than 32 levels\n");
    check_depth("[", "]", 10000, "f:1:33: error: nested deeper than 32 levels\n");
    check_depth("- ", "", DOC_MAX_DEPTH, "");
    check_depth("- ", "", 10000, "f:1:65: error: nested deeper than 32 levels\n");
    check_depth("{\"a\":", "}", 10000, "f:1:161: error: nested deeper than 32 levels\n");
}

static void has_a_ceiling_for_values(void **state)
{
    static const char *const texts[] = {"[1", "- 1\n- [1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        BUF_AUTO(text, 1 << 20);
        BUF_AUTO(tree, 1 << 20);
        BUF_AUTO(said, 1 << 16);

        buf_puts(&text, texts[i]);
        for (size_t k = 0; k < DOC_MAX_NODES - 1; k++)
            buf_puts(&text, ",1");
        buf_putc(&text, ']');
        assert_int_equal(buf_failed(&text), 0);
        assert_int_equal(read_doc(buf_str(&text), &tree, &said), -EINVAL);
        assert_non_null(memmem(said.p, said.n, "the document has more than 200000 values", 40));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values),
        cmocka_unit_test(knows_places),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_bad_json_with_its_place),
        cmocka_unit_test(has_a_depth_ceiling),
        cmocka_unit_test(has_a_ceiling_for_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
