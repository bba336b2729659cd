# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._check_escape import code, escape, fence, line


@pytest.mark.parametrize(
    "value, shown",
    [
        ("a b", "a b"),
        (" a\n\tb\x00\u202ec ", "a b c"),
        (2, "2"),
        (None, "null"),
        ({"b": 1, "a": "\u00e9"}, '{"a": "\u00e9", "b": 1}'),
        ("x" * 301, f"{'x' * 300}..."),
        ("\ud800", ""),
    ],
)
def test_one_line(value, shown):
    assert line(value) == shown


@pytest.mark.parametrize(
    "value, escaped",
    [
        ("mem_fraction_static 0.88 (5)", "mem_fraction_static 0.88 (5)"),
        ("<b>", "&#60;b&#62;"),
        ("<!-- x -->", "&#60;&#33;-- x --&#62;"),
        ("a|b\n| c", "a&#124;b &#124; c"),
        ("@all", "&#64;&#8203;all"),
        ("@org/team a@b.c", "&#64;&#8203;org/team a&#64;&#8203;b.c"),
        ("#12 !12 ~bug %1.0 $7 &4", "&#35;&#8203;12 &#33;&#8203;12 &#126;&#8203;bug &#37;&#8203;1.0 &#36;&#8203;7 &#38;&#8203;4"),
        ("@\u200ball", "&#64; all"),
        ("[a](b)", "&#91;&#8203;a&#93;(b)"),
        ("https://x", "https&#58;&#8203;//x"),
        ("WWW.x.y", "WWW&#46;&#8203;x.y"),
        ("`a` *b* _c_ a_b", "&#96;a&#96; &#42;b&#42; &#95;c&#95; a_b"),
        ("&amp;", "&#38;&#8203;amp;"),
        ("\\|", "&#92;&#124;"),
    ],
)
def test_escape(value, escaped):
    assert escape(value) == escaped


@pytest.mark.parametrize(
    "value, shown",
    [
        ("tp_size", "`tp_size`"),
        ("sglang/srt/server_args.py:1337", "`sglang/srt/server_args.py:1337`"),
        ("a b", "`a b`"),
        ("", ""),
        ("a`b", "<code>a&#96;b</code>"),
        ("http://a", "<code>http&#58;&#8203;//a</code>"),
        ("www.a", "<code>www&#46;&#8203;a</code>"),
        ("a|b", "<code>a&#124;b</code>"),
        ("@a", "<code>&#64;&#8203;a</code>"),
        ("</code>", "<code>&#60;/code&#62;</code>"),
    ],
)
def test_code(value, shown):
    assert code(value) == shown


@pytest.mark.parametrize(
    "lines, block",
    [
        (["a", "b"], "```diff\na\nb\n```"),
        (["```", "x"], "````diff\n```\nx\n````"),
        (["a\n`````\rb\u2028c"], "``````diff\na\n`````\nb\nc\n``````"),
        (["\ta\x1b[0m\u202e"], "```diff\n\ta\ufffd[0m\ufffd\n```"),
        (["<!-- llmops.inference check -->"], "```diff\n<! -- llmops.inference check -->\n```"),
        (["x" * 401], f"```diff\n{'x' * 400}...\n```"),
    ],
)
def test_nothing_ends_a_fence(lines, block):
    assert fence(lines, "diff") == block
