#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""Plants violations and sees that each check finds them, and nothing in clean trees."""

import unittest

from checks import budgets, console, heads, layers, named_in_tests, snippets, surface, words
from declarations import public_functions
from tree import Tree, without_comments

CORE_LIST = "target_sources(spark_comm PUBLIC FILE_SET HEADERS FILES error.hpp)"
HEAD = "// SPDX-License-Identifier: AGPL-3.0-only\n// What it is for.\n#pragma once\n"


def found(check, files):
    return list(check.violations(Tree(files)))


class LayerArrows(unittest.TestCase):
    files = {
        "src/spark_comm/core/CMakeLists.txt": CORE_LIST,
        "src/spark_comm/core/error.hpp": "",
        "src/spark_comm/core/shared_library.hpp": "",
        "src/spark_comm/comm/communicator.hpp": "",
        "src/host/task.hpp": "",
    }

    def problems(self, path, text):
        return found(layers, {**self.files, path: text})

    def assert_found(self, path, text, words_of_it):
        problems = self.problems(path, text)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(words_of_it, problems[0])

    def test_allows_lower_layers_and_itself(self):
        text = "#include <spark_comm/core/error.hpp>\n#include <vector>\n"
        self.assertEqual(self.problems("src/spark_comm/nccl/api.hpp", text), [])
        self.assertEqual(self.problems("src/host/ring.cpp", '#include "task.hpp"\n' + text), [])
        self.assertEqual(self.problems("app/main.cpp", text), [])

    def test_refuses_a_higher_layer(self):
        text = "#include <spark_comm/comm/communicator.hpp>\n"
        self.assert_found("src/spark_comm/core/time.cpp", text, "core may not include layer comm")
        self.assert_found("src/host/ring.cpp", text, "host may not include layer comm")

    def test_does_not_read_comments(self):
        text = "// #include <spark_comm/comm/communicator.hpp>\n"
        self.assertEqual(self.problems("src/spark_comm/core/time.cpp", text), [])

    def test_refuses_vendor_headers_outside_the_kernels(self):
        self.assert_found("src/spark_comm/nccl/api.hpp", "#include <nccl.h>\n", "vendor header")
        self.assertEqual(self.problems("src/spark_comm/kernels/a.cu", "#include <cuda_bf16.h>\n"), [])
        self.assertEqual(self.problems("tests/unit/nccl/abi_test.cpp", "#include <nccl.h>\n"), [])

    def test_refuses_third_party_in_public_headers(self):
        self.assert_found("src/spark_comm/core/error.hpp", "#include <fmt/core.h>\n", "public header")
        self.assertEqual(self.problems("src/spark_comm/core/error.cpp", "#include <fmt/core.h>\n"), [])

    def test_refuses_private_headers_in_the_tool_and_in_public_headers(self):
        text = "#include <spark_comm/core/shared_library.hpp>\n"
        self.assert_found("app/main.cpp", text, "private")
        self.assert_found("src/spark_comm/core/error.hpp", text, "private")

    def test_refuses_quotes_across_layers_and_missing_files(self):
        self.assert_found("src/spark_comm/nccl/a.cpp", '#include "../core/error.hpp"\n', "own layer")
        self.assert_found("app/main.cpp", "#include <spark_comm/core/gone.hpp>\n", "does not exist")

    def test_refuses_an_unknown_layer(self):
        text = "#include <spark_comm/core/error.hpp>\n"
        self.assert_found("src/spark_comm/misc/a.cpp", text, "not in the table")

    def test_finds_a_cycle(self):
        problems = found(layers, {
            "src/spark_comm/core/a.hpp": "#include <spark_comm/core/b.hpp>\n",
            "src/spark_comm/core/b.hpp": "#include <spark_comm/core/a.hpp>\n",
        })
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("include cycle", problems[0])

    def test_compares_the_documented_table(self):
        page = "| `core` | words | `cuda` |\n"
        problems = self.problems("docs/architecture.md", page)
        self.assertIn("docs/architecture.md: the row of layer core does not say []", problems)


class SizeBudgets(unittest.TestCase):
    def test_counts_lines(self):
        self.assertEqual(found(budgets, {"src/a.hpp": "x\n" * 250, "app/main.cpp": "x\n" * 60}), [])
        for path, lines in (("src/a.hpp", 251), ("src/a.cu", 401), ("app/main.cpp", 61),
                            ("tests/unit/a_test.cpp", 501), ("README.md", 201)):
            self.assertEqual(len(found(budgets, {path: "x\n" * lines})), 1, path)

    def test_honours_and_limits_exceptions(self):
        exceptions = {budgets.EXCEPTIONS: "src/a.hpp 300 a table of calls\n"}
        self.assertEqual(found(budgets, {**exceptions, "src/a.hpp": "x\n" * 300}), [])
        self.assertEqual(len(found(budgets, {**exceptions, "src/a.hpp": "x\n" * 301})), 1)
        self.assertIn("no exception", found(budgets, {**exceptions, "src/a.hpp": ""})[0])
        self.assertIn("does not exist", found(budgets, exceptions)[0])


class FileHeads(unittest.TestCase):
    def test_wants_licence_purpose_and_pragma(self):
        self.assertEqual(found(heads, {"src/a.hpp": HEAD, "src/a.cpp": HEAD.split("\n")[0]}), [])
        self.assertIn("first line", found(heads, {"src/a.cpp": "int x;\n"})[0])
        self.assertIn("0 lines", found(heads, {"src/a.cpp": HEAD.split("\n")[0]})[0])
        self.assertIn("5 lines", found(heads, {"a.cpp": HEAD.split("\n")[0] + "\n// x" * 5})[0])
        self.assertIn("pragma", found(heads, {"src/a.hpp": HEAD.replace("#pragma once", "")})[0])

    def test_wants_a_docstring_in_python(self):
        licence = "# SPDX-License-Identifier: AGPL-3.0-only\n"
        self.assertEqual(found(heads, {"tools/a.py": licence + '"""Says it."""\n'}), [])
        self.assertEqual(len(found(heads, {"tools/a.py": licence + "import re\n"})), 1)


class ForbiddenWords(unittest.TestCase):
    def test_finds_each_kind(self):
        bad = ["FIX" + "ME", "TO" + "DO later", "/ho" + "me/me/x", "x ", "x\r", "NOLI" + "NT",
               "<" * 7 + " HEAD", "Co-auth" + "ored-by: x", "-----BEGIN RSA PRIVATE " + "KEY-----"]
        for line in bad:
            self.assertEqual(len(found(words, {"a.cpp": line + "\n"})), 1, line)

    def test_lets_good_lines_pass(self):
        good = ["TO" + "DO(#12)", "NOLI" + "NT(some-check): reason", "https://x.org/home/y", "======"]
        self.assertEqual(found(words, {"a.cpp": "\n".join(good) + "\n"}), [])
        self.assertEqual(len(found(words, {"a.cpp": "no newline"})), 1)


class Declarations(unittest.TestCase):
    header = """
        #define TABLE(X) X(one, (int a))
        namespace spark_comm {
        enum class color { red, };
        /// join(x) in a comment
        [[nodiscard]] API std::string_view name_of(color c) noexcept;
        template <class T = f<int>> void fill(span<T> x) { helper(x); }
        inline constexpr int limit = compute(3);
        class API comm {
         public:
          explicit comm(int rank);
          ~comm();
          comm(const comm&) = delete;
          [[nodiscard]] static comm join(std::function<void(int)> f = other());
          bool operator==(const comm&) const;
          int rank() const { return get(rank_); }
         private:
          void hidden();
        };
        struct options { int n = size(); bool valid() const; };
        namespace detail { void inner(); }
        }
    """

    def test_lists_public_functions_only(self):
        self.assertEqual(public_functions(self.header), ["name_of", "fill", "join", "rank", "valid"])

    def test_wants_each_named_in_a_test(self):
        files = {
            "src/spark_comm/core/CMakeLists.txt": CORE_LIST,
            "src/spark_comm/core/error.hpp": "namespace s { int one(); int two(); }",
            "tests/unit/core/error_test.cpp": "TEST(error, one) { one(); }",
        }
        problems = found(named_in_tests, files)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("two", problems[0])

    def test_blanks_comments_and_strings(self):
        self.assertEqual(without_comments('a("x;{") // b\n/* c\n*/ d'), 'a("") \n\n d')


class SurfacePage(unittest.TestCase):
    def problems(self, row):
        head = "| what | here | tests | state |\n| --- | --- | --- | --- |\n"
        files = {"tests/unit/a_test.cpp": "TEST_P(all_reduce, sums) {}", surface.PAGE: head + row}
        return found(surface, files)

    def test_wants_existing_tests(self):
        self.assertEqual(self.problems("| a | b | `all_reduce.sums` | done |\n"), [])
        self.assertEqual(self.problems("| a | b | | open |\n"), [])
        self.assertIn("no test", self.problems("| a | b | `all_reduce.gone` | done |\n")[0])
        self.assertIn("names no test", self.problems("| a | b | | done |\n")[0])
        self.assertIn("state", self.problems("| a | b | `all_reduce.sums` | nearly |\n")[0])
        self.assertIn("no rows", self.problems("")[0])

    def test_wants_the_tests_of_the_cases(self):
        files = {
            "tests/unit/a_test.cpp": "TEST_F(join_port, is_taken) {}",
            "tests/cli/b_test.py": "class Two(TestCase):\n    def test_works(self):\n",
            surface.PAGE: "| what | here | tests | state |\n| - | - | - | - |\n| a | b | | open |\n",
        }
        row = "| case | what | test |\n| - | - | - |\n| BC-02 | `x.y` | {} |\n"
        for test, problems in [("`join_port.is_taken`, `Two.test_works`", 0), ("`Two.test_gone`", 1)]:
            page = {surface.CASES_PAGE: row.format(test)}
            self.assertEqual(len(found(surface, {**files, **page})), problems)


class SnippetBlocks(unittest.TestCase):
    source = "// SPDX\n// Head.\n\nint main() {\n  // [use]\n  run();\n  // [/use]\n}\n"

    def problems(self, note, body):
        page = f"text\n\n{note}\n```cpp\n{body}\n```\n"
        return found(snippets, {"README.md": page, "examples/a.cpp": self.source})

    def test_compares_with_a_region(self):
        self.assertEqual(self.problems("<!-- snippet: examples/a.cpp#use -->", "run();"), [])
        self.assertIn("differs", self.problems("<!-- snippet: examples/a.cpp#use -->", "run(1);")[0])
        self.assertIn("no region", self.problems("<!-- snippet: examples/a.cpp#no -->", "run();")[0])
        self.assertIn("without", self.problems("", "run();")[0])

    def test_compares_with_a_whole_file(self):
        body = self.source.split("\n\n")[1]
        self.assertEqual(self.problems("<!-- snippet: examples/a.cpp -->", body), [])
        self.assertIn("no region", self.problems("<!-- snippet: examples/b.cpp -->", body)[0])


class ConsoleBlocks(unittest.TestCase):
    def problems(self, body, output, note=""):
        page = f"{note}\n```console\n{body}```\n"
        tree = Tree({"README.md": page})
        return list(console.violations(tree, run_command=lambda command, _: output))

    def test_compares_output_without_its_numbers(self):
        self.assertEqual(self.problems("$ a\ntook 1.5 us\n", "took   23 us\n"), [])
        self.assertEqual(len(self.problems("$ a\ntook 1.5 us\n", "took 1.5 ms\n")), 1)
        self.assertEqual(self.problems("$ a\nfirst\n...\nlast 1\n", "first\nx\ny\nlast 2\n"), [])
        self.assertEqual(len(self.problems("$ a\nx\n$ b\ny\n", "x\n")), 1)

    def test_leaves_marked_blocks_alone(self):
        self.assertEqual(self.problems("$ a\nx\n", "y\n", "<!-- needs hardware -->"), [])
        self.assertEqual(self.problems("$ a\nx\n", "y\n", "<!-- not run: slow -->"), [])
        self.assertEqual(len(self.problems("$ a\nx\n", "y\n", "<!-- not run: -->")), 1)


if __name__ == "__main__":
    unittest.main()
